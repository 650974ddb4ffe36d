import { hashText } from '../util/text.ts';
import { type Answer, done, flawsAmong, integerFlaw, refuseFields } from './answer.ts';
import { formatDecimal } from './decimal.ts';
import { createRandom, randomHex } from './random.ts';
import type { Call } from './state.ts';

const MAX_LIMIT = 100;
const MAX_OFFSET = 10_000;
/** The document shows no defaults; these are those of the live exchange. */
const DEFAULT_LIMIT = 30;
const DEFAULT_OFFSET = 0;

/** `POST /api/v4/main-account/codes/my`: the account's codes, newest first. They follow from the seed alone. */
export function listMyCodes(call: Call): Answer {
  const { account, body, state } = call;
  const { profile, seed, codes } = state;
  const { limit = DEFAULT_LIMIT, offset = DEFAULT_OFFSET } = body;
  const flaws = flawsAmong([
    integerFlaw('limit', limit, 1, MAX_LIMIT),
    integerFlaw('offset', offset, 0, MAX_OFFSET),
  ]);
  if (flaws.length > 0) return refuseFields('form', flaws, profile);
  const all = codesOf(seed, account, codes);
  const data = all.slice(Number(offset), Number(offset) + Number(limit));
  return done({ total: all.length, data, limit, offset }, profile === 'live' ? 201 : 200);
}

/** Unix seconds of an account's newest code; each one before it is up to a day older. */
const NEWEST = 1_700_000_000;
const DAY_SECONDS = 86_400;
const TICKERS = ['BTC', 'ETH', 'USDT'] as const;

/** A code record of the API document. */
interface Code {
  readonly amount: string;
  readonly code: string;
  readonly date: number;
  readonly status: 'Activated';
  readonly ticker: string;
  readonly external_id: string;
}

/** The codes that an account created, newest first: `count` of them, which follow from the seed and its name alone. */
function codesOf(seed: number, account: string, count: number): readonly Code[] {
  const random = createRandom(hashText(`${seed} codes ${account}`));
  let date = NEWEST;
  return Array.from({ length: count }, (): Code => {
    const ticker = TICKERS[Math.floor(random() * TICKERS.length)] ?? 'BTC';
    const amount = formatDecimal({ units: BigInt(1 + Math.floor(random() * 99_999)), scale: 4 });
    const code = `SIM${uuid(random)}${ticker}`;
    const made: Code = { amount, code, date, status: 'Activated', ticker, external_id: uuid(random) };
    date -= 1 + Math.floor(random() * DAY_SECONDS);
    return made;
  });
}

function uuid(random: () => number): string {
  return [8, 4, 4, 4, 12].map((digits) => randomHex(random, digits)).join('-');
}
