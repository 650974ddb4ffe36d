import type { BotWord } from '../core/events.ts';
import { GRACE_MS, type Incarnation, TTL_MS } from './incarnation.ts';
import { REQUEST_LIFETIME_MS } from './plan.ts';

/** What bots told each daemon, and what follows from it. True milliseconds. */
export interface EvidenceBook {
  begin(incarnation: Incarnation): void;
  /** The daemon hears of a bot for the first time: its start-up grace begins. */
  readonly introduce: (incarnation: Incarnation, bot: number) => void;
  /** True where the word before holds no more: the first beat after another word, or a failure. */
  readonly hear: (incarnation: Incarnation, bot: number, says: BotWord, saidMs: number) => boolean;
  /** Until when the bot's evidence allows this daemon to renew; `Infinity` where nobody watches the bots. */
  allowedUntilMs(incarnation: Incarnation, bot: number): number;
  /** The same for whichever daemon, dead or alive, it allows the longest. */
  allowedAnyoneUntilMs(bot: number): number;
  /** Does the bot give evidence, steadily, as far as can be told now? */
  isSteady(incarnation: Incarnation, bot: number): boolean;
  /** Since when the bot has given evidence without a break. */
  freshSinceMs(incarnation: Incarnation, bot: number): number;
  saidGoodbye(incarnation: Incarnation, bot: number): boolean;
  /** The daemon heard a beat, which may have been sent long ago: the goodbye before it is over. */
  readonly takeBackGoodbye: (incarnation: Incarnation, bot: number) => void;
  /** Until when deletes for the bot's goodbye may arrive; `Infinity` while it holds. */
  goodbyeUntilMs(incarnation: Incarnation, bot: number): number;
}

/** Bots that live say so every 3 s, and are asked every 4 s. */
const STEADY_MS = 6000;

interface Page {
  untilMs: number;
  sinceMs: number;
  goodbyeUntilMs: number;
  lastWord: BotWord;
  saidMs: number;
}

export function createEvidenceBook(bots: number, watched: boolean, nowMs: () => number): EvidenceBook {
  const pages = new Map<Incarnation, readonly Page[]>();
  const pageOf = (incarnation: Incarnation, bot: number) => pages.get(incarnation)?.[bot];

  /** Deletes for the goodbye may still arrive for as long as a request travels. */
  function takeBack(page: Page): void {
    if (page.goodbyeUntilMs === Number.POSITIVE_INFINITY) page.goodbyeUntilMs = nowMs() + REQUEST_LIFETIME_MS;
  }

  return {
    begin(incarnation) {
      const { startedMs } = incarnation;
      const untilMs = watched ? startedMs + GRACE_MS : Number.POSITIVE_INFINITY;
      pages.set(
        incarnation,
        Array.from({ length: bots }, () => ({
          untilMs,
          sinceMs: startedMs,
          goodbyeUntilMs: Number.NEGATIVE_INFINITY,
          lastWord: 'beat' as BotWord,
          saidMs: startedMs,
        })),
      );
    },
    introduce(incarnation, bot) {
      const page = pageOf(incarnation, bot);
      if (page === undefined || !watched) return;
      page.untilMs = nowMs() + GRACE_MS;
      page.sinceMs = nowMs();
    },
    hear(incarnation, bot, says, saidMs) {
      const page = pageOf(incarnation, bot);
      if (page === undefined) return false;
      // A failure after a goodbye trips what a delete of unknown outcome may have left.
      const changed = says !== page.lastWord && says !== 'goodbye';
      page.lastWord = says;
      const missing = nowMs() - page.saidMs > STEADY_MS;
      if (page.untilMs < nowMs() || missing || says !== 'beat') page.sinceMs = nowMs();
      page.saidMs = saidMs;
      page.untilMs = says === 'beat' ? saidMs + TTL_MS : nowMs();
      if (says === 'goodbye') page.goodbyeUntilMs = Number.POSITIVE_INFINITY;
      if (says === 'fail') takeBack(page);
      return changed;
    },
    allowedUntilMs: (incarnation, bot) => pageOf(incarnation, bot)?.untilMs ?? 0,
    allowedAnyoneUntilMs(bot) {
      let latest = 0;
      for (const page of pages.values()) latest = Math.max(latest, page[bot]?.untilMs ?? 0);
      return latest;
    },
    isSteady: (incarnation, bot) =>
      !watched || nowMs() - (pageOf(incarnation, bot)?.saidMs ?? 0) <= STEADY_MS,
    freshSinceMs: (incarnation, bot) => pageOf(incarnation, bot)?.sinceMs ?? Number.POSITIVE_INFINITY,
    takeBackGoodbye(incarnation, bot) {
      const page = pageOf(incarnation, bot);
      if (page !== undefined) takeBack(page);
    },
    saidGoodbye: (incarnation, bot) => pageOf(incarnation, bot)?.goodbyeUntilMs === Number.POSITIVE_INFINITY,
    goodbyeUntilMs: (incarnation, bot) =>
      pageOf(incarnation, bot)?.goodbyeUntilMs ?? Number.NEGATIVE_INFINITY,
  };
}
