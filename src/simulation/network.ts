import type { Transport, WireRequest, WireResult } from '../exchange/wire.ts';
import type { ExchangeRequest, SimulatedExchange } from '../simulator/simulated-exchange.ts';
import type { HostClock, Timeline } from '../simulator/virtual-clock.ts';
import type { Fault, FaultKind } from './plan.ts';

/** One request on the simulated wire, as faults and invariants see it. */
export interface Sent {
  readonly daemon: number;
  readonly operation: string | null;
  readonly market: string | null;
  readonly request: ExchangeRequest;
  /** Counts the requests of one daemon: every draw of a fault is a function of fault and number. */
  readonly number: number;
}

export interface NetworkOptions {
  readonly timeline: Timeline;
  readonly clock: HostClock;
  readonly daemon: number;
  readonly exchange: SimulatedExchange;
  /** The exchange's clock, Unix milliseconds. */
  readonly serverNowMs: () => number;
  readonly roundTripMs: number;
  /** The faults of a kind that hold now and hit this request. */
  readonly hits: (kind: FaultKind, sent: Sent) => Fault | null;
  /** A number in [0, 1) that depends on the seed, the purpose and the request only. */
  readonly draw: (purpose: number, sent: Sent) => number;
  /** The first byte leaves now. */
  readonly onWrite: (sent: Sent) => void;
  /** Runs `handle` as this request's arrival, so that what it changes at the exchange can be told apart. */
  readonly arrive: (sent: Sent, handle: () => void) => void;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const NO_ANSWER: Answer | null = null;
const html = (status: number, title: string): Answer => ({
  status,
  headers: { 'content-type': 'text/html' },
  body: `<html><head><title>${title}</title></head><body><h1>${status} ${title}</h1></body></html>`,
});
const json = (status: number, value: unknown): Answer => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(value),
});

/** The wire of one simulated daemon: everything of the real client above it is the production code. */
export function createNetwork(options: NetworkOptions): Transport {
  const { timeline, clock, roundTripMs } = options;
  let numbers = 0;

  function send(request: WireRequest, done: (result: WireResult) => void) {
    const sent = describe(options, request, numbers);
    numbers += 1;
    let settled = false;
    let written = false;
    /** Tells the daemon, as soon as its host runs. */
    const settle = (result: WireResult) => {
      clock.whenRunning(() => {
        if (settled) return;
        settled = true;
        done(result);
      });
    };
    const write = () => {
      if (settled) return;
      if (!request.mayWrite()) {
        settle(failed('aborted', 'no longer allowed to leave', false));
        return;
      }
      written = true;
      options.onWrite(sent);
      travel(options, sent, settle);
    };
    if (options.hits('refuse-connections', sent) !== null) {
      timeline.at(timeline.nowMs() + roundTripMs, () =>
        settle(failed('network', 'connection refused', false)),
      );
    } else if (request.fresh) {
      timeline.at(timeline.nowMs() + roundTripMs, () => clock.whenRunning(write));
    } else {
      write();
    }
    return () => {
      if (settled) return;
      timeline.at(timeline.nowMs(), () => settle(failed('timeout', 'given up', written)));
    };
  }
  return { send, close: async () => {} };
}

function describe(options: NetworkOptions, wire: WireRequest, number: number): Sent {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(wire.headers)) headers[name.toLowerCase()] = value;
  const request = { method: wire.method, path: wire.path, headers, body: wire.body ?? '' };
  const { operation, market } = options.exchange.target(request);
  return { daemon: options.daemon, operation, market, request, number };
}

function failed(
  reason: 'network' | 'timeout' | 'aborted' | 'parse',
  detail: string,
  maybeApplied: boolean,
): WireResult {
  return { kind: 'failed', reason, detail, maybeApplied };
}

/** From the first byte to the answer, with everything that may happen to either. */
function travel(options: NetworkOptions, sent: Sent, settle: (result: WireResult) => void): void {
  const { timeline, roundTripMs, hits, draw } = options;
  if (hits('black-hole', sent) ?? hits('lose-request', sent)) return;
  const wayMs = (roundTripMs / 2) * (0.8 + 0.4 * draw(1, sent)) + (hits('delay', sent)?.sizeMs ?? 0);
  if (hits('reset-before', sent) !== null) {
    timeline.at(timeline.nowMs() + wayMs, () => settle(failed('network', 'connection reset', true)));
    return;
  }
  timeline.at(timeline.nowMs() + wayMs, () => {
    const answer = serve(options, sent);
    if (answer !== null) reply(options, sent, answer, settle);
  });
}

/** What the exchange, or a gateway before it, makes of the request. Null where it never answers. */
function serve(options: NetworkOptions, sent: Sent): Answer | null {
  const { hits, exchange, serverNowMs } = options;
  if (hits('black-hole', sent) !== null) return NO_ANSWER;
  if (hits('server-error', sent) !== null) return json(500, { error: ['Internal server error.'] });
  if (hits('gateway-page', sent) !== null) return html(503, 'Service Temporarily Unavailable');
  if (hits('throttled-page', sent) !== null) return html(429, 'Too Many Requests');
  const isPing = sent.operation === 'ping';
  if (!isPing) {
    if (hits('throttled-json', sent) !== null)
      return json(429, { code: 0, message: 'Too many requests.', errors: {} });
    if (hits('unauthorised', sent) !== null) return json(401, { code: 10, message: 'Unauthorized request.' });
    if (hits('bad-request', sent) !== null) {
      return json(422, {
        code: 31,
        message: 'Validation failed',
        errors: { market: ['Market is not available.'] },
      });
    }
    if (hits('error-in-200', sent) !== null)
      return json(200, { code: 0, message: 'Something went wrong', errors: {} });
  }
  const lies = !isPing && hits('lie', sent) !== null;
  let answer: Answer = html(500, 'unreached');
  options.arrive(sent, () => {
    answer = exchange.handle(sent.request, serverNowMs(), lies ? 'pretend' : undefined);
  });
  // Only what reached the exchange is sent on a second time: a gateway that refuses does not pass it on later.
  const twin = hits('duplicate', sent);
  if (twin !== null) {
    options.timeline.at(options.timeline.nowMs() + twin.sizeMs, () => {
      options.arrive(sent, () => exchange.handle(sent.request, serverNowMs()));
    });
  }
  return !isPing && hits('unacknowledged', sent) !== null
    ? json(500, { error: ['Internal server error.'] })
    : answer;
}

function reply(
  options: NetworkOptions,
  sent: Sent,
  answer: Answer,
  settle: (result: WireResult) => void,
): void {
  const { timeline, roundTripMs, hits, draw, serverNowMs } = options;
  if (hits('lose-reply', sent) !== null) return;
  const wayMs = (roundTripMs / 2) * (0.8 + 0.4 * draw(2, sent)) + (hits('slow-body', sent)?.sizeMs ?? 0);
  const date = new Date(serverNowMs()).toUTCString();
  timeline.at(timeline.nowMs() + wayMs, () => {
    if (hits('reset-after', sent) !== null) return settle(failed('network', 'connection reset', true));
    if (hits('cut-off', sent) !== null) return settle(failed('parse', 'the body ended early', true));
    const headers = { ...answer.headers, date };
    return settle({
      kind: 'response',
      status: answer.status,
      headers,
      body: Buffer.from(answer.body, 'utf8'),
    });
  });
}
