/** Longer words are no slip of the pen, and cost time to compare. */
const LONGEST_WORD = 64;
/** A search must stay short however many markets there are: anybody who can ask can ask again. */
const MOST_CANDIDATES = 1000;

/** `; did you mean X?`, or an empty text for null. */
export const suggest = (word: string | null) => (word === null ? '' : `; did you mean ${word}?`);

/** The same with the candidate that `word` was probably meant to be. */
export const didYouMean = (word: string, candidates: readonly string[]) => suggest(nearest(word, candidates));

/** The candidate that `word` was probably meant to be, or null where none is near enough. */
export function nearest(word: string, candidates: readonly string[]): string | null {
  if (word.length > LONGEST_WORD) return null;
  const given = lettersOf(word);
  let best: string | null = null;
  let bestDistance = Math.max(2, Math.floor(given.length / 3)) + 1;
  for (const candidate of candidates.slice(0, MOST_CANDIDATES)) {
    if (candidate.length > LONGEST_WORD) continue;
    const known = lettersOf(candidate);
    const isPart = isPartOf(given, known) || isPartOf(known, given) || isFirstWordOf(word, candidate);
    if (!isPart && Math.abs(given.length - known.length) >= bestDistance) continue;
    // A slip of one letter is nearer than a part: `API_KEYFILE` begins as API_KEY does, and means API_KEY_FILE.
    const distance = Math.min(editDistance(given, known), isPart ? 1.5 : Number.POSITIVE_INFINITY);
    if (distance < bestDistance && distance < known.length) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** `killswitch` of `kill-switch` and of `killSwitch`. */
const lettersOf = (word: string) => word.toLowerCase().replaceAll(/[-_]/g, '');

/** `/beat` of `/v1/beat`, `timeout` of `timeoutSeconds`. */
const isPartOf = (part: string, whole: string) =>
  part.length > 3 && (whole.startsWith(part) || whole.endsWith(part));

/** `ttl` of `ttlSeconds`. */
const isFirstWordOf = (word: string, name: string) =>
  word.length > 1 && name.startsWith(word) && /^[A-Z_.-]/.test(name.slice(word.length));

/** What a market may be called: base and quote currency, upper case, joined by an underscore. */
export const MARKET_PATTERN = '^[A-Z0-9]+_[A-Z0-9]+$';

/** The name that `text` was probably meant to be, `BTC_USDT` for `btc/usdt`, or null. */
export function nearestMarket(text: string): string | null {
  if (text.length > LONGEST_WORD) return null;
  const upper = text.trim().toUpperCase();
  const joined = upper.replace(/[-/ :.]/, '_');
  const parted = joined.includes('_') ? joined : joined.replace(/(USDT|USDC|USD|EUR|BTC|ETH)$/, '_$1');
  return new RegExp(MARKET_PATTERN).test(parted) ? parted : null;
}

/** Insertions, deletions, replacements and swapped neighbours, each counted once. */
function editDistance(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const cost = one[i - 1] === other[j - 1] ? 0 : 1;
      const isSwapped = cost === 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const swapped = isSwapped ? (beforeLast[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + cost, swapped));
    }
    [beforeLast, last] = [last, row];
  }
  return last[other.length] ?? 0;
}
