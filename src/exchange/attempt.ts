import type { Dispatcher } from 'undici';
import errors from 'undici/lib/core/errors.js';
import type { Connection, Connections } from './connections.ts';
import { ConnectError } from './dialler.ts';
import type { WireHeaders, WireRequest, WireResult } from './wire.ts';

/** The most of a body that is read. Answers without a list have a few hundred bytes. */
const MAX_BODY_BYTES = 65_536;

/** One request on its way over one connection. */
export interface Attempt {
  /** Sends the request over a connection that nobody else uses. */
  begin(connection: Connection): void;
  /** Settles the request as failed, saying what it was still waiting for. */
  giveUp(reason: 'timeout' | 'aborted'): void;
}

interface AttemptState {
  connection: Connection | null;
  written: boolean;
  /** Of the answer, once its head has arrived. */
  status: number | null;
  headers: WireHeaders;
  size: number;
  readonly chunks: Buffer[];
}

type Settle = (result: WireResult) => void;

/** True where an answer came that breaks the rules of HTTP. */
function isBrokenAnswer(error: Error): boolean {
  return (
    error instanceof errors.HTTPParserError ||
    error instanceof errors.ResponseContentLengthMismatchError ||
    error instanceof errors.HeadersOverflowError
  );
}

function describe({ code, message }: NodeJS.ErrnoException): string {
  return code === undefined || message.includes(code) ? message : `${code}: ${message}`;
}

function broken(detail: string, status: number | null): WireResult {
  const result = { kind: 'failed', reason: 'parse', detail, maybeApplied: true } as const;
  return status === null ? result : { ...result, status };
}

function failure(error: NodeJS.ErrnoException, { written, status }: AttemptState): WireResult {
  if (error instanceof ConnectError) {
    const { reason, cause } = error;
    return { kind: 'failed', reason, detail: `cannot connect: ${error.message}`, maybeApplied: false, cause };
  }
  const detail = describe(error);
  if (!written) return { kind: 'failed', reason: 'aborted', detail, maybeApplied: false, cause: error };
  // Without its cause: there undici keeps what it could not parse, which may repeat the request.
  if (status !== null || isBrokenAnswer(error))
    return broken(`the answer broke off or is not HTTP: ${detail}`, status);
  return { kind: 'failed', reason: 'network', detail, maybeApplied: true, cause: error };
}

function waitingFor({ connection, written, status }: AttemptState): string {
  if (connection === null) return 'a free connection';
  if (!written) return 'the connection to open';
  return status === null ? 'an answer' : 'the end of the answer';
}

function handlerOf(
  state: AttemptState,
  mayWrite: () => boolean,
  maxBodyBytes: number,
  settle: Settle,
): Dispatcher.DispatchHandler {
  return {
    // undici writes the request right after this call returns, in the same synchronous step.
    onRequestStart(controller) {
      if (mayWrite()) {
        state.written = true;
        return;
      }
      const detail = 'not sent: no longer allowed when the connection was ready';
      settle({ kind: 'failed', reason: 'aborted', detail, maybeApplied: false });
      controller.abort(new Error('not sent'));
    },
    onResponseStart(_controller, status, headers) {
      if (status < 200) return;
      state.status = status;
      state.headers = headers;
    },
    onResponseData(controller, chunk) {
      state.size += chunk.length;
      if (state.size <= maxBodyBytes) {
        state.chunks.push(chunk);
        return;
      }
      settle(broken(`HTTP ${state.status} with more than ${maxBodyBytes} bytes`, state.status));
      controller.abort(new Error('body too large'));
    },
    onResponseEnd() {
      const { status, headers, chunks } = state;
      if (status !== null) settle({ kind: 'response', status, headers, body: Buffer.concat(chunks) });
    },
    onResponseError(_controller, error) {
      settle(failure(error, state));
    },
  };
}

/** Prepares one request. `done` is called exactly once, never synchronously, after the connection was given back. */
export function createAttempt(
  request: WireRequest,
  connections: Connections,
  done: (result: WireResult) => void,
): Attempt {
  const { method, path, body, headers, mayWrite, maxBodyBytes = MAX_BODY_BYTES } = request;
  const state: AttemptState = {
    connection: null,
    written: false,
    status: null,
    headers: {},
    size: 0,
    chunks: [],
  };
  let settled = false;

  function settle(result: WireResult): void {
    if (settled) return;
    settled = true;
    // In a turn of its own: undici would swallow what `done` throws, and the caller may not be called back at once.
    queueMicrotask(() => {
      const { connection, written } = state;
      if (connection !== null) {
        if (result.kind === 'response') connections.release(connection);
        else connections.discard(connection, written && result.reason === 'timeout');
      }
      done(result);
    });
  }

  return {
    begin(connection) {
      state.connection = connection;
      const handler = handlerOf(state, () => !settled && mayWrite(), maxBodyBytes, settle);
      connection.client.dispatch({ method, path, body, headers: { ...headers } }, handler);
    },
    giveUp(reason) {
      const detail = `given up while waiting for ${waitingFor(state)}`;
      settle({ kind: 'failed', reason, detail, maybeApplied: state.written });
    },
  };
}
