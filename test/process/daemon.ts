import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, type Program, type RunOptions, runProgram, said } from './program.ts';
import type { Sabotage } from './sabotage.ts';
import { DEMO } from './simulated-exchange.ts';

export interface DaemonOptions extends RunOptions {
  /** Base address of the exchange. */
  readonly exchange: string;
  readonly markets: readonly unknown[];
  /** More sections of the configuration file; what `exchange` holds is added to the address. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly key?: string;
  readonly secret?: string;
  /** What the file with the key is called; `api-key` unless given. */
  readonly keyName?: string;
  /** Loads the module that `sabotage` needs. */
  readonly canSabotage?: boolean;
  /** Starts `exec` with this bot instead of `run`. */
  readonly bot?: readonly string[];
  /** Takes beats and commands at the socket `socket`. */
  readonly control?: boolean;
}

/** What the status says of a market. */
interface MarketStatus {
  readonly market: string;
  readonly survivesSeconds: number;
  readonly renewEverySeconds: number;
}

/** One line of the log. */
export interface LogLine {
  readonly level: string;
  /** ISO 8601, with milliseconds. */
  readonly time: string;
  readonly event: string;
  readonly market?: string;
  readonly msg: string;
}

/** The daemon as a process, and what an operator can ask of it. */
export type DaemonProcess = ReturnType<typeof runDaemon>;

const SABOTAGE_MODULE = new URL('./sabotage.ts', import.meta.url).href;

/** Writes configuration and secrets into `directory`, and says where they are and with which variables a daemon finds them. */
export function writeFiles(directory: string, options: DaemonOptions) {
  const { markets, exchange, config = {}, control = false, keyName = 'api-key' } = options;
  const { key, secret } = { ...DEMO, ...options };
  const file = (name: string, content: string) => {
    const path = join(directory, name);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  };
  /** Where a daemon takes beats and commands with the option `control`, as `--control` takes it. */
  const socket = `unix:${join(directory, 'control.sock')}`;
  const secretFile = file('api-secret', `${secret}\n`);
  const content = {
    markets,
    liveness: { mode: 'none' },
    web: { listen: ['127.0.0.1:0'] },
    ...(control ? { control: { listen: [socket] } } : {}),
    ...config,
    exchange: { baseUrls: [exchange], ...(config['exchange'] as object | undefined) },
  };
  const configFile = file('killswitchd.json', JSON.stringify(content));
  const env = {
    KILLSWITCHD_API_KEY_FILE: file(keyName, `${key}\n`),
    KILLSWITCHD_API_SECRET_FILE: secretFile,
  };
  return { configFile, content, secretFile, socket, env };
}

/** Writes configuration and secrets into `directory` and starts `run` or `exec` with them. */
export function runDaemon(directory: string, options: DaemonOptions) {
  const { canSabotage = false, bot } = options;
  const { env, ...files } = writeFiles(directory, options);
  const sabotageFile = join(directory, 'sabotage.json');
  const flags = ['--config', files.configFile];
  const program = runProgram(bot === undefined ? ['run', ...flags] : ['exec', ...flags, '--', ...bot], {
    ...options,
    ...(canSabotage && { nodeOptions: ['--disable-sigusr1', '--import', SABOTAGE_MODULE] }),
    env: { ...env, ...(canSabotage ? { SABOTAGE: sabotageFile } : {}), ...options.env },
  });
  return {
    ...program,
    ...observe(program),
    ...files,
    /** Replaces the configuration whole, as an editor or a deployment does it: that of the start, with these sections. */
    configure(sections: object): void {
      writeFileSync(`${files.configFile}.new`, JSON.stringify({ ...files.content, ...sections }));
      renameSync(`${files.configFile}.new`, files.configFile);
    },
    /** SIGHUP, and wait for the log to tell what came of it: the line of an earlier reload may come late. */
    async reloadBySignal(event: 'reload-applied' | 'reload-rejected'): Promise<void> {
      const told = () => program.stdout().split(`"event":"${event}","trigger":"signal"`).length;
      const before = told();
      program.signal('SIGHUP');
      await eventually(`${event}\n${said(program)}`, 10_000, () => told() > before);
    },
    sabotage(sabotage: Sabotage): void {
      writeFileSync(sabotageFile, JSON.stringify(sabotage));
      program.signal('SIGUSR2');
    },
  };
}

function observe(program: Program) {
  /** The lines of the log with this event code that are complete. */
  const logged = (event: string): readonly LogLine[] => {
    const lines = logText(program).split('\n').slice(0, -1);
    const isOf = (line: string) => line.startsWith('{"level"') && line.includes(`"event":"${event}"`);
    return lines.filter(isOf).map((line) => JSON.parse(line) as LogLine);
  };
  /** Address of the status page; waits for it to be served. */
  const web = () =>
    eventually('the address of the status page', 60_000, () => {
      if (program.hasExited()) throw new Error(`the daemon ended:\n${said(program)}`);
      return /Status page, health and metrics: (http:[^\s"]+)/.exec(logText(program))?.[1] ?? null;
    });
  const get = async (path: string) => {
    const answer = await fetch(`${await web()}${path}`);
    return { status: answer.status, body: await answer.text() };
  };
  return {
    logged,
    /** The markets of those lines, in alphabetical order. */
    marketsLogged: (event: string): readonly string[] =>
      logged(event)
        .map(({ market = '' }) => market)
        .sort(),
    web,
    get,
    metric: async (name: string, labels?: Readonly<Record<string, string>>) =>
      sumOf((await get('/metrics')).body, name, labels),
    /** The markets that it guards, by its status. */
    async markets() {
      const { body } = await get('/api/v1/status');
      return (JSON.parse(body) as { readonly markets: readonly MarketStatus[] }).markets;
    },
    /** Resolves once `/readyz` answers 200. */
    async ready(withinMs = 15_000): Promise<void> {
      const isReady = async () => (await get('/readyz')).status === 200;
      await eventually(`/readyz\n${said(program)}`, withinMs, isReady);
    },
  };
}

/** The log is on standard output, and with `exec` on standard error. */
function logText(program: Program): string {
  return program.stdout() + program.stderr();
}

/** The sum of all series of a metric on a page whose labels contain these. */
export function sumOf(page: string, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return page
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .filter((line) => wanted.every((label) => line.includes(label)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

/** What a daemon says on its outputs and its pages. */
export async function everythingSaidBy(daemon: DaemonProcess): Promise<string> {
  const paths = ['/metrics', '/api/v1/status', '/', '/readyz?verbose', '/livez?verbose'];
  const pages = await Promise.all(paths.map(async (path) => (await daemon.get(path)).body));
  return [daemon.stdout(), daemon.stderr(), ...pages].join('\n');
}

/** Which of the secrets a text shows, and in which of the forms that a careless program would show it in. */
export function shownIn(text: string, secrets: readonly string[]): string[] {
  const formsOf = (secret: string) => [
    secret,
    encodeURIComponent(secret),
    Buffer.from(secret).toString('base64'),
    Buffer.from(secret).toString('hex'),
  ];
  return secrets.flatMap(formsOf).filter((form) => text.includes(form));
}
