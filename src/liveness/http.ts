import type { Evidence } from '../ports.ts';
import { createPlaceEvidence, type Looking, type Places } from './rounds.ts';

export interface Prober {
  /**
   * Asks once. Calls `done` exactly once, never synchronously, at the latest after `timeoutMs`. `problem`: why the answer
   * counts for nothing; null where it counts.
   */
  probe(timeoutMs: number, done: (problem: string | null) => void): void;
  /** Ends its connection and what is under way; `done` may then stay away, or be called once more. */
  close(): void;
}

/** An answer that takes longer comes from a bot that is not fit to trade. */
const MAX_TIMEOUT_MS = 1000;

/**
 * Evidence by a URL of the bot that answers with 2xx. A beat is dated to when its probe was sent: the bot lived then, and
 * may have died while the answer travelled. Any other answer, and none within a second, counts for nothing: only the
 * lifetime of the evidence decides. At most one probe of each bot is under way.
 */
export function createHttpEvidence(
  options: Looking & { readonly urls: Places; readonly open: (url: string) => Prober },
): Evidence {
  const { probeEveryMs, urls, open } = options;
  return createPlaceEvidence(options, urls, (url) => {
    const prober = open(url);
    return {
      look: (begunMs, done) =>
        prober.probe(Math.min(MAX_TIMEOUT_MS, probeEveryMs()), (problem) =>
          done(problem, problem === null ? begunMs : null),
        ),
      close: () => prober.close(),
    };
  });
}
