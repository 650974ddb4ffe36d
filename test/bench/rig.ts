import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Cores, makeCertificate, pinCores } from './machine.ts';
import { type ExchangeProcess, endAll, startExchange } from './processes.ts';

/** Everything that a run of the bench has at hand. */
export interface Rig {
  /** A directory of this run alone, gone when it ends. */
  readonly directory: string;
  readonly cores: Cores;
  /** The compiled program. */
  readonly program: string;
  readonly secret: string;
  readonly certificate: { readonly certFile: string; readonly keyFile: string };
  /** The module of ccxt, or why there is none. */
  readonly ccxt: { readonly module: string } | { readonly problem: string };
  readonly exchange: (wire: Wire, roundTripMs?: number) => Promise<ExchangeProcess>;
  /** A name for a new file in the directory. */
  readonly file: (name: string) => string;
}

export const WIRES = ['tls', 'plain'] as const;
export type Wire = (typeof WIRES)[number];

export const ROUND_TRIP_MS = 20;
const CCXT = 'ccxt@4.5.84';
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A terminal that is closed ends the bench as Ctrl-C does; a daemon would take the same signal for a reload. */
const ENDING = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const;
const run = promisify(execFile);

/**
 * Gives `work` a rig. Whichever way that ends, by a signal as well, no process and no file of it stays behind; a signal
 * ends the bench.
 */
export async function withRig<T>(wantsCcxt: boolean, work: (rig: Rig) => Promise<T>): Promise<T> {
  const { promise: asked, resolve } = Promise.withResolvers<NodeJS.Signals>();
  // It stays set: a second Ctrl-C, or the first one passed on by npm, must not end the bench before all is cleared away.
  const end = (signal: NodeJS.Signals) => {
    // Nor must a word to a terminal that is closed.
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
    resolve(signal);
  };
  for (const signal of ENDING) process.on(signal, end);
  const building = new AbortController();
  const directory = mkdtempSync(join(tmpdir(), 'killswitchd-bench-'));
  let endedBy: NodeJS.Signals | null;
  try {
    const worked = createRig(directory, wantsCcxt, building.signal).then(work);
    endedBy = await Promise.race([worked.then(() => null), asked]);
    if (endedBy === null) return await worked;
  } finally {
    building.abort();
    await endAll();
    rmSync(directory, { recursive: true, force: true });
    for (const signal of ENDING) process.off(signal, end);
  }
  process.kill(process.pid, endedBy);
  throw new Error(`ended by ${endedBy}`);
}

/** Compiles the program, makes a certificate, and installs ccxt into a folder that is kept between runs. */
async function createRig(directory: string, wantsCcxt: boolean, signal: AbortSignal): Promise<Rig> {
  const cores = pinCores();
  let files = 0;
  const file = (name: string) => {
    files += 1;
    return join(directory, `${files}-${name}`);
  };
  const secret = 'bench-secret-0123456789abcdef0123456789abcdef';
  const certificate = makeCertificate(directory);
  return {
    directory,
    cores,
    program: await build(signal),
    secret,
    certificate,
    ccxt: wantsCcxt ? await installCcxt(signal) : { problem: 'not asked for' },
    exchange: (wire, roundTripMs = ROUND_TRIP_MS) =>
      startExchange(
        { roundTripMs, tls: wire === 'tls' ? certificate : null, secret },
        { cores, logFile: file('exchange.log') },
      ),
    file,
  };
}

async function build(signal: AbortSignal): Promise<string> {
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  await run(process.execPath, [compiler, '-p', 'tsconfig.build.json'], { cwd: ROOT, signal }).catch(
    ({ stdout, stderr }: Failed) => {
      throw new Error(`the program does not compile:\n${stdout}${stderr}`);
    },
  );
  return join(ROOT, 'dist', 'main.js');
}

interface Failed extends Error {
  readonly stdout: string;
  readonly stderr: string;
}

/** A peer is measured as its users get it, and never becomes a dependency of the product. */
async function installCcxt(signal: AbortSignal): Promise<Rig['ccxt']> {
  const folder = join(tmpdir(), `killswitchd-bench-${CCXT.replace('@', '-')}`);
  const module = join(folder, 'node_modules', 'ccxt', 'js', 'ccxt.js');
  if (existsSync(module)) return { module };
  // An install that was cut short must not pass for a whole one.
  const half = `${folder}.new`;
  const install = [
    'install',
    '--prefix',
    half,
    '--no-audit',
    '--no-fund',
    '--no-save',
    '--ignore-scripts',
    CCXT,
  ];
  try {
    await run('npm', install, { timeout: 120_000, signal });
    renameSync(half, folder);
    return { module };
  } catch (error) {
    const { stderr, message } = error as Failed;
    const why = stderr.split('\n').find((line) => line.includes('error')) ?? message;
    return { problem: `npm did not install ${CCXT}: ${why.trim()}` };
  }
}

/** A port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}
