import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { type Checked, checkControlListen, checkWebListen } from '../config/meaning.ts';
import { describe } from '../config/problem.ts';
import { readTokenFile } from '../config/secrets.ts';
import type { ListenAddress } from '../ports.ts';
import { isRecord } from '../util/text.ts';
import { CommandError, type Edge, EXIT, type ExitCode, misconfigured } from './edge.ts';
import { type Given, readUnchecked, revealed, valid } from './flags.ts';

/** What the command line says about where the daemon is, as it was written. */
export type ControlFlags = Given<'control' | 'tokenFile' | 'config'>;

/** Where a daemon is asked: at its control listener, or at the read-only one. */
export interface Place {
  readonly kind: 'control' | 'web';
  readonly address: ListenAddress;
  /** The token for a control listener at HOST:PORT; null where none is named, and elsewhere. */
  readonly token: string | null;
}

/** The directory of a daemon's socket where nothing names another. */
const USUAL_SOCKETS = '/run/killswitchd';
const SOCKET_NAME = 'control.sock';
const USUAL_SOCKET = join(USUAL_SOCKETS, SOCKET_NAME);
const USUAL_WEB = '127.0.0.1:17477';

/** The flags that every command has that talks to a running daemon. */
export function addControlFlags(command: Command): Command {
  return command
    .option('--control <address>', 'where the daemon is: unix:/PATH or HOST:PORT (KILLSWITCHD_CONTROL)')
    .option(
      '--token-file <file>',
      'file with the token for a daemon at HOST:PORT (KILLSWITCHD_CONTROL_TOKEN_FILE)',
    )
    .option('--config <file>', 'configuration file that says both (KILLSWITCHD_CONFIG)');
}

/** The same, for a command that only reads. */
export function addReadingFlags(command: Command): Command {
  const says = 'ask at HOST:PORT of the read-only listener instead of the control listener';
  return addControlFlags(command.option('--web <address>', says));
}

/**
 * Where to send commands, and the token to send along. `--control` wins over KILLSWITCHD_CONTROL, that over the first
 * of control.listen as the daemon itself would read it, and where nothing is configured the usual socket is tried.
 * Reads the configuration file only where it is needed, and of it only the listeners: key and secret may be missing.
 * Throws a `CommandError` that says what to write where no daemon is named.
 */
export async function findControl(
  flags: ControlFlags,
  env: Edge['env'],
  sockets = USUAL_SOCKETS,
): Promise<Place> {
  const said = readSaid(flags, env);
  const address = await said.control();
  if (address === null) {
    throw misconfigured(
      `${said.file}: control.listen is missing or empty, so that the daemon takes no commands; write control: { listen: [unix:${USUAL_SOCKET}] } and restart it, or write --control with the address of another one`,
    );
  }
  const found = address ?? usualAddress(sockets);
  if (found !== null) return said.placeOf(found);
  throw misconfigured(
    `no daemon is named, and there is none at unix:${join(sockets, SOCKET_NAME)}; write --control unix:/PATH or --control HOST:PORT, set KILLSWITCHD_CONTROL to it, or name the daemon's configuration file with --config or KILLSWITCHD_CONFIG; a daemon without control.listen takes no commands`,
  );
}

/**
 * Where to ask a daemon what it does: at `web` where it is given, else over the control listener where one is named or
 * configured, else at the read-only listener, which is on by default.
 */
export async function findReadable(flags: ControlFlags & Given<'web'>, env: Edge['env']): Promise<Place> {
  const web = (address: ListenAddress): Place => ({ kind: 'web', address, token: null });
  if (flags.web !== undefined) return web(check('--web', CHECKS.web(flags.web), EXIT.usage));
  const said = readSaid(flags, env);
  const control = await said.control();
  if (control != null) return said.placeOf(control);
  const configured = await said.first('web');
  if (configured === null) {
    throw misconfigured(
      `${said.file}: neither control.listen nor web.listen has an address, so that nobody can be asked`,
    );
  }
  const socket = configured === undefined ? usualAddress(USUAL_SOCKETS) : null;
  return socket === null ? web(configured ?? usualWeb()) : said.placeOf(socket);
}

/** The daemon decides at which addresses it may listen; here any will do. */
const CHECKS = {
  control: (text: string) => checkControlListen(text.trim(), true),
  web: (text: string) => checkWebListen(text.trim()),
} as const;

const usualWeb = () => check('web.listen', CHECKS.web(USUAL_WEB), EXIT.config);

