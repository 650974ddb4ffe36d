import type { IncomingMessage, ServerResponse } from 'node:http';
import { httpDate } from '../util/text.ts';
import type { Reply } from './answer.ts';
import type { Journal, Numbered } from './event-log.ts';
import type { ExchangeClock } from './exchange-clock.ts';
import type { CannedReply, FaultKind, FaultPlan, Treatment } from './faults.ts';
import { MAX_BODY_BYTES, type RequestTarget, renderFor } from './operations.ts';
import type { SimulatedExchange } from './simulated-exchange.ts';
import type { ExchangeRequest } from './state.ts';

/** What one request asked for, and what its client was told. */
export interface RequestBody extends RequestTarget {
  readonly method: string;
  readonly path: string;
  /** The JSON of the body; its first 2,000 characters where it is none or longer, and null where there is none. */
  readonly body: unknown;
  /** Null where the connection was ended without an answer. */
  readonly status: number | null;
  /** The first 2,000 characters of the answer. */
  readonly reply: string;
  /** Kinds of the faults that hit it. */
  readonly faults: readonly FaultKind[];
}

/** `seq` counts from 1 without gaps; `atMs`: when it was answered, the exchange's clock in Unix milliseconds. */
export type JournalledRequest = RequestBody & Numbered;

interface Visit {
  readonly request: ExchangeRequest;
  readonly response: ServerResponse;
  readonly target: RequestTarget;
  readonly treatment: Treatment;
}

const TEXT_KEPT = 2000;
/** A slow body is sent in at most this many pieces. */
const MAX_PIECES = 20;

/** Requests to the exchange's own paths. `onHandled`: the moment of the next firing may have changed. */
export function createTraffic(
  clock: ExchangeClock,
  exchange: SimulatedExchange,
  plan: FaultPlan,
  requests: Journal<RequestBody, unknown>,
  onHandled: () => void,
) {
  const { nowMs } = clock;
  const { later, hold, releaseHeld } = createWaitingRoom(clock);
  const cached = new Map<string, Reply>();

  function ownReply({ request, target, treatment: { verdict, grantSeconds } }: Visit): Reply {
    const { apply, cachedBy } = verdict ?? {};
    if (apply === 'no') return { status: 200, headers: {}, body: '' };
    const name = JSON.stringify([cachedBy, target]);
    const known = cachedBy === undefined ? undefined : cached.get(name);
    if (known !== undefined) return known;
    const own = exchange.handle(request, nowMs(), apply === 'pretend' ? apply : undefined, grantSeconds);
    onHandled();
    if (cachedBy !== undefined && own.status < 300) cached.set(name, own);
    return own;
  }

  function answer(visit: Visit): void {
    const { verdict, replyWaitMs } = visit.treatment;
    const own = ownReply(visit);
    const said = verdict?.tell === undefined ? own : verdict.tell(own);
    const told = said !== null && 'kind' in said ? renderFor(visit.request, said) : said;
    requests.append(entryOf(visit, told), nowMs());
    later(replyWaitMs, () => {
      visit.response.setHeader('date', httpDate(nowMs()));
      deliver(visit, told, later);
    });
  }

  function decide(target: RequestTarget): Treatment {
    const atMs = nowMs();
    const { operation, market } = target;
    const treatment = plan.treat(target, atMs);
    for (const { faultId, kind } of treatment.hits)
      exchange.log.append({ kind: 'fault-applied', faultId, fault: kind, operation, market }, atMs);
    return treatment;
  }

  return {
    serve: (incoming: IncomingMessage, response: ServerResponse): void =>
      readBody(incoming, (body) => {
        const { method = '', url = '', headers } = incoming;
        const request = { method, path: url, headers, body };
        const target = exchange.target(request);
        const visit: Visit = { request, response, target, treatment: decide(target) };
        const { hang, waitMs } = visit.treatment;
        const go = () => later(waitMs, () => answer(visit));
        const drop = () => {
          requests.append(entryOf(visit, null), nowMs());
          response.destroy();
        };
        if (hang === null) go();
        else hold(hang, hang.mode === 'hold' ? go : drop);
      }),
    releaseHeld,
  };
}

function entryOf({ request, target, treatment }: Visit, told: CannedReply | null): RequestBody {
  const cut = (text: string | Buffer) => String(text).slice(0, TEXT_KEPT);
  const { method, path, body } = request;
  const seen = { method, path, body: readJson(cut(body)) };
  const answer = { status: told?.status ?? null, reply: cut(told?.body ?? '') };
  return { ...target, ...seen, ...answer, faults: treatment.hits.map(({ kind }) => kind) };
}

/** The JSON of a text; the text where it is none, and null where it is empty. */
function readJson(text: string): unknown {
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

function createWaitingRoom(clock: ExchangeClock) {
  const held = new Map<number, Set<() => void>>();

  const later: Later = (delayMs, run) => {
    if (delayMs <= 0) run();
    else clock.after(delayMs, run);
  };
  /** What one fault holds is let go in the order of its arrival, so that nonces stay in order. */
  function release(faultId: number): void {
    const ends = held.get(faultId) ?? [];
    held.delete(faultId);
    for (const end of ends) end();
  }
  return {
    later,
    hold: ({ faultId, ms, endsWithFault }: NonNullable<Treatment['hang']>, ended: () => void): void => {
      held.set(faultId, (held.get(faultId) ?? new Set()).add(ended));
      if (ms === Infinity) return;
      later(ms, () => {
        if (endsWithFault) release(faultId);
        else if (held.get(faultId)?.delete(ended) === true) ended();
      });
    },
    releaseHeld: (): void => {
      for (const faultId of held.keys()) release(faultId);
    },
  };
}

/** Sends a reply, half of it where it is cut off. Does nothing where the client has gone. */
function deliver({ response, treatment }: Visit, reply: CannedReply | null, later: Later): void {
  const { verdict, bodyMs } = treatment;
  // Not that of the response: it has none while the reply to an earlier request of the connection is under way.
  const { socket } = response.req;
  if (response.destroyed || socket.destroyed) return;
  if (reply === null) return void socket.resetAndDestroy();
  const body = Buffer.from(reply.body);
  const isCutOff = verdict?.isCutOff === true;
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
    response.write(body.subarray(cut(piece), cut(piece + 1)));
    if (piece + 1 < pieces) later(bodyMs / pieces, () => sendFrom(piece + 1));
    else response.end();
  };
  later(bodyMs / pieces, () => sendFrom(0));
}
