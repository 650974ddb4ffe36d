import type { BotWord } from '../../src/core/events.ts';
import type { Evidence } from '../../src/ports.ts';
import { createHostClock, createTimeline } from '../simulation/virtual-clock.ts';

/** One thing that a source said. True milliseconds; `datedMs` is the moment that it claims to speak of. */
export interface Said {
  readonly bot: string;
  readonly says: BotWord;
  readonly atMs: number;
  readonly datedMs: number;
}

/** A host on virtual time and what its source of evidence says. */
export function createVirtual() {
  const timeline = createTimeline(0);
  const clock = createHostClock(timeline, { wallMs: 1_700_000_000_000 });
  const said: Said[] = [];
  /** Problems that were told, oldest first, as `bot: text`; `bot: -` where one ended. */
  const told: string[] = [];
  return {
    timeline,
    clock,
    said,
    told,
    onProblem: (bot: string, problem: string | null) => void told.push(`${bot}: ${problem ?? '-'}`),
    start: (evidence: Evidence) =>
      evidence.start((bot, says, agoMs) => {
        const atMs = timeline.nowMs();
        said.push({ bot, says, atMs, datedMs: atMs - agoMs });
      }),
    /** Calls `run` after so many true milliseconds, when the host runs. */
    later(afterMs: number, run: () => void) {
      timeline.at(timeline.nowMs() + afterMs, () => clock.whenRunning(run));
    },
  };
}
