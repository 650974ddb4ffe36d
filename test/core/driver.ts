import { fold } from '../../src/core/belief.ts';
import { createState } from '../../src/core/commands.ts';
import type { BotWord, CommandName, CoreEvent, Effect, Outcome } from '../../src/core/events.ts';
import type { Notice } from '../../src/core/notice.ts';
import { type Awaited, progressOf } from '../../src/core/progress.ts';
import type { CoreState } from '../../src/core/state.ts';
import { mayWrite, noteSigned, step } from '../../src/core/step.ts';
import type { Instant } from '../../src/core/time.ts';
import { describe } from '../../src/core/view.ts';
import { coreSettings, type SettingsOptions } from './core-settings.ts';

type EffectOf<Kind extends Effect['kind']> = Extract<Effect, { kind: Kind }>;
type NoticeOf<Kind extends Notice['kind']> = Extract<Notice, { kind: Kind }>;
type MarketNotice = Extract<Notice, { market: string }>;
export type Write = EffectOf<'write'> & { readonly atMs: number };

/** Unix seconds of the exchange's clock when the driver starts. */
export const SERVER_EPOCH = 1_700_000_000;
const START: Instant = { monoMs: 5000, bootMs: 9000, wallMs: SERVER_EPOCH * 1000 };

/**
 * The core by itself, by hand: nothing is answered unless a test says so. Times are milliseconds since the start. In a
 * nonce window a new life waits until nothing of an earlier one can arrive; there was none unless a test says so.
 */
