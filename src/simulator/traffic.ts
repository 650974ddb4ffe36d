import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Cancel, Clock } from '../ports.ts';
import { httpDate } from '../util/text.ts';
import type { Reply } from './answer.ts';
import type { Journal } from './event-log.ts';
import { type CannedReply, type FaultKind, type FaultPlan, type Treatment, UNTOUCHED } from './faults.ts';
import { MAX_BODY_BYTES, type RequestTarget } from './operations.ts';
import type { SimulatedExchange } from './simulated-exchange.ts';
import type { ExchangeRequest } from './state.ts';

/** What one request asked for, and what its client was told. */
export interface RequestBody extends RequestTarget {
  readonly method: string;
  readonly path: string;
  /** The first 2,000 characters. */
  readonly body: string;
  /** Null where the connection was ended without an answer. */
  readonly status: number | null;
  /** The first 2,000 characters of the answer. */
  readonly reply: string;
  /** Kinds of the faults that hit it. */
  readonly faults: readonly FaultKind[];
}

/** `seq` counts from 1 without gaps; `atMs`: when it was answered, the exchange's clock in Unix milliseconds. */
export interface JournalledRequest extends Omit<RequestBody, 'body'> {
  readonly seq: number;
  readonly atMs: number;
  /** The JSON of the body; its first 2,000 characters where it is none or longer, and null where there is none. */
  readonly body: unknown;
}

/** A request on its way. */
interface Visit {
  readonly request: ExchangeRequest;
  readonly response: ServerResponse;
  readonly target: RequestTarget;
  readonly treatment: Treatment;
}

export interface TrafficParts {
  readonly clock: Clock;
  /** The exchange's clock, Unix milliseconds. */
  readonly nowMs: () => number;
  readonly exchange: SimulatedExchange;
  readonly plan: FaultPlan;
  readonly requests: Journal<RequestBody, unknown>;
  /** Called after the exchange answered a request, when the moment of the next firing may have changed. */
  readonly onHandled: () => void;
}

/** Requests to the exchange's own paths, with the faults of the plan done to them. */
export interface Traffic {
  serve(request: IncomingMessage, response: ServerResponse): void;
  /** Ends every hang at once. */
  readonly releaseHeld: () => void;
  /** Forgets everything that waits. */
  readonly stop: () => void;
}

const NOTHING: Reply = { status: 200, headers: {}, body: '' };
/** Characters of a body and of a reply that the journal keeps. */
const TEXT_KEPT = 2000;
/** A slow body is sent in at most this many pieces. */
const MAX_PIECES = 20;

export function createTraffic(parts: TrafficParts): Traffic {
  const { clock, nowMs, exchange, plan } = parts;
  const { later, hold, releaseHeld, stop } = createWaitingRoom(clock);
  const cached = new Map<string, Reply>();

  /** What the exchange answers, or what a cache before it repeats. */
  function ownReply({ request, target, treatment }: Visit): Reply {
    const { apply, cachedBy, grantSeconds } = treatment;
    if (apply === 'no') return NOTHING;
    const name = cachedBy === null ? null : JSON.stringify([cachedBy, target]);
    const known = name === null ? undefined : cached.get(name);
    if (known !== undefined) return known;
    const own = exchange.handle(request, nowMs(), apply === 'pretend' ? apply : undefined, grantSeconds);
    parts.onHandled();
    if (name !== null && own.status < 300) cached.set(name, own);
    return own;
  }

  function note({ request, target, treatment }: Visit, told: CannedReply | null): void {
    const faults = treatment.hits.map(({ kind }) => kind);
    parts.requests.append({ ...target, ...seenOf(request, told), faults }, nowMs());
  }

  function answer(visit: Visit): void {
    const { tell, isCutOff, bodyMs, replyWaitMs } = visit.treatment;
    const own = ownReply(visit);
    const told = tell === null ? own : tell(own);
    note(visit, told);
    later(replyWaitMs, () => {
      visit.response.setHeader('date', httpDate(nowMs()));
      deliver(visit.response, told, isCutOff, bodyMs, later);
    });
  }

  function decide(target: RequestTarget): Treatment {
    const atMs = nowMs();
    if (plan.active(atMs).length === 0) return UNTOUCHED;
    const { operation, market } = target;
    const treatment = plan.treat(target, atMs);
    for (const { faultId, kind } of treatment.hits) {
      exchange.log.append({ kind: 'fault-applied', faultId, fault: kind, operation, market }, atMs);
    }
    return treatment;
  }

  function treat(request: ExchangeRequest, response: ServerResponse): void {
    const target = exchange.target(request);
    const visit: Visit = { request, response, target, treatment: decide(target) };
    const { hang, waitMs } = visit.treatment;
    const go = () => later(waitMs, () => answer(visit));
    const drop = () => {
      note(visit, null);
      response.destroy();
    };
    if (hang === null) go();
    else hold(hang, hang.mode === 'hold' ? go : drop);
  }

  return {
    serve(request, response) {
      readBody(request, (body) => {
        const { method = '', url = '', headers } = request;
        treat({ method, path: url, headers, body }, response);
      });
    },
    releaseHeld,
    stop,
  };
}

