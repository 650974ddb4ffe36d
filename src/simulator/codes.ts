import { hashText } from '../util/hash.ts';
import { formatDecimal } from './decimal.ts';
import { createRandom, randomHex } from './random.ts';

/** Unix seconds of an account's newest code; each one before it is up to a day older. */
const NEWEST = 1_700_000_000;
const DAY_SECONDS = 86_400;
const TICKERS = ['BTC', 'ETH', 'USDT'] as const;

/** A code record of the API document. */
export interface Code {
  readonly amount: string;
  readonly code: string;
  readonly date: number;
  readonly status: 'Activated';
  readonly ticker: string;
  readonly external_id: string;
}

/** The codes that an account created, newest first: `count` of them, which follow from the seed and its name alone. */
export function createCodeBook(seed: number, count: number): (account: string) => readonly Code[] {
  const books = new Map<string, readonly Code[]>();
  return (account) => {
    const codes = books.get(account) ?? makeCodes(seed, account, count);
    books.set(account, codes);
    return codes;
  };
}

function makeCodes(seed: number, account: string, count: number): readonly Code[] {
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