export function createDriver(options: SettingsOptions = {}, { earlierLife = false } = {}) {
  let now = START;
  const state: CoreState = createState(coreSettings(options), now);
  for (const market of earlierLife ? [] : state.markets) {
    market.belief.writes = [];
    fold(state, market);
  }
  const effects: Effect[] = [];
  const writes: Write[] = [];
  const waiting: { readonly write: Write; readonly dueMs: number }[] = [];
  let taken = 0;
  let seen = 0;
  let looked = 0;
  let connects = true;

  const sinceStartMs = () => now.monoMs - START.monoMs;

  function feed(event: CoreEvent): Effect[] {
    const result: Effect[] = [];
    const queue: CoreEvent[] = [event];
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      for (const effect of step(state, next, now)) {
        result.push(effect);
        if (effect.kind !== 'write') continue;
        writes.push({ ...effect, atMs: sinceStartMs() });
        noteSigned(state, effect.attempt);
        if (connects) mayWrite(state, effect.attempt, now);
      }
    }
    effects.push(...result);
    return result;
  }

  /** Moves the clocks without letting the core look. */
  function move(by: { readonly monoMs?: number; readonly bootMs?: number; readonly wallMs?: number }): void {
    const { monoMs = 0, bootMs = monoMs, wallMs = monoMs } = by;
    now = { monoMs: now.monoMs + monoMs, bootMs: now.bootMs + bootMs, wallMs: now.wallMs + wallMs };
  }

  const driver = {
    state,
    effects,
    writes,
    feed,
    move,
    now: () => now,
    sinceStartMs,
    tick: () => feed({ kind: 'tick' }),
    /** A word of the bot, said now, or that long ago. */
    say: (says: BotWord, bot = 'bot', agoMs = 0) => feed({ kind: 'evidence', bot, says, agoMs }),
    /** Gives an operator's command; null for all markets. */
    operate(does: CommandName, markets: readonly string[] | null = null, forMs = 0): Effect[] {
      seen = writes.length;
      return feed({ kind: 'operate', command: { does, markets, forMs } });
    },
    reload(changed: SettingsOptions): Effect[] {
      seen = writes.length;
      return feed({ kind: 'reload', settings: coreSettings(changed) });
    },
    /** How far what somebody waits for has come. */
    progress(awaited: Awaited, name = 'AAA') {
      const market = state.byName.get(name);
      if (market === undefined) throw new Error(`no market ${name}`);
      return progressOf(state, awaited, market);
    },
    stop: (policy: 'delete' | 'keep' | 'handoff' = 'delete') =>
      feed({ kind: 'stop', policy, why: 'SIGTERM' }),
    /** What an operator sees. */
    look: () => describe(state, now),
    statusOf: (name = 'AAA') => describe(state, now).markets.find(({ market }) => market === name),
    /** Lets time pass, with every tick that the core asks for. */
    wait(forMs: number): void {
      const untilMs = now.monoMs + forMs;
      while (state.wakeAtMs <= untilMs) {
        move({ monoMs: Math.max(0, state.wakeAtMs - now.monoMs) });
        const wokeAtMs = now.monoMs;
        feed({ kind: 'tick' });
        if (state.wakeAtMs <= wokeAtMs && wokeAtMs < untilMs) move({ monoMs: 1 });
        else if (state.wakeAtMs <= wokeAtMs) break;
      }
      move({ monoMs: Math.max(0, untilMs - now.monoMs) });
    },
    /** The writes since the last call. */
    take(): Write[] {
      const fresh = writes.slice(taken);
      taken = writes.length;
      return fresh;
    },
    /** The one write since the last call. */
    takeOne(): Write {
      const [write, ...more] = driver.take();
      if (write === undefined || more.length > 0)
        throw new Error(`${more.length + (write === undefined ? 0 : 1)} requests were written, not one`);
      return write;
    },
    settle: (write: Write, outcome: Outcome) => feed({ kind: 'settled', attempt: write.attempt, outcome }),
    /** Confirms a renewal. The exchange's clock shows what the wall clock showed, whole seconds. */
    apply(
      write: Write,
      timer: {
        readonly startTime?: number;
        readonly timeout?: number;
        readonly types?: readonly string[] | null;
      } = {},
    ): Effect[] {
      const startTime = timer.startTime ?? SERVER_EPOCH + Math.floor(sinceStartMs() / 1000);
      const cancellationTime = startTime + (timer.timeout ?? write.timeoutSeconds ?? 0);
      const types = timer.types === undefined ? write.types : timer.types;
      return driver.settle(write, {
        kind: 'applied',
        timer: { market: write.market, startTime, cancellationTime, types },
      });
    },
    /** Confirms what it asked for. */
    answer: (write: Write): Effect[] =>
      write.timeoutSeconds === null ? driver.settle(write, { kind: 'deleted' }) : driver.apply(write),
    /** Starts, and confirms the first renewal of every market at once. */
    start(): void {
      driver.tick();
      for (let fresh = driver.take(); fresh.length > 0; fresh = driver.take()) {
        for (const write of fresh) driver.apply(write);
      }
      driver.take();
    },
    /** Lets time pass, and answers every request `roundTripMs` after it was written; what is left over, in the next call. */
    live(
      forMs: number,
      roundTripMs = 20,
      answer: (write: Write) => void = (write) => driver.answer(write),
    ): void {
      const untilMs = sinceStartMs() + forMs;
      for (;;) {
        for (const write of driver.take()) waiting.push({ write, dueMs: write.atMs + roundTripMs });
        const first = waiting[0];
        const dueMs = Math.max(first?.dueMs ?? Number.POSITIVE_INFINITY, sinceStartMs());
        const wakeMs = Math.max(state.wakeAtMs - START.monoMs, sinceStartMs());
        const nextMs = Math.min(dueMs, wakeMs, untilMs);
        move({ monoMs: nextMs - sinceStartMs() });
        if (nextMs >= untilMs) return;
        if (first !== undefined && dueMs <= nextMs) {
          waiting.shift();
          answer(first.write);
        } else {
          driver.tick();
          // After its stop the core asks for no tick.
          if (state.phase.kind === 'stopped') move({ monoMs: Math.min(100, untilMs - sinceStartMs()) });
        }
      }
    },
    /** Lets time pass: all requests, or those of these markets, come to this, or to no answer (null); the others are well. */
    suffer(forMs: number, outcome: Outcome | null, ...markets: readonly string[]): void {
      driver.live(forMs, 20, (write) => {
        if (markets.length > 0 && !markets.includes(write.market)) driver.apply(write);
        else if (outcome !== null) driver.settle(write, outcome);
      });
    },
    /** Tells of each request that was given up since the last call that its answer never came. */
    loseGivenUp(): void {
      const fresh = effects.slice(looked);
      looked = effects.length;
      for (const effect of fresh)
        if (effect.kind === 'abort') feed({ kind: 'settled', attempt: effect.attempt, outcome: LOST });
    },
    /** From now on every request waits for its connection. */
    holdConnections: (): void => {
      connects = false;
    },
    /** The last question before the first byte leaves. */
    mayLeave: (attempt: number) => mayWrite(state, attempt, now),
    /** The writes of a market, from a moment on. */
    of: (market: string, fromMs = 0) =>
      writes.filter((write) => write.market === market && write.atMs >= fromMs),
    /** What is written (for a market, or all) from the last command, reload or look on: seconds, null for a delete. */
    written(forMs: number, of: string | null = null): (number | null)[] {
      driver.live(forMs);
      const fresh = writes.slice(seen).filter(({ market }) => of === null || market === of);
      seen = writes.length;
      return fresh.map(({ timeoutSeconds }) => timeoutSeconds);
    },
    notices: <Kind extends Notice['kind']>(kind: Kind): NoticeOf<Kind>[] =>
      effects.flatMap((effect) =>
        effect.kind === 'notice' && effect.notice.kind === kind ? [effect.notice as NoticeOf<Kind>] : [],
      ),
    /** The markets of such notices, one for each. */
    told: (kind: MarketNotice['kind']): string[] =>
      (driver.notices(kind) as MarketNotice[]).map(({ market }) => market),
    /** The writes that asked for so many seconds, null for deletes, from a moment on. */
    asked: (seconds: number | null, fromMs = 0) =>
      writes.filter(({ timeoutSeconds, atMs }) => timeoutSeconds === seconds && atMs >= fromMs),
    /** What a stop has left armed, and why: `AAA policy`. Null while it lasts. */
    finished: () =>
      effects
        .find((effect) => effect.kind === 'finished')
        ?.left.map(({ market, why }) => `${market} ${why}`) ?? null,
  };
  return driver;
}
export type Driver = ReturnType<typeof createDriver>;

