import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { checkControlListen, checkWebListen } from '../config/meaning.ts';
import { describe, wrong } from '../config/problem.ts';
import { FileSchema } from '../config/schema.ts';
import { readTokenFile } from '../config/secrets.ts';
import type { ListenAddress } from '../ports.ts';
import { isRecord } from '../util/text.ts';
import { type Edge, misconfigured, tryOr } from './edge.ts';
import { type Given, readUnchecked, refuseUnknown, revealed, valid } from './flags.ts';

/** What the command line says about where the daemon is, as it was written. */
export type ControlFlags = Given<'control' | 'tokenFile' | 'config'>;

type Listener = 'control' | 'web';

/** Where a daemon is asked: at its control listener, or at the web listener. */
export interface Place {
  readonly kind: Listener;
  readonly address: ListenAddress;
  /** The token for a control listener at HOST:PORT; null where none is named, and elsewhere. */
  readonly token: string | null;
}

/** The directory of a daemon's socket where nothing names another. */
const USUAL_SOCKETS = '/run/killswitchd';
const SOCKET_NAME = 'control.sock';
const USUAL_SOCKET = join(USUAL_SOCKETS, SOCKET_NAME);
/** The web listener of a daemon that is not told otherwise. */
const USUAL_WEB = valid('web.listen', checkWebListen(FileSchema.properties.web.properties.listen.default[0]));

export function addControlFlags(command: Command): Command {
  const token = 'file with the token for a daemon at HOST:PORT (KILLSWITCHD_CONTROL_TOKEN_FILE)';
  return command
    .option('--control <address>', 'where the daemon is: unix:/PATH or HOST:PORT (KILLSWITCHD_CONTROL)')
    .option('--token-file <file>', token)
    .option('--config <file>', 'configuration file that says both (KILLSWITCHD_CONFIG)');
}

export function addReadingFlags(command: Command): Command {
  const says = 'ask the web listener at HOST:PORT instead of the control listener';
  return addControlFlags(command.option('--web <address>', says));
}

/**
 * Where to send commands: `--control`, else KILLSWITCHD_CONTROL, else the first of control.listen as the daemon would
 * read it, else the usual socket. Reads the configuration file only where it is needed, and of it only the listeners.
 */
export async function findControl(flags: ControlFlags, env: Edge['env'], sockets = USUAL_SOCKETS) {
  const said = readSaid(flags, env);
  const address = await said.address('control');
  if (address === null)
    throw misconfigured(
      `${said.file}: control.listen is missing or empty, so that the daemon takes no commands; write control: { listen: [unix:${USUAL_SOCKET}] } and restart it, or write --control with the address of another one`,
    );
  const found = address ?? usualAddress(sockets);
  if (found !== null) return said.placeOf(found);
  throw misconfigured(
    `no daemon is named, and there is none at unix:${join(sockets, SOCKET_NAME)}; write --control unix:/PATH or --control HOST:PORT, set KILLSWITCHD_CONTROL to it, or name the daemon's configuration file with --config or KILLSWITCHD_CONFIG; a daemon without control.listen takes no commands`,
  );
}

/** Where to ask what a daemon does: at `web`, else at a control listener that is named, else at the web listener. */
export async function findReadable(flags: ControlFlags & Given<'web'>, env: Edge['env']): Promise<Place> {
  const said = readSaid(flags, env);
  const control = flags.web === undefined ? await said.address('control') : null;
  if (control != null) return said.placeOf(control);
  const address = await said.address('web');
  const nobody = 'neither control.listen nor web.listen has an address, so that nobody can be asked';
  if (address === null) throw misconfigured(`${said.file}: ${nobody}`);
  const socket = address === undefined ? usualAddress(USUAL_SOCKETS) : null;
  if (socket !== null) return said.placeOf(socket);
  return { kind: 'web', address: address ?? USUAL_WEB, token: null };
}

const ANY_PORT = 'found port 0, which the daemon turns into any free one; its log says which: write that';

