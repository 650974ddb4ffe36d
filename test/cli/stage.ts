import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Edge } from '../../src/cli/edge.ts';
import { runProgram } from '../../src/cli/program.ts';
import { createSystemClock } from '../../src/clock.ts';
import { folderFor } from '../liveness/started.ts';
import { type Heard, open } from '../process/http-server.ts';

type Signal = Parameters<Edge['onSignal']>[0];

/** A folder of this test alone. */
export const folder = () => folderFor({ onTestFinished });

export function fileWith(text: string, name = 'file'): string {
  const path = join(folder(), name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

/** What a daemon was asked. */
export interface Asked extends Omit<Heard, 'body'> {
  readonly body: unknown;
}

/** An answer with a status, or something else to be done with the connection. */
export type Reply =
  | { readonly status?: number; readonly json?: unknown; readonly text?: string }
  | ((response: ServerResponse) => void);

/** A real HTTP server in the place of a daemon, at a socket of its own unless told otherwise. */
export async function daemonAt(
  where: { readonly socket?: string; readonly tcp?: boolean },
  answer: (asked: Asked) => Reply,
) {
  const asked: Asked[] = [];
  const socket = where.tcp === true ? null : (where.socket ?? join(folder(), 'control.sock'));
  const serve = ({ body, ...heard }: Heard, response: ServerResponse): void => {
    const one = { ...heard, body: body === '' ? null : (JSON.parse(body) as unknown) };
    asked.push(one);
    const reply = answer(one);
    if (typeof reply === 'function') return reply(response);
    const type = reply.json === undefined ? 'text/plain' : 'application/json';
    response.writeHead(reply.status ?? 200, { 'content-type': type });
    response.end(reply.text ?? `${JSON.stringify(reply.json)}\n`);
  };
  const { at, close } = await open({ onTestFinished }, serve, socket);
  /** As `--control` takes it. */
  const address = socket === null ? at : `unix:${at}`;
  return { address, asked, close };
}

export const daemon = (answer: (asked: Asked) => Reply) => daemonAt({}, answer);

export const refusalWith = (status: number, code: string, message: string): Reply => ({
  status,
  json: { error: { code, message } },
});

export interface Setting {
  readonly env?: Edge['env'];
  /** Columns and lines where standard output is a terminal. */
  readonly terminal?: { readonly columns: number; readonly rows: number };
  /** What somebody types at a question; null for Ctrl-C. Without it there is nobody to ask. */
  readonly types?: string | null;
  /** What stands on standard input. */
  readonly input?: string;
}

/** Starts the program in this process as a shell would. */
export function start(args: readonly string[], { env = {}, terminal, types, input = '' }: Setting = {}) {
  /** Lines on standard output and standard error, what was written to the terminal beside lines, and questions. */
  const said = { out: [] as string[], err: [] as string[], drawn: [] as string[], questions: [] as string[] };
  const handlers = new Map<Signal, () => void>();
  const exits: number[] = [];
  const exited = Promise.withResolvers<void>();
  let gone = false;
  const ask = async (question: string): Promise<string | null> => {
    said.questions.push(question);
    return types ?? null;
  };
  const edge: Edge = {
    env,
    clock: createSystemClock(),
    out: (line) => said.out.push(line),
    err: (line) => said.err.push(line),
    errorTerminal: false,
    ...(terminal && { screen: { size: () => terminal, write: (text) => said.drawn.push(text) } }),
    ...(types !== undefined && { ask }),
    input: async (mostBytes) => (Buffer.byteLength(input) > mostBytes ? null : Buffer.from(input)),
    readerGone: () => gone,
    serviceManager: () => null,
    isInit: false,
    sharesTerminal: false,
    sender: 'a test',
    nodeVersion: '24',
    nodePath: process.execPath,
    signalNumbers: {},
    signalGroup: () => false,
    onSignal: (signal, run) => void handlers.set(signal, run),
    onCrash: () => {},
    finish: (code) => exits.push(code),
    onExit: () => {},
    exitNow(code) {
      exits.push(code);
      gone = true;
      exited.resolve();
    },
  };
  return {
    ...said,
    /** The exit codes that were set; the first one counts. */
    exits,
    signal: (signal: Signal) => handlers.get(signal)?.(),
    /** As the reader of standard output does that has seen enough. */
    stopReading: () => {
      gone = true;
    },
    /** Resolves with the exit code when the command has ended. */
    ended: Promise.race([runProgram(['node', 'killswitchd', ...args], edge), exited.promise]).then(
      () => exits[0] ?? 0,
    ),
  };
}

/** What a shell sees of a command that ends by itself. */
export async function run(args: readonly string[], setting: Setting = {}) {
  const running = start(args, setting);
  const code = await running.ended;
  return { ...running, code };
}

/** A command that ends with this code and one line, and prints nothing else. */
export const failing = (code: number, says: RegExp) => ({
  code,
  out: [],
  err: [expect.stringMatching(says)],
});