/** A driver whose timers are armed, and whose writes were looked at. */
export function armed(options: SettingsOptions = {}): Driver {
  const driver = played(options, 'tick, live 2');
  driver.take();
  return driver;
}

/** A driver whose bot was heard of at the start. */
export const watched = (options: SettingsOptions = {}): Driver =>
  played({ ...options, liveness: { mode: 'beat', ...options.liveness } }, 'beat');

/** Armed markets of which one has its next renewal on its way, so many seconds after the first. */
export function renewing(options: SettingsOptions = {}, afterSeconds = 6) {
  const driver = played(options, `start, wait ${afterSeconds}`);
  return { driver, write: driver.takeOne() };
}

/** Lets time pass: each request comes to its fate, null for no answer and undefined for a good one; what is given up is lost. */
export function endure(
  driver: Driver,
  forMs: number,
  fate: (write: Write) => Outcome | null | undefined,
): void {
  const endMs = driver.sinceStartMs() + forMs;
  while (driver.sinceStartMs() < endMs) {
    driver.live(20, 20, (write) => {
      const outcome = fate(write);
      if (outcome === undefined) driver.answer(write);
      else if (outcome !== null) driver.settle(write, outcome);
    });
    driver.loseGivenUp();
  }
}

/** The address answers a ping well, or not at all. */
export function ping(driver: Driver, ok: boolean, base = 0): Effect[] {
  const reason = ok ? null : 'network';
  return driver.feed({ kind: 'pinged', base, ok, latencyMs: 5, reason, detail: ok ? '' : 'no pong' });
}

/** The times between moments, or writes, that follow each other. */
export const gapsBetween = (moments: readonly number[]) =>
  moments.slice(1).map((atMs, place) => atMs - (moments[place] ?? 0));
