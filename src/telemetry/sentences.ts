import type { Firing, LeftArmed, Notice, Suspension } from '../core/notice.ts';
import { TRIP_MS } from '../core/promise.ts';
import type { Instant } from '../core/time.ts';
import { durationText, momentText } from './moment.ts';

type Of<K extends Notice['kind']> = Extract<Notice, { kind: K }>;

/** More markets than this are counted in a sentence instead of named; the line's fields name them all. */
const NAMED_MARKETS = 20;

const SUSPENDED: { readonly [S in Suspension]: string } = {
  bot_stale: 'Its bot is silent',
  bot_goodbye: 'Its bot said goodbye',
  bot_failed: 'Its bot failed',
};

/** What a trader who is woken up has to know: what happened to the orders, since when, and what stands now. */
export function describeLapse(notice: Of<'lapsed'>): string {
  const { market, certainty, gapMs, unresolved, rearms } = notice;
  const what =
    certainty === 'certain'
      ? `${market} LAPSED: its timer ran out and the exchange cancelled its orders.`
      : `${market} MAY HAVE LAPSED: its timer ran out, or a renewal whose answer was lost kept it.`;
  const gap = gapMs > 0 ? ` No renewal was confirmed for ${durationText(gapMs)}.` : '';
  const lost =
    unresolved > 0 ? ` ${unresolved} ${unresolved === 1 ? 'answer is' : 'answers are'} missing.` : '';
  const next = rearms
    ? ' The daemon arms it again. Check which orders the bot has now.'
    : ' It is NOT armed again (onLapse: hold): arm it when the bot has been checked.';
  return what + gap + lost + next;
}

export function describeSuspension(
  { market, why, firesByWallMs }: Of<'suspended'>,
  _: unknown,
  now: Instant,
): string {
  const fires =
    firesByWallMs === null
      ? 'It has no timer.'
      : `Its orders are cancelled by ${momentText(firesByWallMs, now.wallMs)}.`;
  const ends = why === 'bot_goodbye' ? 'Its timer ends as shutdown.policy says.' : fires;
  return `${SUSPENDED[why]}: ${market} is no longer renewed. ${ends}`;
}

const FIRED: { readonly [F in Firing]: string } = {
  bot_stale: 'its bot was silent',
  bot_failed: 'its bot failed',
  kept: 'it was left to run out',
  tripped: 'an operator tripped it',
  disarmed: 'it was disarmed or paused while its bot was dead',
};

/** The end of a timer that nobody renewed: what became of the orders. */
export function describeFiring(
  { market, why, firedByWallMs }: Of<'fired'>,
  _: unknown,
  now: Instant,
): string {
  return (
    `The timer of ${market} has fired: its orders were cancelled by ${momentText(firedByWallMs, now.wallMs)} at the latest, ` +
    `because ${FIRED[why]}.`
  );
}

/** Who took a market out of guard, until when, and what that means for its orders. */
export function describeHold({ market, why, untilWallMs }: Of<'held'>, _: unknown, now: Instant): string {
  switch (why) {
    case 'paused': {
      const until = untilWallMs === null ? '' : ` until ${momentText(untilWallMs, now.wallMs)}`;
      return `${market} is paused${until}: it is not renewed, and nothing new guards its orders. The pause ends by itself.`;
    }
    case 'disarmed':
      return `${market} is disarmed: it is not renewed, and nothing new guards its orders until somebody arms it.`;
    case 'tripped':
      return (
        `${market} is TRIPPED by an operator: its timer is cut to ${durationText(TRIP_MS)}, and the exchange cancels ` +
        'its orders. It is not armed again until somebody arms it.'
      );
    case 'lapsed':
      return `${market} is NOT armed again after its lapse (onLapse: hold), until somebody arms it.`;
  }
}

const REMOVED = {
  deleted: 'its timer is deleted, as the exchange confirmed, or there was none.',
  kept: 'its timer is left as it is, and fires unless somebody renews it.',
  handed_off: 'its timer was renewed once more in full, and fires unless somebody else renews it.',
  fired:
    'its time was up before its timer was deleted. If it had a timer, the exchange has cancelled its orders.',
} as const;

export function describeRemoval({ market, how }: Of<'removed'>): string {
  return `${market} has left the configuration: ${REMOVED[how]}`;
}

/** Which markets a reload touched. */
export function describeReload({ added, removed, changed, moved }: Of<'reloaded'>): string {
  const parts = [
    { what: 'added', markets: added },
    { what: 'changed', markets: changed },
    { what: 'removed', markets: removed },
    { what: 'moved to another shard, and guarded here as well for a while,', markets: moved },
  ].filter(({ markets }) => markets.length > 0);
  if (parts.length === 0) return 'The new configuration is in force; its markets are the same.';
  const said = parts.map(({ what, markets }) => `${what} ${listed(markets)}`);
  return `The markets of the new configuration are in force: ${said.join('; ')}.`;
}

/** What a stop left behind at the exchange, and until when. */
export function describeStop(notice: Of<'stopped'>, _context: unknown, now: Instant): string {
  const { left } = notice;
  if (left.length === 0) return 'Stopped. No timer of this process is left armed at the exchange.';
  const unconfirmed = left.filter(({ why }) => why === 'unconfirmed');
  const unrenewed = left.filter(({ why }) => why === 'unrenewed');
  const policy = left.filter(({ why }) => why === 'policy');
  const parts = ['Stopped.'];
  if (unconfirmed.length > 0) {
    parts.push(
      `NOT CONFIRMED DELETED: ${namesAndMoments(unconfirmed, now)}. ` +
        'Expect the orders to be cancelled by then unless the timer is deleted or renewed.',
    );
  }
  if (unrenewed.length > 0) {
    parts.push(
      `NOT RENEWED ONCE MORE: ${namesAndMoments(unrenewed, now)}. ` +
        'The orders are cancelled by then, or sooner, unless the successor renews the timer in time.',
    );
  }
  if (policy.length > 0) {
    parts.push(
      `Left armed on purpose: ${namesAndMoments(policy, now)}. ` +
        'The orders are cancelled by then unless somebody renews the timer.',
    );
  }
  return parts.join(' ');
}

function namesAndMoments(left: readonly LeftArmed[], now: Instant): string {
  return listed(
    left,
    ({ market, firesByWallMs }) => `${market} fires by ${momentText(firesByWallMs, now.wallMs)}`,
  );
}

export function listed<T>(items: readonly T[], say: (item: T) => string = String): string {
  const named = items.slice(0, NAMED_MARKETS).map(say).join(', ');
  const others = items.length - NAMED_MARKETS;
  return others > 0 ? `${named} and ${others} more` : named;
}
