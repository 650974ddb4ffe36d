import type { Cancel, Clock, Evidence } from '../ports.ts';

/** The pace is looked at this often at least: a reload may have made it quicker. */
const LONGEST_WAIT_MS = 1000;

/**
 * Calls `round` at once and then again and again, `everyMs()` after the begin of the round before. Rounds that a
 * stall of the host held up are one round. Another pace counts within a second. The returned function ends it.
 */
export function startRounds(clock: Clock, everyMs: () => number, round: () => void): Cancel {
  let cancel: Cancel = () => undefined;
  let begunMs = Number.NEGATIVE_INFINITY;
  function turn(): void {
    const nowMs = clock.now().monoMs;
    const isDue = nowMs - begunMs >= everyMs();
    if (isDue) begunMs = nowMs;
    cancel = clock.after(Math.min(begunMs + everyMs() - nowMs, LONGEST_WAIT_MS), turn);
    if (isDue) round();
  }
  turn();
  // Whichever turn is next by then.
  return () => cancel();
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
   * Calls `done` exactly once, never synchronously. `problem`: why no evidence can be had. `sinceMs`: from when on the bot
   * may have given what was found, monotonic; null where nothing was.
   */
  readonly look: (begunMs: number, done: (problem: string | null, sinceMs: number | null) => void) => void;
  /** Nothing is looked at afterwards. */
  readonly close: () => void;
}

interface Watch extends Place {
  readonly at: string;
  /** When the look that is under way was begun, monotonic; null while there is none. */
  busySinceMs: number | null;
}

/** A look that takes longer is told of: its file system hangs, or those of many other bots do. */
const HANGS_MS = 5000;

/**
 * Evidence by a place of each bot, which is looked at in rounds. At most one look at each place is under way. A reload
 * that names another place for a bot is followed at once, also where a look at the old one hangs.
 */
export function createPlaceEvidence(
  { clock, probeEveryMs, onProblem }: Looking,
  places: Places,
  open: (at: string) => Place,
): Evidence {
  return {
    start(hear) {
      const watches = new Map<string, Watch>();
      const problems = createProblems(onProblem);

      function lookAt(bot: string, watch: Watch): void {
        const begunMs = clock.now().monoMs;
        watch.busySinceMs = begunMs;
        watch.look(begunMs, (problem, sinceMs) => {
          watch.busySinceMs = null;
          if (watches.get(bot) !== watch) return;
          problems.say(bot, problem);
          if (sinceMs !== null) hear(bot, 'beat', clock.now().monoMs - sinceMs);
        });
      }
      /** A place that is named no more is kept while it is looked at: a reload that brings it back begins no second look. */
      function closeOthers(wanted: ReturnType<Places>): void {
        for (const [bot, { at, busySinceMs, close }] of watches) {
          const named = wanted.find((place) => place.bot === bot);
          if (named === undefined ? busySinceMs !== null : named.at === at) continue;
          watches.delete(bot);
          if (named === undefined) problems.forget(bot);
          close();
        }
      }
      const cancel = startRounds(clock, probeEveryMs, () => {
        const wanted = places();
        closeOthers(wanted);
        for (const { bot, at } of wanted) {
          const watch: Watch = watches.get(bot) ?? { ...open(at), at, busySinceMs: null };
          watches.set(bot, watch);
          if (watch.busySinceMs === null) lookAt(bot, watch);
          else if (clock.now().monoMs - watch.busySinceMs >= HANGS_MS)
            problems.say(bot, `cannot look at ${at}: there is no answer for ${HANGS_MS / 1000} s`);
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
