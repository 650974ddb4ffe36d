import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Cores, makeCertificate, pinCores } from './machine.ts';
import { type ExchangeProcess, killAll, startExchange } from './processes.ts';

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
  readonly close: () => Promise<void>;
}

export const WIRES = ['tls', 'plain'] as const;
export type Wire = (typeof WIRES)[number];

export const ROUND_TRIP_MS = 20;
const CCXT = 'ccxt@4.5.84';
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Compiles the program, makes a certificate, and installs ccxt into a folder that is kept between runs. */
export function createRig(wantsCcxt: boolean): Rig {
  const cores = pinCores();
  // Before there is a directory: whoever interrupts the compiler leaves none behind.
  const program = build();
  const directory = mkdtempSync(join(tmpdir(), 'killswitchd-bench-'));
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
    program,
    secret,
    certificate,
    ccxt: wantsCcxt ? installCcxt() : { problem: 'not asked for' },
    exchange: (wire, roundTripMs = ROUND_TRIP_MS) =>
      startExchange(
        { roundTripMs, tls: wire === 'tls' ? certificate : null, secret },
        { cores, logFile: file('exchange.log') },
      ),
    file,
    async close() {
      await killAll();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function build(): string {
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const built = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  if (built.status !== 0) throw new Error(`the program does not compile:\n${built.stdout}${built.stderr}`);
  return join(ROOT, 'dist', 'main.js');
}

/** A peer is measured as its users get it, and never becomes a dependency of the product. */
function installCcxt(): Rig['ccxt'] {
  const folder = join(tmpdir(), `killswitchd-bench-${CCXT.replace('@', '-')}`);
  const module = join(folder, 'node_modules', 'ccxt', 'js', 'ccxt.js');
  if (!existsSync(module)) {
    const install = [
      'install',
      '--prefix',
      folder,
      '--no-audit',
      '--no-fund',
      '--no-save',
      '--ignore-scripts',
      CCXT,
    ];
    const installed = spawnSync('npm', install, { encoding: 'utf8', timeout: 120_000 });
    if (installed.status !== 0) {
      const why =
        installed.stderr?.split('\n').find((line) => line.includes('error')) ?? String(installed.error);
      return { problem: `npm did not install ${CCXT}: ${why.trim()}` };
    }
  }
  return { module };
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
