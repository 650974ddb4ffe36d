import { type Answer, done } from './answer.ts';
import type { Call } from './exchange-state.ts';
import { flawsAmong, integerFlaw, refuseFields } from './wording.ts';

const MAX_LIMIT = 100;
const MAX_OFFSET = 10_000;
/** The document shows no defaults; these are those of the live exchange. */
const DEFAULT_LIMIT = 30;
const DEFAULT_OFFSET = 0;

/** `POST /api/v4/main-account/codes/my`: the account's codes, newest first. They follow from the seed alone. */
export function listMyCodes(call: Call): Answer {
  const { account, body, state } = call;
  const { profile, holdings } = state;
  const { limit = DEFAULT_LIMIT, offset = DEFAULT_OFFSET } = body;
  const flaws = flawsAmong([
    integerFlaw('limit', limit, 1, MAX_LIMIT),
    integerFlaw('offset', offset, 0, MAX_OFFSET),
  ]);
  if (flaws.length > 0) return refuseFields('form', flaws, profile);
  const all = holdings.codesOf(account);
  const data = all.slice(Number(offset), Number(offset) + Number(limit));
  return done({ total: all.length, data, limit, offset }, profile === 'live' ? 201 : 200);
}
