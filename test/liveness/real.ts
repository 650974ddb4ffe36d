import type { TestContext } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { BotWord } from '../../src/core/events.ts';
import type { Clock, Evidence } from '../../src/ports.ts';

/** One thing that a source said, on the monotonic clock of this process. */
export interface Said {
  readonly bot: string;
  readonly says: BotWord;
  /** The moment that it claims to speak of. */
  readonly datedMs: number;
}

/** What sources of evidence say on the real clock of this host. */
export interface Real {
  readonly clock: Clock;
  readonly nowMs: () => number;
  readonly said: Said[];
  readonly told: string[];
  readonly onProblem: (bot: string, problem: string | null) => void;
  /** Ends with the test. */
  readonly start: (evidence: Evidence) => () => void;
}

export function createReal({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): Real {
  const clock = createSystemClock();
  const nowMs = () => clock.now().monoMs;
  const said: Said[] = [];
  const told: string[] = [];
  return {
    clock,
    nowMs,
    said,
    told,
    onProblem: (bot, problem) => told.push(`${bot}: ${problem ?? '-'}`),
    start(evidence) {
      const end = evidence.start((bot, says, agoMs) => said.push({ bot, says, datedMs: nowMs() - agoMs }));
      onTestFinished(end);
      return end;
    },
  };
}