/** What the journal keeps of a request and its answer. */
function seenOf(
  { method, path, body }: ExchangeRequest,
  told: CannedReply | null,
): Pick<RequestBody, 'method' | 'path' | 'body' | 'status' | 'reply'> {
  const cut = (text: string | Buffer) => String(text).slice(0, TEXT_KEPT);
  return { method, path, body: cut(body), status: told?.status ?? null, reply: cut(told?.body ?? '') };
}

/** The JSON of a text; the text where it is none, and null where it is empty. */
export function readJson(text: string): unknown {
  try {
    return text === '' ? null : JSON.parse(text);
  } catch {
    return text;
  }
}

/** Reads to the end, so that the connection stays usable, but keeps little more than the exchange would accept. */
function readBody(request: IncomingMessage, whole: (body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
    bytes += chunk.length;
  });
  request.on('end', () => whole(Buffer.concat(chunks)));
  request.on('error', () => request.destroy());
}

type Later = (delayMs: number, run: () => void) => void;

/** Requests that a fault delays or holds. */
function createWaitingRoom(clock: Clock): Pick<Traffic, 'releaseHeld' | 'stop'> & {
  /** Runs at once where there is no delay. */
  readonly later: Later;
  /** Runs `ended` when the hang is over. */
  readonly hold: (hang: NonNullable<Treatment['hang']>, ended: () => void) => void;
} {
  const waiting = new Set<Cancel>();
  const held = new Map<number, Set<() => void>>();

  const later: Later = (delayMs, run) => {
    if (delayMs <= 0) {
      run();
      return;
    }
    const cancel = clock.after(delayMs, () => {
      waiting.delete(cancel);
      run();
    });
    waiting.add(cancel);
  };

  /** What one fault holds is let go in the order of its arrival, so that nonces stay in order. */
  function release(faultId: number): void {
    const ends = held.get(faultId) ?? [];
    held.delete(faultId);
    for (const end of ends) end();
  }

  return {
    later,
    hold(hang, ended) {
      const { faultId } = hang;
      const ends = held.get(faultId) ?? new Set();
      held.set(faultId, ends.add(ended));
      if (hang.ms === null) return;
      later(hang.ms, () => {
        if (hang.endsWithFault) release(faultId);
        else if (held.get(faultId)?.delete(ended) === true) ended();
      });
    },
    releaseHeld() {
      for (const faultId of held.keys()) release(faultId);
    },
    stop() {
      for (const cancel of waiting) cancel();
      waiting.clear();
      held.clear();
    },
  };
}

/** Sends a reply, half of it where it is cut off. Does nothing where the client has gone. */
function deliver(
  response: ServerResponse,
  reply: CannedReply | null,
  isCutOff: boolean,
  bodyMs: number,
  later: Later,
): void {
  // Not that of the response: it has none while the reply to an earlier request of the connection is under way.
  const { socket } = response.req;
  if (response.destroyed || socket.destroyed) return;
  if (reply === null) {
    socket.resetAndDestroy();
    return;
  }
  const body = Buffer.from(reply.body);
  const length = isCutOff ? Math.max(1, body.length) : body.length;
  response.writeHead(reply.status, { ...reply.headers, 'content-length': length });
  if (isCutOff) {
    response.flushHeaders();
    response.write(body.subarray(0, Math.floor(body.length / 2)), () => response.destroy());
  } else if (bodyMs <= 0) response.end(body);
  else sendSlowly(response, body, bodyMs, later);
}

function sendSlowly(response: ServerResponse, body: Buffer, bodyMs: number, later: Later): void {
  response.flushHeaders();
  const pieces = Math.max(1, Math.min(MAX_PIECES, body.length));
  const cut = (piece: number) => Math.floor((body.length * piece) / pieces);
  const sendFrom = (piece: number) => {
    if (response.destroyed) return;
    const part = body.subarray(cut(piece), cut(piece + 1));
    if (piece + 1 < pieces) {
      response.write(part);
      later(bodyMs / pieces, () => sendFrom(piece + 1));
    } else {
      response.end(part);
    }
  };
  later(bodyMs / pieces, () => sendFrom(0));
}
