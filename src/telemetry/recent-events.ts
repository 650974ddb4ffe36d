import type { Observer } from '../ports.ts';
import { describeNotice, type EventContext, type EventLevel, levelOf } from './events.ts';

/** An event as the status page and the status document show it. */
export interface RecentEvent {
  /** Unix milliseconds. */
  readonly atWallMs: number;
  readonly level: EventLevel;
  readonly event: string;
  readonly market: string | null;
  readonly text: string;
}

/** Keeps the last events that a person would want to read (level info and above), newest first. */
export function createRecentEvents(
  context: EventContext,
  capacity = 100,
): { readonly observe: Observer; readonly list: () => readonly RecentEvent[] } {
  const events: RecentEvent[] = [];
  return {
    observe: (notice, now) => {
      if (levelOf(notice) === 'debug') return;
      const { level, event, market, msg } = describeNotice(notice, context, now);
      events.unshift({ atWallMs: now.wallMs, level, event, market, text: msg });
      if (events.length > capacity) events.pop();
    },
    list: () => [...events],
  };
}
