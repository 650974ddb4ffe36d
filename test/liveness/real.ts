import type { TestContext } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { BotWord } from '../../src/core/events.ts';
import type { Evidence } from '../../src/ports.ts';

/** What sources of evidence say on the real clock of this host. */
export function createReal({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const clock = createSystemClock();
  const nowMs = () => clock.now().monoMs;
  /** Monotonic; `datedMs` is the moment that a word claims to speak of. */
  const said: { readonly bot: string; readonly says: BotWord; readonly datedMs: number }[] = [];
  const told: string[] = [];
  return {
    clock,
    nowMs,
    said,
    told,
    onProblem: (bot: string, problem: string | null) => void told.push(`${bot}: ${problem ?? '-'}`),
    /** Ends with the test. */
    start: (evidence: Evidence) =>
      onTestFinished(
        evidence.start((bot, says, agoMs) => said.push({ bot, says, datedMs: nowMs() - agoMs })),
      ),
  };
}