export const gaps = (writes: readonly { readonly atMs: number }[]) =>
  gapsBetween(writes.map(({ atMs }) => atMs));

type Failed = Exclude<Outcome, { kind: 'applied' } | { kind: 'deleted' }>;

/** Outcomes as the client reports them. */
export const LOST = { kind: 'transient', reason: 'timeout', detail: 'given up', maybeApplied: true } as const;
export const NOT_SENT: Failed = {
  ...LOST,
  reason: 'network',
  detail: 'connection refused',
  maybeApplied: false,
};
export const HTTP_500: Failed = { ...LOST, reason: 'http_5xx', detail: 'status 500' };
export const STALE_NONCE: Failed = { kind: 'nonce', detail: 'Too many requests.' };
export const THROTTLED: Failed = { kind: 'throttled', detail: 'status 429' };
export const GARBAGE: Failed = { kind: 'protocol', detail: 'not JSON' };
export const NO_MARKET: Failed = { kind: 'refused', code: 31, detail: 'Market is not available.' };
export const BAD_KEY: Failed = { kind: 'unauthorised', status: 401, detail: 'Unauthorized request.' };

type Word = (driver: Driver, forMs: number, names: readonly string[]) => unknown;
const says =
  (word: BotWord): Word =>
  (driver, _forMs, [bot]) =>
    driver.say(word, bot);
const operates =
  (does: CommandName): Word =>
  (driver, forMs, names) =>
    driver.operate(does, names.length === 0 ? null : names, forMs);
const suffers =
  (outcome: Outcome | null): Word =>
  (driver, forMs, names) =>
    driver.suffer(forMs, outcome, ...names);

/** The first of the requests since the last look comes to this. */
const first =
  (outcome: Outcome): Word =>
  (driver) => {
    const [write] = driver.take();
    if (write !== undefined) driver.settle(write, outcome);
  };

/** What a script may say. `start` confirms the first renewals; `lose` and `deleted` are of the first unanswered request. */
const WORDS: Readonly<Record<string, Word>> = {
  start: (driver) => driver.start(),
  tick: (driver) => driver.tick(),
  live: (driver, forMs) => driver.live(forMs),
  wait: (driver, forMs) => driver.wait(forMs),
  move: (driver, forMs) => driver.move({ monoMs: forMs }),
  lose: first(LOST),
  deleted: first({ kind: 'deleted' }),
  // What requests come to, for so long: of all markets, or of those that are named.
  silence: suffers(null),
  lost: suffers(LOST),
  unsent: suffers(NOT_SENT),
  failing: suffers(HTTP_500),
  refused: suffers(NO_MARKET),
  badkey: suffers(BAD_KEY),
  newkey: (driver) => driver.feed({ kind: 'credentials-changed' }),
  // Of the bot, or the one that is named.
  beat: says('beat'),
  goodbye: says('goodbye'),
  fail: says('fail'),
  // An operator's command, for all markets or those that are named.
  arm: operates('arm'),
  resume: operates('resume'),
  disarm: operates('disarm'),
  pause: operates('pause'),
  trip: operates('trip'),
  stop: (driver) => driver.stop('delete'),
  keep: (driver) => driver.stop('keep'),
  handoff: (driver) => driver.stop('handoff'),
};

/** Does one thing after the other, such as `start, beat, live 2, lost 1.5 AAA, disarm, stop`; durations in seconds. */
export function play(driver: Driver, script: string): Driver {
  for (const step of script.split(', ')) {
    const [word = '', ...details] = step.split(' ');
    const does = WORDS[word];
    if (does === undefined) throw new Error(`no word ${word}`);
    const seconds = details.find((detail) => /^[\d.]+$/.test(detail)) ?? '0';
    const names = details.filter((detail) => detail !== seconds);
    does(driver, Math.round(1000 * Number(seconds)), names);
  }
  return driver;
}

export const played = (options: SettingsOptions, script: string) => play(createDriver(options), script);
