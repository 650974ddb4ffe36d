import type { Instant } from '../core/time.ts';
import type { Observer } from '../ports.ts';
import { describeNotice, type EventContext, type EventLevel, type EventLine, levelOf } from './events.ts';

/** An event as the status page and the status document show it. */
export interface RecentEvent {
  /** Unix milliseconds. */
  readonly atWallMs: number;
  readonly level: EventLevel;
  readonly event: string;
  readonly market: string | null;
  readonly text: string;
}

export interface RecentEvents {
  readonly observe: Observer;
  /** Takes in what is no notice of the core. */
  readonly add: (line: EventLine, now: Instant) => void;
  /** The newest first. */
  readonly list: () => readonly RecentEvent[];
}

/** Keeps the last events that a person would want to read (level info and above). */
export function createRecentEvents(context: EventContext, capacity = 100): RecentEvents {
  const events: RecentEvent[] = [];
  const add: RecentEvents['add'] = ({ level, event, market, msg }, now) => {
    if (level === 'debug') return;
    events.unshift({ atWallMs: now.wallMs, level, event, market, text: msg });
    if (events.length > capacity) events.pop();
  };
  return {
    // Most notices are renewals: no sentence is made for them.
    observe: (notice, now) => {
      if (levelOf(notice) !== 'debug') add(describeNotice(notice, context, now), now);
    },
    add,
    list: () => [...events],
  };
}
