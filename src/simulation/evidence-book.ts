import { GRACE_MS, type Incarnation, TTL_MS } from './incarnation.ts';

/** What bots told each daemon, and what follows from it. True milliseconds. */
export interface EvidenceBook {
  begin(incarnation: Incarnation): void;
  readonly hear: (incarnation: Incarnation, bot: number, says: 'beat' | 'goodbye' | 'fail') => void;
  /** Until when the bot's evidence allows this daemon to renew; `Infinity` where nobody watches the bots. */
  allowedUntilMs(incarnation: Incarnation, bot: number): number;
  /** The same for whichever daemon, dead or alive, it allows the longest. */
  allowedAnyoneUntilMs(bot: number): number;
  /** Since when the evidence of the bot has never run out. */
  freshSinceMs(incarnation: Incarnation, bot: number): number;
  saidGoodbye(bot: number): boolean;
}

interface Page {
  untilMs: number;
  sinceMs: number;
}

export function createEvidenceBook(bots: number, watched: boolean, nowMs: () => number): EvidenceBook {
  const pages = new Map<Incarnation, readonly Page[]>();
  const goodbyes = new Set<number>();
  const pageOf = (incarnation: Incarnation, bot: number) => pages.get(incarnation)?.[bot];

  return {
    begin(incarnation) {
      const { startedMs } = incarnation;
      const untilMs = watched ? startedMs + GRACE_MS : Number.POSITIVE_INFINITY;
      pages.set(
        incarnation,
        Array.from({ length: bots }, () => ({ untilMs, sinceMs: startedMs })),
      );
    },
    hear(incarnation, bot, says) {
      const page = pageOf(incarnation, bot);
      if (page === undefined) return;
      if (page.untilMs < nowMs() || says !== 'beat') page.sinceMs = nowMs();
      page.untilMs = says === 'beat' ? nowMs() + TTL_MS : nowMs();
      if (says === 'goodbye') goodbyes.add(bot);
      else goodbyes.delete(bot);
    },
    allowedUntilMs: (incarnation, bot) => pageOf(incarnation, bot)?.untilMs ?? 0,
    allowedAnyoneUntilMs(bot) {
      let latest = 0;
      for (const page of pages.values()) latest = Math.max(latest, page[bot]?.untilMs ?? 0);
      return latest;
    },
    freshSinceMs: (incarnation, bot) => pageOf(incarnation, bot)?.sinceMs ?? Number.POSITIVE_INFINITY,
    saidGoodbye: (bot) => goodbyes.has(bot),
  };
}
