import type { Notice } from '../../src/core/notice.ts';
import { createExchange } from '../../src/exchange/exchange.ts';
import type { Transport, WireRequest, WireResult } from '../../src/exchange/wire.ts';
import { createKeeper } from '../../src/keeper.ts';
import type { Exchange } from '../../src/ports.ts';
import type { Reply } from '../../src/simulator/answer.ts';
import type { ExchangeEvent } from '../../src/simulator/event-log.ts';
import { createSimulatedExchange, type ExchangeOptions } from '../../src/simulator/simulated-exchange.ts';
import { coreSettings, type SettingsOptions } from '../core/core-settings.ts';
import { createHostClock, createTimeline, type HostClock } from '../simulation/virtual-clock.ts';

export const EPOCH_MS = 1_700_000_000_000;
const BASE = 'https://exchange.example';
const ROUND_TRIP_MS = 20;
const CREDENTIALS = { key: 'demo-key', secret: 'demo-secret' };

/** What the wire makes of an answer, or of a request that the exchange never sees; null leaves it as it is. */
export type Twist = (request: WireRequest, atMs: number) => Reply | 'lost' | null;

export interface WireOptions extends SettingsOptions {
  readonly exchange?: ExchangeOptions;
}

/**
 * A world of one simulated exchange, whose daemons are the production client and keeper over a virtual wire. Their
 * limiter always has a permit, and their pings go nowhere.
 */
export function createWireBench(options: WireOptions = {}) {
  const { exchange: simulated, ...given } = options;
  const settings = coreSettings({ bases: [BASE], ...given });
  const timeline = createTimeline(0);
  const server = createSimulatedExchange({ profile: 'live', ...simulated });
  const requests: {
    readonly atMs: number;
    readonly body: Record<string, unknown>;
    readonly status: number;
  }[] = [];
  const notices: { readonly atMs: number; readonly notice: Notice }[] = [];
  let twist: Twist = () => null;
  let credentials = CREDENTIALS;

  const serverNowMs = () => EPOCH_MS + timeline.nowMs();
  let cancelFiring = () => {};
  function planFiring(): void {
    cancelFiring();
    const dueMs = server.nextFiringMs();
    if (dueMs === null) return;
    cancelFiring = timeline.at(dueMs - EPOCH_MS, () => {
      server.advance(serverNowMs());
      planFiring();
    });
  }

  function answer(request: WireRequest): Reply | 'lost' {
    const twisted = twist(request, timeline.nowMs());
    if (twisted !== null) return twisted;
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(request.headers)) headers[name.toLowerCase()] = value;
    const { method, path } = request;
    const reply = server.handle({ method, path, headers, body: request.body ?? '' }, serverNowMs());
    planFiring();
    return reply;
  }

  function transportOf(clock: HostClock): Transport {
    function send(request: WireRequest, done: (result: WireResult) => void) {
      let over = false;
      const later = (afterMs: number, run: () => void) => timeline.at(timeline.nowMs() + afterMs, run);
      const settle = (result: WireResult) =>
        clock.whenRunning(() => {
          if (over) return;
          over = true;
          done(result);
        });
      const write = () => {
        if (over) return;
        if (!request.mayWrite()) {
          const held = { kind: 'failed', reason: 'aborted', detail: 'held', maybeApplied: false } as const;
          later(0, () => settle(held));
          return;
        }
        const atMs = timeline.nowMs();
        later(ROUND_TRIP_MS / 2, () => {
          const reply = answer(request);
          requests.push({
            atMs,
            body: JSON.parse(request.body ?? '{}'),
            status: reply === 'lost' ? 0 : reply.status,
          });
          if (reply === 'lost') return;
          const headers = { ...reply.headers, date: new Date(serverNowMs()).toUTCString() };
          const body = Buffer.from(reply.body, 'utf8');
          later(ROUND_TRIP_MS / 2, () => settle({ kind: 'response', status: reply.status, headers, body }));
        });
      };
      if (request.fresh) later(ROUND_TRIP_MS, () => clock.whenRunning(write));
      else write();
      return () =>
        later(0, () => settle({ kind: 'failed', reason: 'timeout', detail: 'given up', maybeApplied: true }));
    }
    return { send, close: async () => {} };
  }

  return {
    server,
    timeline,
    requests,
    run: (forMs: number) => timeline.runUntil(timeline.nowMs() + forMs),
    nowMs: () => timeline.nowMs(),
    twist: (next: Twist) => {
      twist = next;
    },
    setCredentials: (next: typeof CREDENTIALS) => {
      credentials = next;
    },
    /** Starts a daemon whose wall clock is wrong by so much. */
    boot(wallOffsetMs = 0) {
      const clock = createHostClock(timeline, { wallMs: EPOCH_MS + timeline.nowMs() + wallOffsetMs });
      const { bases, nonce } = settings;
      const real = createExchange({
        bases,
        credentials: () => credentials,
        nonce,
        clock,
        transport: transportOf(clock),
      });
      const exchange: Exchange = {
        ...real,
        ping: () => () => {},
      };
      const observe = (notice: Notice) => notices.push({ atMs: timeline.nowMs(), notice });
      const keeper = createKeeper({ settings, clock, exchange, observe });
      keeper.start();
      return { keeper, clock };
    },
    noticesOf<Kind extends Notice['kind']>(kind: Kind) {
      return notices.flatMap(({ atMs, notice }) =>
        notice.kind === kind ? [{ atMs, ...(notice as Extract<Notice, { kind: Kind }>) }] : [],
      );
    },
    eventsOf: <Kind extends ExchangeEvent['kind']>(kind: Kind) =>
      server.log.since(0).filter((event) => event.kind === kind),
  };
}
