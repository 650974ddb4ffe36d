import { expect } from 'vitest';
import type { CoreSettings, OrderType, Outcome } from '../../src/core/events.ts';
import type { Notice } from '../../src/core/notice.ts';
import type { CoreState } from '../../src/core/state.ts';
import { createKeeper } from '../../src/keeper.ts';
import type { Cancel, Exchange, SyncRequest } from '../../src/ports.ts';
import { coreSettings, type SettingsOptions } from '../core/core-settings.ts';
import { gaps, LOST } from '../core/driver.ts';
import { createHostClock, createTimeline, type Timeline } from '../simulation/virtual-clock.ts';

/** One request that left the daemon. Moments in true milliseconds since the start. */
export interface Write {
  readonly atMs: number;
  /** In the order of signing, as nonces are. */
  readonly number: number;
  readonly market: string;
  readonly timeoutSeconds: number | null;
  readonly base: number;
  readonly fresh: boolean;
}

/** What happens to a request instead of the ordinary. `applied`: the exchange carries it out all the same. */
export type Fate =
  | { readonly kind: 'lost'; readonly applied?: boolean }
  | { readonly kind: 'fails'; readonly outcome: Outcome; readonly applied?: boolean }
  /** Arrives, and is carried out, this much later. */
  | { readonly kind: 'slow'; readonly byMs: number }
  /** Is carried out at once and answered this much later. */
  | { readonly kind: 'late'; readonly byMs: number };
export type Rule = (write: Write) => Fate | null;

export interface BenchOptions extends SettingsOptions {
  readonly roundTripMs?: number;
  /** How long a fresh connection takes to open. */
  readonly connectMs?: number;
  /** By how much the exchange's clock runs ahead: it shifts its whole seconds against those of the daemon. */
  readonly exchangeAheadMs?: number;
}

/** Two base addresses of one account. */
export const TWO_ADDRESSES = { bases: ['https://one.example', 'https://two.example'], sameAccount: true };

/** The times between the requests of a market from then on, milliseconds. */
export const gapsOf = (bench: Bench, market: string, fromMs: number) => gaps(bench.writesOf(market, fromMs));

/** What is true at the exchange: Unix milliseconds at the start of every bench. */
export const EPOCH_MS = 1_700_000_000_000;
const NOT_LEFT: Outcome = { ...LOST, reason: 'aborted', detail: 'may not leave', maybeApplied: false };

/** The timers at the exchange: the truth that belief is measured by. Stamps are whole seconds, rounded down. */
function createBook(timeline: Timeline, settings: CoreSettings, epochMs: number) {
  /** And the true moments at which they fire. */
  const timers = new Map<string, { readonly firesMs: number }>();
  const fired: { readonly market: string; readonly atMs: number }[] = [];
  const applied: Write[] = [];
  let lastNumber = 0;

  return {
    timers,
    fired,
    /** What was carried out, in the order of arrival. */
    applied,
    firedOf: (market: string) => fired.filter((one) => one.market === market),
    /** Carries a request out. With rising nonces one that was overtaken is refused. */
    arrive(write: Write, types: readonly OrderType[] | null): Outcome {
      if (settings.nonce === 'increasing' && write.number < lastNumber)
        return { kind: 'nonce', detail: 'overtaken' };
      lastNumber = write.number;
      applied.push(write);
      const { market, timeoutSeconds } = write;
      if (timeoutSeconds === null) {
        timers.delete(market);
        return { kind: 'deleted' };
      }
      const startTime = Math.floor((epochMs + timeline.nowMs()) / 1000);
      const cancellationTime = startTime + timeoutSeconds;
      const firesMs = cancellationTime * 1000 + settings.cancellationDelayMs - epochMs;
      const timer = { firesMs };
      timers.set(market, timer);
      timeline.at(firesMs, () => {
        if (timers.get(market) !== timer) return;
        timers.delete(market);
        fired.push({ market, atMs: timeline.nowMs() });
      });
      return { kind: 'applied', timer: { market, startTime, cancellationTime, types } };
    },
  };
}
type Book = ReturnType<typeof createBook>;

