import type { Transport, WireRequest, WireResult } from '../exchange/wire.ts';
import type { HostClock, Timeline } from '../simulator/virtual-clock.ts';
import { type Answer, createGateway } from './gateway.ts';
import { REQUEST_LIFETIME_MS } from './plan.ts';
import type { Sent } from './sent.ts';
import type { SimulatedServer } from './server.ts';
import type { WireFaults } from './wire-faults.ts';

export interface NetworkOptions {
  readonly timeline: Timeline;
  readonly clock: HostClock;
  readonly daemon: number;
  readonly life: number;
  readonly bases: readonly string[];
  readonly server: SimulatedServer;
  readonly faults: WireFaults;
  readonly roundTripMs: number;
  /** How long the host is to stand still while it opens the next connection; null where it is not. */
  readonly takeHalt: () => Halt | null;
  /** The first byte leaves now. */
  readonly onWrite: (sent: Sent) => void;
  /** It has reached the exchange, or what stands before it. */
  readonly onArrival: (sent: Sent) => void;
  /** The exchange answers as if it had carried out what it did not. */
  readonly onLie: (sent: Sent) => void;
}

export interface Halt {
  readonly forMs: number;
  readonly sleeps: boolean;
}

type Settle = (result: WireResult) => void;

/** The wire of one simulated daemon: everything of the real client above it is the production code. */
export function createNetwork(options: NetworkOptions): Transport {
  const { timeline, clock, faults, roundTripMs } = options;
  const describe = createDescriber(options);
  const travel = createTraveller(options);

  function send(wire: WireRequest, done: Settle) {
    const sent = describe(wire);
    let settled = false;
    let written = false;
    /** Tells the daemon, as soon as its host runs. */
    const settle: Settle = (result) => {
      clock.whenRunning(() => {
        if (settled) return;
        settled = true;
        done(result);
      });
    };
    const write = () => {
      if (settled) return;
      if (!wire.mayWrite()) {
        settle(failed('aborted', 'no longer allowed to leave', false));
        return;
      }
      written = true;
      options.onWrite(sent);
      travel(sent, settle);
    };
    const halt = sent.order === null ? null : options.takeHalt();
    if (halt !== null) standStill(timeline, clock, roundTripMs / 2, halt);
    const refused = faults.hits('refuse-connections', sent) ?? faults.hits('base-refuses', sent);
    if (refused !== null) {
      timeline.at(timeline.nowMs() + roundTripMs, () =>
        settle(failed('network', 'connection refused', false)),
      );
    } else if (wire.fresh || halt !== null || faults.hits('reconnect', sent) !== null) {
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

function standStill(timeline: Timeline, clock: HostClock, inMs: number, { forMs, sleeps }: Halt): void {
  timeline.at(timeline.nowMs() + inMs, () => {
    if (sleeps) clock.suspend(forMs);
    else clock.stall(forMs);
  });
}

/** Numbers requests and reads what they ask for, once for everybody who looks at them. */
function createDescriber({ daemon, life, bases }: NetworkOptions): (wire: WireRequest) => Sent {
  const lowerCase = new Map<string, string>();
  const counts = new Map<string | null, number>();
  let number = -1;

  function lowered(given: WireRequest['headers']): Record<string, string> {
    const headers: Record<string, string> = {};
    for (const name in given) {
      let lower = lowerCase.get(name);
      if (lower === undefined) {
        lower = name.toLowerCase();
        lowerCase.set(name, lower);
      }
      headers[lower] = given[name] ?? '';
    }
    return headers;
  }
  return (wire) => {
    const { method, path, body } = wire;
    const asked: { market: string; nonce: string; timeout: string | null } | null =
      body === null ? null : JSON.parse(body);
    const market = asked?.market ?? null;
    const nth = counts.get(market) ?? 0;
    counts.set(market, nth + 1);
    number += 1;
    const request = { method, path, headers: lowered(wire.headers), body: body ?? '' };
    const order = asked && {
      nonce: asked.nonce,
      timeoutSeconds: asked.timeout === null ? null : Number(asked.timeout),
    };
    return { daemon, life, base: bases.indexOf(wire.base), market, order, request, number, nth };
  };
}

function failed(
  reason: 'network' | 'timeout' | 'aborted' | 'parse',
  detail: string,
  maybeApplied: boolean,
): WireResult {
  return { kind: 'failed', reason, detail, maybeApplied };
}

/** From the first byte to the answer, with everything that may happen to either. */
function createTraveller(options: NetworkOptions): (sent: Sent, settle: Settle) => void {
  const { timeline, faults, roundTripMs, server } = options;
  const serve = createGateway(options);
  const wayMs = (purpose: number, sent: Sent) => (roundTripMs / 2) * (0.8 + 0.4 * faults.draw(purpose, sent));

  function reply(sent: Sent, answer: Answer, settle: Settle): void {
    if (faults.hits('lose-reply', sent) !== null) return;
    const backMs = wayMs(2, sent) + (faults.hits('slow-body', sent)?.sizeMs ?? 0);
    const answeredMs = server.nowMs();
    timeline.at(timeline.nowMs() + backMs, () => {
      if (faults.hits('reset-after', sent) !== null) {
        settle(failed('network', 'connection reset', true));
        return;
      }
      if (faults.hits('cut-off', sent) !== null) {
        settle(failed('parse', 'the body ended early', true));
        return;
      }
      const headers = {
        ...answer.headers,
        // Few answers are asked for it, and it is dear to make.
        get date() {
          return server.dateOf(answeredMs);
        },
      };
      const { status, body } = answer;
      settle({ kind: 'response', status, headers, body: Buffer.from(body, 'utf8') });
    });
  }

  return (sent, settle) => {
    const { hits } = faults;
    const writtenMs = timeline.nowMs();
    if ((hits('black-hole', sent) ?? hits('base-silent', sent) ?? hits('lose-request', sent)) !== null)
      return;
    const delayMs = hits('delay', sent)?.sizeMs ?? 0;
    const reorderMs = (hits('reorder', sent)?.sizeMs ?? 0) * faults.draw(3, sent);
    const thereMs = writtenMs + Math.min(wayMs(1, sent) + delayMs + reorderMs, REQUEST_LIFETIME_MS);
    if (hits('reset-before', sent) !== null) {
      timeline.at(thereMs, () => settle(failed('network', 'connection reset', true)));
      return;
    }
    timeline.at(thereMs, () => {
      options.onArrival(sent);
      const answer = serve(sent, writtenMs);
      if (answer !== null) reply(sent, answer, settle);
    });
  };
}
