import type { Cancel, Clock, Evidence } from '../ports.ts';

/** A reload may change the pace; the wait of before must not outlast the evidence that it was made for. */
const LONGEST_WAIT_MS = 1000;

/**
 * Calls `round` at once and then again and again, `everyMs()` after the begin of the round before. A round that a stall
 * of the host held up is made once, not caught up with. Another pace counts within a second. The returned function ends it.
 */
export function startRounds(clock: Clock, everyMs: () => number, round: () => void): Cancel {
  let over = false;
  let cancel: Cancel = () => undefined;
  let begunMs = Number.NEGATIVE_INFINITY;
  function turn(): void {
    if (over) return;
    const nowMs = clock.now().monoMs;
    const isDue = nowMs - begunMs >= everyMs();
    if (isDue) begunMs = nowMs;
    cancel = clock.after(Math.min(begunMs + everyMs() - nowMs, LONGEST_WAIT_MS), turn);
    if (isDue) round();
  }
  turn();
  return () => {
    over = true;
    cancel();
  };
}

/** What every source that looks at bots of its own accord is given. */
export interface Looking {
  readonly clock: Clock;
  readonly probeEveryMs: () => number;
  readonly onProblem: OnProblem;
}

/** Each bot with its file or its URL, as the configuration in force has them. */
export type Places = () => readonly { readonly bot: string; readonly at: string }[];

/** Told why a bot's evidence cannot be had, in a few words for the log, and null once it can be had again. */
export type OnProblem = (bot: string, problem: string | null) => void;

/** Passes on what changed, so that a probe that fails every second is told of once. */
export function createProblems(onProblem: OnProblem) {
  const last = new Map<string, string>();
  return {
    say(bot: string, problem: string | null): void {
      if ((last.get(bot) ?? null) === problem) return;
      if (problem === null) last.delete(bot);
      else last.set(bot, problem);
      onProblem(bot, problem);
    },
    forget: (bot: string) => last.delete(bot),
  };
}

/** One place of a bot, as long as the configuration names it. */
interface Place {
  /**
   * Calls `done` exactly once, never synchronously: with why no evidence can be had, and with since when the bot may have
   * given what was found, monotonic, or null for none.
   */
  readonly look: (begunMs: number, done: (problem: string | null, sinceMs: number | null) => void) => void;
  /** Nothing is looked at afterwards. */
  readonly close: () => void;
}

/** Evidence by a place of each bot, which is looked at in rounds. At most one look at each bot's place is under way. */
export function createPlaceEvidence(
  { clock, probeEveryMs, onProblem }: Looking,
  places: Places,
  open: (at: string) => Place,
): Evidence {
  return {
    start(hear) {
      const watches = new Map<string, Place & { readonly at: string; busy: boolean }>();
      const problems = createProblems(onProblem);

      function lookAt(bot: string, watch: Place & { busy: boolean }): void {
        const begunMs = clock.now().monoMs;
        watch.busy = true;
        watch.look(begunMs, (problem, sinceMs) => {
          watch.busy = false;
          if (watches.get(bot) !== watch) return;
          problems.say(bot, problem);
          if (sinceMs !== null) hear(bot, 'beat', clock.now().monoMs - sinceMs);
        });
      }
      /** A look that is still under way keeps its place: a file system that hangs gets no second one by a reload. */
      function closeOthers(wanted: ReturnType<Places>): void {
        for (const [bot, { at, busy, close }] of watches) {
          const named = wanted.find((place) => place.bot === bot);
          if (busy || named?.at === at) continue;
          watches.delete(bot);
          if (named === undefined) problems.forget(bot);
          close();
        }
      }
      const cancel = startRounds(clock, probeEveryMs, () => {
        const wanted = places();
        closeOthers(wanted);
        for (const { bot, at } of wanted) {
          const watch = watches.get(bot) ?? { ...open(at), at, busy: false };
          watches.set(bot, watch);
          if (!watch.busy) lookAt(bot, watch);
        }
      });
      return () => {
        cancel();
        for (const { close } of watches.values()) close();
        watches.clear();
      };
    },
  };
}
