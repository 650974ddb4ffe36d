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
  /** How long a look takes, how many are under way, and how many were at most. */
  const looking = { latencyMs: 2, now: 0, most: 0 };
  /** Calls `run` after so many true milliseconds, when the host runs. */
  const later = (afterMs: number, run: () => void) =>
    timeline.at(timeline.nowMs() + afterMs, () => clock.whenRunning(run));
  return {
    timeline,
    clock,
    said,
    told,
    looking,
    later,
    /** A look that finds what is there in its middle. */
    look<Found>(find: () => Found, done: (found: Found) => void) {
      const { latencyMs } = looking;
      looking.now += 1;
      looking.most = Math.max(looking.most, looking.now);
      let found: Found;
      timeline.at(timeline.nowMs() + latencyMs / 2, () => {
        found = find();
      });
      later(latencyMs, () => {
        looking.now -= 1;
        done(found);
      });
    },
    onProblem: (bot: string, problem: string | null) => void told.push(`${bot}: ${problem ?? '-'}`),
    start: (evidence: Evidence) =>
      evidence.start((bot, says, agoMs) => {
        const atMs = timeline.nowMs();
        said.push({ bot, says, atMs, datedMs: atMs - agoMs });
      }),
  };
}
