import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CCXT, npmInstall } from '../ops/npm-install.ts';
import { eventually, ROOT } from '../process/program.ts';
import { type Cores, pinCores } from './machine.ts';
import { endAll, kill, messageOf, startNode } from './processes.ts';
import type { Ask, ExchangeOptions, Seen } from './protocol.ts';

/** Everything that a run of the bench has at hand. */
export interface Rig {
  readonly cores: Cores;
  /** The program as packaged: `dist/main.js` and what lies beside it. */
  readonly bundle: (name: string) => string;
  readonly secret: string;
  /** Installs ccxt, the library that most bots are written with; a folder of its own, once. */
  readonly ccxt: () => Promise<string>;
  readonly env: Readonly<Record<string, string>>;
  readonly exchange: (unlike?: Partial<Pick<ExchangeOptions, 'answerMs' | 'sick'>>) => Promise<Exchange>;
  /** A name for a new file of this run alone, gone when it ends. */
  readonly file: (name: string) => string;
}

export interface Exchange {
  readonly url: string;
  readonly ask: (what: Ask) => Promise<Seen>;
  readonly allArmed: (markets: number) => Promise<unknown>;
  readonly end: () => Promise<void>;
}

const ANSWER_MS = 20;
const ARMED_WITHIN_MS = 120_000;
const EXCHANGE = join(import.meta.dirname, 'exchange.ts');
/** A terminal that is closed ends the bench as Ctrl-C does; a daemon would take the same signal for a reload. */
const ENDING = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const;

/** Gives `work` a rig. Whichever way that ends, by a signal as well, no process and no file of it stays behind. */
export async function withRig<T>(work: (rig: Rig) => Promise<T>): Promise<T> {
  const building = new AbortController();
  let directory = '';
  const clear = async () => {
    building.abort();
    await endAll();
    rmSync(directory, { recursive: true, force: true });
  };
  const end = (signal: NodeJS.Signals): void => {
    // Words to a terminal that is closed must not hold this up.
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
    void clear().then(() => process.removeAllListeners(signal) && process.kill(process.pid, signal));
  };
  for (const signal of ENDING) process.on(signal, end);
  // Only now is there somebody who removes it.
  directory = mkdtempSync(join(tmpdir(), 'killswitchd-bench-'));
  try {
    return await work(await createRig(directory, building.signal));
  } finally {
    await clear();
    for (const signal of ENDING) process.off(signal, end);
  }
}

/** Makes the bundle, and a certificate for the loopback that nobody else trusts. */
async function createRig(directory: string, signal: AbortSignal): Promise<Rig> {
  const cores = pinCores();
  let files = 0;
  const file = (name: string) => join(directory, `${++files}-${name}`);
  const [certFile, keyFile] = [file('certificate.pem'), file('key.pem')];
  const what =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost';
  const names = ['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', keyFile, '-out', certFile];
  execFileSync('openssl', [...what.split(' '), ...names], { stdio: 'ignore' });
  const bundler = join(ROOT, 'deploy/package/bundle.ts');
  await promisify(execFile)(process.execPath, [bundler], { cwd: ROOT, signal });
  let installed: Promise<unknown> | undefined;
  const secret = 'bench-secret-0123456789abcdef0123456789abcdef';
  const key = { KILLSWITCHD_API_KEY: 'bench-key', KILLSWITCHD_API_SECRET: secret };
  return {
    cores,
    bundle: (name) => join(ROOT, 'build/bundle', name),
    secret,
    env: { ...key, NODE_EXTRA_CA_CERTS: certFile },
    file,
    async ccxt() {
      const folder = join(directory, 'ccxt');
      await (installed ??= npmInstall(folder, CCXT, signal));
      return folder;
    },
    async exchange({ answerMs = ANSWER_MS, sick = 0 } = {}) {
      const options: ExchangeOptions = { answerMs, sick, certFile, keyFile };
      const logFile = file('exchange.log');
      const how = { cores, on: 'others', logFile, channel: true } as const;
      const running = startNode([EXCHANGE, JSON.stringify(options)], how);
      const url = `https://127.0.0.1:${await messageOf<number>(running)}`;
      const ask = (about: Ask) => {
        running.child.send(about);
        return messageOf<Seen>(running);
      };
      const isArmed = async (markets: number) => (await ask('read')).armed >= markets;
      const allArmed = (markets: number) =>
        eventually(`${markets} timers armed`, ARMED_WITHIN_MS, () => isArmed(markets));
      return { url, ask, allArmed, end: () => kill(running) };
    },
  };
}
