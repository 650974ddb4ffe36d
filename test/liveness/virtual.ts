import type { BotWord } from '../../src/core/events.ts';
import type { Evidence } from '../../src/ports.ts';
import {
  createHostClock,
  createTimeline,
  type HostClock,
  type Timeline,
} from '../simulation/virtual-clock.ts';

/** One thing that a source said. True milliseconds; `datedMs` is the moment that it claims to speak of. */
export interface Said {
  readonly bot: string;
  readonly says: BotWord;
  readonly atMs: number;
  readonly datedMs: number;
}

/** A host on virtual time and what its source of evidence says. */
export interface Virtual {
  readonly timeline: Timeline;
  readonly clock: HostClock;
  readonly said: Said[];
  /** Problems that were told, oldest first, as `bot: text`; `bot: -` where one ended. */
  readonly told: string[];
  readonly onProblem: (bot: string, problem: string | null) => void;
  readonly start: (evidence: Evidence) => () => void;
  /** Calls `run` after so many true milliseconds, when the host runs. */
  readonly later: (afterMs: number, run: () => void) => void;
}

export function createVirtual(): Virtual {
  const timeline = createTimeline(0);
  const clock = createHostClock(timeline, { wallMs: 1_700_000_000_000 });
  const said: Said[] = [];
  const told: string[] = [];
  return {
    timeline,
    clock,
    said,
    told,
    onProblem: (bot, problem) => told.push(`${bot}: ${problem ?? '-'}`),
    start: (evidence) =>
      evidence.start((bot, says, agoMs) => {
        const atMs = timeline.nowMs();
        said.push({ bot, says, atMs, datedMs: atMs - agoMs });
      }),
    later(afterMs, run) {
      timeline.at(timeline.nowMs() + afterMs, () => clock.whenRunning(run));
    },
  };
}
