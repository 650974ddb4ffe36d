import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../ports.ts';
import type { Reply } from './answer.ts';
import { deliver } from './delivery.ts';
import { createHttpDate } from './exchange-clock.ts';
import { type ExchangeRequest, MAX_BODY_BYTES } from './exchange-request.ts';
import type { FaultPlan } from './fault-plan.ts';
import { type Treatment, UNTOUCHED } from './faults.ts';
import type { SimulatedExchange } from './simulated-exchange.ts';
import { createWaitingRoom } from './waiting-room.ts';

export interface TrafficParts {
  readonly clock: Clock;
  /** The exchange's clock, Unix milliseconds. */
  readonly nowMs: () => number;
  readonly exchange: SimulatedExchange;
  readonly plan: FaultPlan;
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

export function createTraffic(parts: TrafficParts): Traffic {
  const { clock, nowMs, exchange, plan } = parts;
  const { later, hold, releaseHeld, stop } = createWaitingRoom(clock);
  const httpDate = createHttpDate();

  const cached = new Map<string, Reply>();

  /** What the exchange answers, or what a cache before it repeats. */
  function ownReply(request: ExchangeRequest, { apply, fate, grantSeconds }: Treatment): Reply {
    if (apply === 'no') return NOTHING;
    const { operation, market, key } = exchange.target(request);
    const name = fate.kind === 'cached' ? JSON.stringify([fate.faultId, operation, market, key]) : null;
    const known = name === null ? undefined : cached.get(name);
    if (known !== undefined) return known;
    const own = exchange.handle(request, nowMs(), apply === 'pretend' ? apply : undefined, grantSeconds);
    parts.onHandled();
    if (name !== null && own.status < 300) cached.set(name, own);
    return own;
  }

  function answer(request: ExchangeRequest, response: ServerResponse, treatment: Treatment): void {
    const { fate, bodyMs, replyWaitMs } = treatment;
    const own = ownReply(request, treatment);
    later(replyWaitMs, () => {
      response.setHeader('date', httpDate(nowMs()));
      deliver(response, own, fate, bodyMs, later);
    });
  }

  function decide(request: ExchangeRequest): Treatment {
    const atMs = nowMs();
    if (plan.active(atMs).length === 0) return UNTOUCHED;
    const target = exchange.target(request);
    const { operation, market } = target;
    const treatment = plan.treat(target, atMs);
    for (const { faultId, kind } of treatment.hits) {
      exchange.log.append({ kind: 'fault-applied', faultId, fault: kind, operation, market }, atMs);
    }
    return treatment;
  }

  function treat(request: ExchangeRequest, response: ServerResponse): void {
    const treatment = decide(request);
    const go = () => later(treatment.waitMs, () => answer(request, response, treatment));
    const { hang } = treatment;
    if (hang === null) go();
    else hold(hang, hang.mode === 'hold' ? go : () => response.destroy());
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