/** An address, where one is said. The daemon decides at which ones it may listen; here any will do. */
function check(listener: Listener, label: string, said: string | undefined): ListenAddress | undefined {
  if (said === undefined) return undefined;
  const text = said.trim();
  const checked = listener === 'web' ? checkWebListen(text) : checkControlListen(text, true);
  const address = valid<ListenAddress>(label, checked);
  if (address.kind === 'unix') return address;
  if (address.port === 0) return valid(label, wrong(ANY_PORT));
  // A listener on every address of the host is asked at the loopback one.
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address.host];
  if (host === undefined) return address;
  return { ...address, host, text: `${host === '::1' ? '[::1]' : host}:${address.port}` };
}

/** The socket of the only daemon of this host, or of its only instance; throws where there are several instances. */
function usualAddress(folder: string): ListenAddress | null {
  // A folder that this user may not enter can hold it all the same: connecting tells.
  const isThere = (path: string) =>
    tryOr(() => statSync(path, { throwIfNoEntry: false }) !== undefined, true);
  const socketsIn = (names: readonly string[]) =>
    names.map((name) => join(folder, name, SOCKET_NAME)).filter(isThere);
  const own = socketsIn(['']);
  const found = own.length > 0 ? own : socketsIn(tryOr(() => readdirSync(folder), []).toSorted());
  const [path, ...others] = found;
  const named = found.map((path) => `--control unix:${path}`).join(', ');
  if (others.length > 0) throw misconfigured(`several daemons run here; say which: ${named}`);
  return path === undefined ? null : { kind: 'unix', text: `unix:${path}`, path };
}

/** What command line, environment and configuration file say about the listeners of the daemon. */
function readSaid(flags: ControlFlags & Given<'web'>, env: Edge['env']) {
  if (flags.control === undefined && flags.web === undefined) refuseUnknown(env);
  const file = flags.config ?? env['KILLSWITCHD_CONFIG'] ?? null;
  const isNamed = (flags.control ?? env['KILLSWITCHD_CONTROL']) !== undefined;
  const without = isNamed ? 'write --token-file, with the file of its token,' : 'write --control';
  let reading: ReturnType<typeof readUnchecked> | null = null;
  /** A value of the file, which is undefined where it is not written, with its place; null without a file. */
  const written = async (section: Listener, key: string) => {
    if (file === null) return null;
    reading ??= readUnchecked(file, `${without} to do without the file`);
    const { values, place } = await reading;
    const at = values[section];
    return { value: isRecord(at) ? at[key] : undefined, label: place([section, key]).label };
  };
  /** Where a listener is named, or else configured; null where the file has none; undefined where nothing says anything. */
  const address = async (listener: Listener): Promise<ListenAddress | null | undefined> => {
    const name = `KILLSWITCHD_${listener.toUpperCase()}`;
    const given =
      check(listener, `--${listener}`, flags[listener]) ??
      check(listener, name, env[name]) ??
      check(listener, `${name}_LISTEN`, env[`${name}_LISTEN`]?.split(',')[0]);
    const listen = given === undefined ? await written(listener, 'listen') : null;
    if (listen === null) return given;
    const { value, label } = listen;
    if (value === undefined) return listener === 'control' ? null : USUAL_WEB;
    const allowed = `allowed: a list of addresses such as ["unix:${USUAL_SOCKET}"]`;
    if (!Array.isArray(value) || !value.every((entry) => typeof entry === 'string'))
      throw misconfigured(`${label}: found ${describe(value)}; ${allowed}`);
    return check(listener, label, value[0]) ?? null;
  };
  /** The token never comes from the command line: everybody on the host can read that. */
  const readToken = async (): Promise<string | null> => {
    const variable = 'KILLSWITCHD_CONTROL_TOKEN_FILE';
    if (flags.tokenFile !== undefined) return revealed('--token-file', readTokenFile(flags.tokenFile));
    if (env[variable] !== undefined) return revealed(variable, readTokenFile(env[variable]));
    const value = (await written('control', 'tokenFile'))?.value;
    return typeof value === 'string' ? revealed('control.tokenFile', readTokenFile(value)) : null;
  };
  return {
    file,
    address,
    async placeOf(address: ListenAddress): Promise<Place> {
      return { kind: 'control', address, token: address.kind === 'unix' ? null : await readToken() };
    },
  };
}