function check(label: string, checked: Checked<ListenAddress>, exitCode: ExitCode): ListenAddress {
  const address = valid(label, checked, exitCode);
  if (address.kind === 'unix') return address;
  if (address.port === 0)
    throw new CommandError(
      exitCode,
      `${label}: found port 0, which the daemon turns into any free one; its log says which: write that`,
    );
  // A listener on every address of the host is asked at the loopback one.
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address.host];
  if (host === undefined) return address;
  return { ...address, host, text: `${host === '::1' ? '[::1]' : host}:${address.port}` };
}

/**
 * The socket of the only daemon of this host: `control.sock` in the directory, or in that of its only instance. Throws
 * where there are several instances; null where there is none.
 */
function usualAddress(folder: string): ListenAddress | null {
  const socketIn = (path: string): ListenAddress => ({ kind: 'unix', text: `unix:${path}`, path });
  // A folder that this user may not enter can hold it all the same: connecting tells.
  const isThere = (path: string) =>
    attempt(
      () => statSync(path) !== undefined,
      (code) => code === 'EACCES' || code === 'EPERM',
    );
  const own = join(folder, SOCKET_NAME);
  if (isThere(own)) return socketIn(own);
  const instances = attempt(
    () => readdirSync(folder).toSorted(),
    () => [],
  )
    .map((name) => join(folder, name, SOCKET_NAME))
    .filter(isThere);
  const [only] = instances;
  if (only === undefined || instances.length === 1) return only === undefined ? null : socketIn(only);
  const named = instances.map((path) => `--control unix:${path}`).join(', ');
  throw misconfigured(`several daemons run here; say which: ${named}`);
}

/** What is seen of the file system; `otherwise` gets the code of the error that comes instead. */
function attempt<T>(look: () => T, otherwise: (code: unknown) => T): T {
  try {
    return look();
  } catch (error) {
    return otherwise(error instanceof Error && 'code' in error ? error.code : null);
  }
}

/** What command line, environment and configuration file say about the listeners of the daemon. */
function readSaid(flags: ControlFlags, env: Edge['env']) {
  const file = flags.config ?? env['KILLSWITCHD_CONFIG'] ?? null;
  let reading: ReturnType<typeof readUnchecked> | null = null;
  /** A value of the file with its place; undefined where it is not there. */
  const valueAt = async (section: 'control' | 'web', key: string) => {
    if (file === null) return undefined;
    reading ??= readUnchecked(file, 'write --control to do without the file');
    const { values, place } = await reading;
    const at = values[section];
    const value = isRecord(at) ? at[key] : undefined;
    return value === undefined ? undefined : { value, label: place([section, key]).label };
  };
  /** The first address; null where the file has none; undefined where neither a variable nor a file says anything. */
  const first = async (section: 'control' | 'web'): Promise<ListenAddress | null | undefined> => {
    const name = `KILLSWITCHD_${section.toUpperCase()}_LISTEN`;
    const [variable] = env[name]?.split(',') ?? [];
    if (variable !== undefined) return check(name, CHECKS[section](variable), EXIT.config);
    if (file === null) return undefined;
    const written = await valueAt(section, 'listen');
    if (written === undefined) return section === 'control' ? null : usualWeb();
    const { value, label } = written;
    if (!Array.isArray(value) || !value.every((entry) => typeof entry === 'string')) {
      throw misconfigured(
        `${label}: found ${describe(value)}; allowed: a list of addresses such as ["unix:${USUAL_SOCKET}"]`,
      );
    }
    const [text] = value;
    return text === undefined ? null : check(label, CHECKS[section](text), EXIT.config);
  };
  /** The token never comes from the command line: everybody on the host can read that. */
  const readToken = async (): Promise<string | null> => {
    if (flags.tokenFile !== undefined) return revealed('--token-file', readTokenFile(flags.tokenFile));
    const name = 'KILLSWITCHD_CONTROL_TOKEN_FILE';
    const variable = env[name];
    if (variable !== undefined) return revealed(name, readTokenFile(variable), EXIT.config);
    const written = (await valueAt('control', 'tokenFile'))?.value;
    if (typeof written !== 'string') return null;
    return revealed('control.tokenFile', readTokenFile(written), EXIT.config);
  };
  return {
    file,
    first,
    /** The control listener that is named, or else configured. */
    async control(): Promise<ListenAddress | null | undefined> {
      const variable = env['KILLSWITCHD_CONTROL'];
      if (flags.control !== undefined) return check('--control', CHECKS.control(flags.control), EXIT.usage);
      if (variable === undefined) return first('control');
      return check('KILLSWITCHD_CONTROL', CHECKS.control(variable), EXIT.config);
    },
    async placeOf(address: ListenAddress): Promise<Place> {
      return { kind: 'control', address, token: address.kind === 'unix' ? null : await readToken() };
    },
  };
}
