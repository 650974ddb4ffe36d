import type { Evidence } from '../ports.ts';
import { createProblems, type Looking, type Places, startRounds } from './rounds.ts';

export type ProbeAnswer =
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'failed'; readonly detail: string };

/** Asks one URL again and again. */
export interface Prober {
  /** Asks once. Calls `done` exactly once, never synchronously, at the latest after `timeoutMs`. */
  probe(timeoutMs: number, done: (answer: ProbeAnswer) => void): void;
  /** Ends its connection and what is under way; `done` may then stay away, or be called once more. */
  close(): void;
}

/** An answer that takes longer comes from a bot that is not fit to trade. */
const MAX_TIMEOUT_MS = 1000;

interface Watch {
  readonly url: string;
  readonly prober: Prober;
  busy: boolean;
}

/**
 * Evidence by a URL of the bot that answers with 2xx. A beat is dated to when its probe was sent: the bot lived then, and
 * may have died while the answer travelled. Any other answer, and none within a second, counts for nothing: only the
 * lifetime of the evidence decides. At most one probe of each bot is under way.
 */
export function createHttpEvidence(
  options: Looking & { readonly urls: Places; readonly open: (url: string) => Prober },
): Evidence {
  const { clock, urls, probeEveryMs, open } = options;
  return {
    start(hear) {
      const watches = new Map<string, Watch>();
      const problems = createProblems(options.onProblem);

      function ask(bot: string, watch: Watch): void {
        const sentMs = clock.now().monoMs;
        watch.busy = true;
        watch.prober.probe(Math.min(MAX_TIMEOUT_MS, probeEveryMs()), (answer) => {
          watch.busy = false;
          if (watches.get(bot) !== watch) return;
          const problem = problemOf(answer);
          problems.say(bot, problem);
          if (problem === null) hear(bot, 'beat', clock.now().monoMs - sentMs);
        });
      }
      function closeOthers(wanted: ReturnType<typeof urls>): void {
        for (const [bot, { url, prober }] of watches) {
          const named = wanted.find((place) => place.bot === bot);
          if (named?.at === url) continue;
          watches.delete(bot);
          if (named === undefined) problems.forget(bot);
          prober.close();
        }
      }
      function round(): void {
        const wanted = urls();
        closeOthers(wanted);
        for (const { bot, at: url } of wanted) {
          const watch = watches.get(bot) ?? { url, prober: open(url), busy: false };
          watches.set(bot, watch);
          if (!watch.busy) ask(bot, watch);
        }
      }
      const cancel = startRounds(clock, probeEveryMs, round);
      return () => {
        cancel();
        closeOthers([]);
      };
    },
  };
}

function problemOf(answer: ProbeAnswer): string | null {
  if (answer.kind === 'failed') return answer.detail;
  return answer.status >= 200 && answer.status < 300 ? null : `HTTP ${answer.status}, not 2xx`;
}
