import type { LeftArmed, Notice, Suspension } from '../core/notice.ts';
import type { Instant } from '../core/time.ts';
import { durationText, momentText } from './moment.ts';

type Of<K extends Notice['kind']> = Extract<Notice, { kind: K }>;

/** More markets than this are counted in a sentence instead of named; the line's fields name them all. */
const NAMED_MARKETS = 20;

const SUSPENDED: { readonly [S in Suspension]: string } = {
  bot_stale: 'its bot gives no evidence that it lives',
  bot_goodbye: 'its bot said goodbye',
  bot_failed: 'its bot says that it failed',
  operator: 'an operator asked for it',
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

export function describeSuspension(notice: Of<'suspended'>): string {
  return `${notice.market} is not renewed on purpose: ${SUSPENDED[notice.why]}. Its timer is left to fire.`;
}

/** What a stop left behind at the exchange, and until when. */
export function describeStop(notice: Of<'stopped'>, _context: unknown, now: Instant): string {
  const { left } = notice;
  if (left.length === 0) return 'Stopped. No timer of this process is left armed at the exchange.';
  const unconfirmed = left.filter(({ why }) => why === 'unconfirmed');
  const policy = left.filter(({ why }) => why === 'policy');
  const parts = ['Stopped.'];
  if (unconfirmed.length > 0) {
    parts.push(
      `NOT CONFIRMED DELETED: ${namesAndMoments(unconfirmed, now)}. ` +
        'Expect the orders to be cancelled by then unless the timer is deleted or renewed.',
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
  const named = left
    .slice(0, NAMED_MARKETS)
    .map(({ market, firesByWallMs }) => `${market} fires by ${momentText(firesByWallMs, now.wallMs)}`);
  const others = left.length - named.length;
  return others > 0 ? `${named.join(', ')} and ${others} more` : named.join(', ');
}