/** Events of one instant have an order: this much is not a wrong belief. */
const TOLERANCE_MS = 5;
const MOST_IN_FLIGHT = 3;
/** Of many markets only so many are looked at each time, in turns. */
const LOOKED_AT = 20;

/**
 * What is wrong with what the core believes now, measured by what is true at the exchange. Guarantee 1. `turn`
 * counts the calls.
 */
function watchBelief(state: Readonly<CoreState>, book: Book, nowMs: number, turn: number): string[] {
  const wrong: string[] = [];
  const groups = Math.ceil(state.markets.length / LOOKED_AT);
  const from = (turn % groups) * LOOKED_AT;
  for (const market of state.markets.slice(from, from + LOOKED_AT)) {
    const name = market.settings.market;
    const firesMs = book.timers.get(name)?.firesMs ?? null;
    const slack = state.slackMs(market);
    if (slack > TOLERANCE_MS && (firesMs === null || firesMs < nowMs + slack - TOLERANCE_MS)) {
      const truth = firesMs === null ? 'nothing is armed' : `it fires in ${firesMs - nowMs} ms`;
      wrong.push(`${nowMs} ms: ${name} is believed to be armed for ${slack} ms more, ${truth}`);
    }
    const { notAfterMs } = market.belief;
    const latestMs = notAfterMs === null ? 0 : notAfterMs - state.now.monoMs;
    const inMs = firesMs === null || state.phase.kind === 'stopped' ? -Infinity : firesMs - nowMs;
    if (latestMs < inMs - TOLERANCE_MS)
      wrong.push(`${nowMs} ms: ${name} is believed to fire within ${latestMs} ms, it fires in ${inMs} ms`);
    const { length } = market.openWrites;
    if (length > MOST_IN_FLIGHT) wrong.push(`${nowMs} ms: ${name} has ${length} requests in flight`);
  }
  return wrong;
}

