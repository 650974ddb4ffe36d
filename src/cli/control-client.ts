import { once } from 'node:events';
import { statSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { within } from '../util/pace.ts';
import { codeOf, isRecord, plain } from '../util/text.ts';
import type { Place } from './control-address.ts';
import { CommandError, type Edge, EXIT, messageOf, misuse, readAtMost, tryOr } from './edge.ts';

export type ControlClient = ReturnType<typeof createControlClient>;

/** The status of ten thousand markets has 15 MB. */
const MOST_BYTES = 128 * 1024 * 1024;

const unreachable = (why: string) => new CommandError(EXIT.unreachable, why);

/** The sender is sent along: the daemon writes it into its log with a command. */
export function createControlClient(
  { kind, address, token }: Place,
  { clock, sender }: Pick<Edge, 'clock' | 'sender'>,
) {
  const { text: at } = address;
  const where =
    address.kind === 'unix' ? { socketPath: address.path } : { host: address.host, port: address.port };
  const usual = {
    accept: 'application/json',
    'user-agent': `killswitchd (${sender})`,
    ...(token !== null && { authorization: `Bearer ${token}` }),
  };
  /** Sends the body, or asks without one, over a new connection. Any status is an answer; throws where there is none. */
  async function ask(path: string, withinMs: number, body?: object): Promise<Answer> {
    const isCommand = body !== undefined;
    const headers = isCommand ? { ...usual, 'content-type': 'application/json' } : usual;
    const outgoing = request({ ...where, path, method: isCommand ? 'POST' : 'GET', agent: false, headers });
    // After the response its body says what has gone wrong.
    outgoing.on('error', () => {});
    const answered = receive(outgoing);
    outgoing.end(isCommand ? JSON.stringify(body) : '');
    // A command may have arrived although its answer did not.
    const doubt = isCommand ? '; what was asked for may have been done: killswitchd status tells' : '';
    const answer = await within(clock, withinMs, answered).catch((error: unknown) => {
      throw unreachable(explain(error, address, doubt));
    });
    if (answer !== null) return answer;
    outgoing.destroy();
    throw unreachable(`the daemon at ${at} has not answered within ${withinMs / 1000} s${doubt}`);
  }
  return { kind, at, ask };
}

/** What a daemon answered. No text of `said` and `error` steers the terminal; `text` is as it came. */
export type Answer = Awaited<ReturnType<typeof receive>>;

async function receive(outgoing: ClientRequest) {
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  const bytes = await readAtMost(incoming, MOST_BYTES);
  if (bytes === null) throw new Error(`an answer of more than ${MOST_BYTES} bytes`);
  const text = bytes.toString('utf8');
  const clean = (_key: string, value: unknown) => (typeof value === 'string' ? plain(value) : value);
  const json = tryOr<unknown>(() => JSON.parse(text, clean), null);
  const error = isRecord(json) && isRecord(json['error']) ? json['error'] : null;
  /** The JSON object that the text is; null where it is none, or tells an error. */
  const said = isRecord(json) && error === null ? json : null;
  return { status: incoming.statusCode ?? 0, text, said, error };
}

const NO_SOCKET = 'there is no such socket; is killswitchd running, with this address in control.listen?';
const NO_NAME = 'the host name is not known';
/** Why there is no daemon, by the code of the system. */
const ABSENT: Readonly<Record<string, string>> = {
  ENOENT: NO_SOCKET,
  ENOTDIR: NO_SOCKET,
  ECONNREFUSED: 'nobody listens there; is killswitchd running, with this address in its configuration?',
  ENOTFOUND: NO_NAME,
  EAI_AGAIN: NO_NAME,
};

/** Why there is no answer, in the words of a socket or of a port. */
function explain(error: unknown, address: Place['address'], doubt: string): string {
  const at = address.text;
  const path = address.kind === 'unix' ? address.path : null;
  const socket = path === null ? null : tryOr(() => statSync(path), null);
  const code = codeOf(error);
  if (code.startsWith('HPE_'))
    return `what answers at ${at} is no killswitchd daemon: it does not speak HTTP`;
  if (code === 'EACCES' || code === 'EPERM') {
    if (path === null) return `this user may not connect to ${at} (${code})`;
    const mode = ((socket?.mode ?? 0) & 0o777).toString(8).padStart(4, '0');
    const why =
      socket === null
        ? 'it may not enter the folder of the socket'
        : `the socket belongs to the user with the id ${socket.uid} and has the mode ${mode}`;
    return `this user may not use ${at}: ${why}; run the command as the user of the daemon, or as root`;
  }
  if (code === 'ECONNREFUSED' && socket?.isSocket() === false)
    return `no daemon at ${at}: what is there is no socket`;
  if (code === 'ECONNREFUSED' && path !== null)
    return `no daemon at ${at}: nobody listens at the socket any more; the daemon that made it has ended`;
  if (ABSENT[code] !== undefined) return `no daemon at ${at}: ${ABSENT[code]}`;
  return `the daemon at ${at} broke the connection off (${code || messageOf(error)})${doubt}`;
}

export function refusal({ status, error }: Answer, at: string): CommandError {
  if (typeof error?.['message'] !== 'string') return notOurs(status, at);
  const said = error['message'];
  // A path that the daemon does not know is nothing that the user wrote.
  if ([400, 404, 413].includes(status) && error['code'] !== 'unknown_path') return misuse(said);
  const named = 'is named by --token-file, KILLSWITCHD_CONTROL_TOKEN_FILE or control.tokenFile';
  const token = status === 401 ? ` (the token's file ${named})` : '';
  if ([401, 403].includes(status))
    return new CommandError(EXIT.refused, `the daemon at ${at} refuses the command: ${said}${token}`);
  if ([408, 409, 429, 503].includes(status))
    return unreachable(`the daemon at ${at} cannot do it now: ${said}`);
  const other = 'it may be of another version: killswitchd status shows which';
  return new CommandError(EXIT.internal, `the daemon at ${at} answered HTTP ${status}: ${said}; ${other}`);
}

export const notOurs = (status: number, at: string) =>
  unreachable(
    `what answers at ${at} is no killswitchd daemon, or its other listener (HTTP ${status}): commands go to control.listen, the page is at web.listen`,
  );

/** The texts of a list; none where it is no list. */
export function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
}
