import { createState } from './core/commands.ts';
import type { CoreEvent, CoreSettings, Effect, OperatorCommand, Policy, Progress } from './core/events.ts';
import type { LeftArmed } from './core/notice.ts';
import { type Awaited, progressOf, progressOfGone } from './core/progress.ts';
import type { CoreState } from './core/state.ts';
import { mayWrite, noteSigned, step } from './core/step.ts';
import { describe, look, type Snapshot } from './core/view.ts';
import type { Cancel, Clock, Exchange, Hear, Observer } from './ports.ts';

export type Keeper = ReturnType<typeof createKeeper>;

interface Options {
  readonly settings: CoreSettings;
  readonly clock: Clock;
  readonly exchange: Exchange;
  readonly observe: Observer;
}

/**
 * The one loop of the daemon: asks the core what to do, does it, and feeds back what came of it. Decides nothing. A
 * renewal is written in the same synchronous turn in which the core allowed it.
 */
export function createKeeper(options: Options) {
  const { settings, clock } = options;
  const state = createState(settings, clock.now());
  const finished = Promise.withResolvers<readonly LeftArmed[]>();
  const { feed, turned, woken } = createLoop(options, state, finished.resolve);
  const whenDone = createWhenDone(clock, state, turned);
  return {
    /** What the core remembers, to look at and not to touch: the simulation checks it after every turn. */
    state: state as Readonly<CoreState>,
    /** Takes the first step: everything configured becomes due at once. */
    start: (): void => feed({ kind: 'tick' }),
    /** Begins the stop; resolves when it is over, with the timers that may still be armed. Asking again joins the first stop. */
    stop: (policy: Policy, why: string) => {
      feed({ kind: 'stop', policy, why });
      return finished.promise;
    },
    /** The API key or secret was read again and changed. */
    credentialsChanged: (): void => feed({ kind: 'credentials-changed' }),
    /** New evidence that a bot lives, or its word that it stops. */
    hear: ((bot, says, agoMs) => feed({ kind: 'evidence', bot, says, agoMs })) satisfies Hear,
    /** Carries an operator's command out; resolves as `whenDone` does. */
    operate: (command: OperatorCommand, waitMs: number) => {
      feed({ kind: 'operate', command });
      return whenDone(command.does, command.markets, waitMs);
    },
    /** Takes new settings over. Only what may change while running may differ; see `config/config.ts`. */
    reload: (next: CoreSettings): void => feed({ kind: 'reload', settings: next }),
    whenDone,
    snapshot: (): Snapshot => describe(state, clock.now()),
    /** The same without the sentences, at a cost that may be paid at every step. */
    view: () => look(state, clock.now()),
    /** Calls `run` after every step, for the watchdog: the loop turns. */
    onTurn: (run: () => void): void => void turned.add(run),
    /** Calls `run` whenever the loop was woken as it had asked for, with how much later that was, in milliseconds. */
    onWake: (run: (lateMs: number) => void): void => void woken.push(run),
  };
}

/** Steps the core event by event, carries its effects out, and wakes it when it asked to be woken. */
function createLoop(options: Options, state: CoreState, finish: (left: readonly LeftArmed[]) => void) {
  const { clock } = options;
  const queue: CoreEvent[] = [];
  const turned = new Set<() => void>();
  const woken: ((lateMs: number) => void)[] = [];
  const carryOut = createEffectRunner(options, state, feed, (left) => {
    ended = true;
    finish(left);
  });
  let turning = false;
  let ended = false;
  let alarmMs: number | null = null;
  let cancelAlarm: Cancel = () => {};

  /** Events that arise while effects are carried out wait their turn: the core is never entered twice. */
  function feed(event: CoreEvent): void {
    if (ended) return;
    queue.push(event);
    if (turning) return;
    turning = true;
    try {
      for (let next = queue.shift(); next !== undefined; next = queue.shift())
        for (const effect of step(state, next, clock.now())) carryOut(effect);
    } catch (error) {
      ended = true;
      cancelAlarm();
      // Whoever fed the event could catch it, and a broken loop would go on. This way it ends the process.
      return void clock.after(0, () => {
        throw error;
      });
    }
    turning = false;
    if (ended) cancelAlarm();
    else setAlarm();
    for (const run of turned) run();
  }

  /** Most answers leave the moment at which the core is to be woken where it was. */
  function setAlarm(): void {
    const { wakeAtMs } = state;
    if (alarmMs === wakeAtMs) return;
    cancelAlarm();
    alarmMs = wakeAtMs;
    cancelAlarm = clock.after(wakeAtMs - clock.now().monoMs, () => {
      alarmMs = null;
      const lateMs = clock.now().monoMs - wakeAtMs;
      feed({ kind: 'tick' });
      for (const run of woken) run(lateMs);
    });
  }

  return { feed, turned, woken };
}

/** Carries effects out, and feeds back what comes of them. */
function createEffectRunner(
  options: Options,
  state: CoreState,
  feed: (event: CoreEvent) => void,
  finish: (left: readonly LeftArmed[]) => void,
) {
  const { clock, exchange, observe } = options;
  /** How to give up each request that is on its way. */
  const underWay = new Map<number, Cancel>();

  function write({ kind: _kind, attempt, ...asked }: Extract<Effect, { kind: 'write' }>): void {
    const signed = () => noteSigned(state, attempt);
    const sync = { ...asked, signed, mayWrite: () => mayWrite(state, attempt, clock.now()) };
    const abort = exchange.sync(sync, (outcome) => {
      underWay.delete(attempt);
      feed({ kind: 'settled', attempt, outcome });
    });
    underWay.set(attempt, abort);
  }

  return (effect: Effect): void => {
    if (effect.kind === 'notice') observe(effect.notice, state.now);
    else if (effect.kind === 'write') write(effect);
    else if (effect.kind === 'abort') underWay.get(effect.attempt)?.();
    else if (effect.kind === 'ping') {
      const { base, timeoutMs } = effect;
      exchange.ping(base, timeoutMs, (outcome) =>
        feed({ kind: 'pinged', base, reason: null, detail: '', ...outcome }),
      );
    } else finish(effect.left);
  };
}

/** Callers that wait until a command has been carried out. Each is looked at after every turn of the loop. */
function createWhenDone(clock: Clock, state: CoreState, turned: Set<() => void>) {
  /**
   * Resolves when no market has to be waited for any more, at the latest after `waitMs`; null means all configured ones.
   * A market that is no longer known is in the answer only where it left with its timer.
   */
  return (awaited: Awaited, markets: readonly string[] | null, waitMs: number) => {
    const { promise, resolve } = Promise.withResolvers<readonly Progress[]>();
    const configured = () => state.markets.filter(({ leaving }) => leaving === null);
    const names = markets ?? configured().map(({ settings }) => settings.market);
    const progress = (name: string): Progress | null => {
      const market = state.byName.get(name);
      if (market !== undefined) return progressOf(state, awaited, market);
      return awaited === 'remove' ? progressOfGone(state, name) : null;
    };
    const finish = (): void => {
      turned.delete(look);
      giveUp();
      resolve(names.map(progress).filter((one) => one !== null));
    };
    /** The market that was waited for last. */
    let at = 0;
    // In most turns one market is looked at: ten thousand after every answer would leave no time for the renewals.
    const look = (): void => {
      for (let seen = 0; seen < names.length; seen += 1) {
        if (progress(names[at] ?? '')?.state === 'waiting') return;
        at = (at + 1) % names.length;
      }
      finish();
    };
    const giveUp = clock.after(waitMs, finish);
    turned.add(look);
    look();
    return promise;
  };
}