/** The whole keeper on virtual time against a small exchange in memory that does what a test tells it. */
export function createBench(options: BenchOptions = {}) {
  const { roundTripMs = 20, connectMs = roundTripMs, exchangeAheadMs = 0, ...given } = options;
  const settings = coreSettings(given);
  const timeline = createTimeline(0);
  const clock = createHostClock(timeline, { wallMs: EPOCH_MS });
  const writes: Write[] = [];
  const pings: number[] = [];
  const notices: { readonly atMs: number; readonly notice: Notice }[] = [];
  const rules: Rule[] = [];
  const violations: string[] = [];
  let pingDown = (_base: number): boolean => false;
  let signed = 0;
  const book = createBook(timeline, settings, EPOCH_MS + exchangeAheadMs);

  function sync(request: SyncRequest, settled: (outcome: Outcome) => void): Cancel {
    let over = false;
    let written = false;
    signed += 1;
    const number = signed;
    request.signed();
    const settle = (outcome: Outcome) =>
      clock.whenRunning(() => {
        if (over) return;
        over = true;
        settled(outcome);
      });
    const later = (afterMs: number, run: () => void) => timeline.at(timeline.nowMs() + afterMs, run);
    function write(): void {
      if (over) return;
      if (!request.mayWrite()) {
        later(0, () => settle(NOT_LEFT));
        return;
      }
      written = true;
      const { market, timeoutSeconds, base, fresh } = request;
      const sent: Write = { atMs: timeline.nowMs(), number, market, timeoutSeconds, base, fresh };
      writes.push(sent);
      let fate: Fate | null = null;
      for (const rule of rules) fate ??= rule(sent);
      const arrive = () => book.arrive(sent, request.types);
      if (fate?.kind === 'lost' || fate?.kind === 'fails') {
        const { kind, applied = false } = fate;
        if (applied) later(roundTripMs / 2, arrive);
        if (kind === 'fails') later(roundTripMs, () => settle(fate.outcome));
      } else {
        const { kind, byMs } = fate ?? { kind: 'slow', byMs: 0 };
        later(roundTripMs / 2 + (kind === 'slow' ? byMs : 0), () => {
          const outcome = arrive();
          later(roundTripMs / 2 + (kind === 'late' ? byMs : 0), () => settle(outcome));
        });
      }
    }
    if (request.fresh) later(connectMs, () => clock.whenRunning(write));
    else write();
    return () => later(0, () => settle(written ? LOST : { ...LOST, maybeApplied: false }));
  }

  const exchange: Exchange = {
    sync,
    ping(base, timeoutMs, settled) {
      pings.push(timeline.nowMs());
      const down = pingDown(base);
      const latencyMs = down ? timeoutMs : roundTripMs;
      return clock.after(latencyMs, () =>
        settled(
          down ? { ok: false, latencyMs, reason: 'timeout', detail: 'no pong' } : { ok: true, latencyMs },
        ),
      );
    },
  };
  // The time of the bench is the true one: no notice is dated by a clock that a test has bent.
  const observe = (notice: Notice) => void notices.push({ atMs: timeline.nowMs(), notice });
  const keeper = createKeeper({ settings, clock, exchange, observe });
  let turns = 0;
  keeper.onTurn(() => {
    turns += 1;
    violations.push(...watchBelief(keeper.state, book, timeline.nowMs(), turns));
  });

  const bench = {
    settings,
    timeline,
    clock,
    keeper,
    book,
    writes,
    pings,
    rules,
    nowMs: () => timeline.nowMs(),
    /** Lets time pass; no belief may ever be wrong meanwhile. */
    run(forMs: number): void {
      timeline.runUntil(timeline.nowMs() + forMs);
      expect(violations).toEqual([]);
    },
    start(forMs = 2000): void {
      keeper.start();
      bench.run(forMs);
    },
    at: (atMs: number, run: () => void) => timeline.at(atMs, run),
    /** From now on for so long, requests (of these markets, or of all) meet this fate. */
    strike(fate: Fate, forMs: number, ...markets: readonly string[]): void {
      const fromMs = timeline.nowMs();
      rules.push(({ atMs, market }) => {
        const hits = atMs >= fromMs && atMs < fromMs + forMs;
        return hits && (markets.length === 0 || markets.includes(market)) ? fate : null;
      });
    },
    pingsFail(isDown: (base: number) => boolean): void {
      pingDown = isDown;
    },
    /** The bot beats from now until `untilMs`, where the host runs. */
    beats(untilMs: number, everyMs = 3000, bot = 'bot'): void {
      if (timeline.nowMs() > untilMs) return;
      if (!clock.isStalled()) keeper.hear(bot, 'beat', 0);
      timeline.at(timeline.nowMs() + everyMs, () => bench.beats(untilMs, everyMs, bot));
    },
    stop(policy: 'delete' | 'keep' | 'handoff' = 'delete'): void {
      void keeper.stop(policy, 'SIGTERM');
    },
    /** What the stop left, and when it said so; null while it lasts. */
    ended: () => bench.noticesOf('stopped')[0] ?? null,
    /** Moments at which renewals (or deletes) of a market were written. */
    writesOf: (market: string, fromMs = 0, toMs = Number.POSITIVE_INFINITY) =>
      writes.filter((write) => write.market === market && write.atMs >= fromMs && write.atMs < toMs),
    noticesOf<Kind extends Notice['kind']>(kind: Kind, fromMs = 0) {
      return notices.flatMap(({ atMs, notice }) =>
        notice.kind === kind && atMs >= fromMs
          ? [{ atMs, ...(notice as Extract<Notice, { kind: Kind }>) }]
          : [],
      );
    },
  };
  return bench;
}
export type Bench = ReturnType<typeof createBench>;

/** A bench whose keeper has run for so long. */
export function started(options: BenchOptions, forMs: number): Bench {
  const bench = createBench(options);
  bench.start(forMs);
  return bench;
}
