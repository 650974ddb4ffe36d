import type { Cancel, Clock } from '../ports.ts';

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
