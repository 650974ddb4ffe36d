// What the views of the page say numbers and states with. These functions run on the server for the first state and, by
// their source text, in the browser for every later one: they may refer to nothing outside themselves.

/** Seconds as `0 s`, `12 ms`, `2.5 s`, `54 s`, `4 min 10 s` or `2 h 5 min`, with spaces that do not break. */
function formatSeconds(seconds: number): string {
  const units = (big: number, bigUnit: string, small: number, smallUnit: string): string =>
    small === 0 ? `${big}\u00a0${bigUnit}` : `${big}\u00a0${bigUnit}\u00a0${small}\u00a0${smallUnit}`;
  if (seconds > 0 && seconds < 0.9995) return `${Math.round(seconds * 1000)}\u00a0ms`;
  if (seconds < 10) return `${Math.round(seconds * 10) / 10}\u00a0s`;
  const whole = Math.floor(seconds);
  if (whole < 120) return `${whole}\u00a0s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 120) return units(minutes, 'min', whole % 60, 's');
  const hours = Math.floor(minutes / 60);
  return hours < 48
    ? units(hours, 'h', minutes % 60, 'min')
    : units(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

/** Unix seconds as a time of day, with the date where `near` is more than 20 hours away; in the reader's time zone. */
function formatTime(unixSeconds: number, near = unixSeconds): string {
  const time = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const;
  const day = Math.abs(near - unixSeconds) > 72_000 ? ({ day: 'numeric', month: 'short' } as const) : {};
  return new Intl.DateTimeFormat('en-GB', { ...day, ...time }).format(unixSeconds * 1000);
}

/** `1 market`, `1,200 markets`; without `what` the number alone. */
function formatCount(count: number, what = ''): string {
  const number = count.toLocaleString('en-GB');
  return what === '' ? number : `${number} ${what}${count === 1 ? '' : 's'}`;
}

/** The name of the colour and symbol for a state; the state itself is always there as a word too. */
function toneOf(state: string): string {
  if (['armed', 'alive', 'up', 'ready'].includes(state)) return 'ok';
  if (['expired', 'rejected', 'failed', 'stale', 'down', 'outage'].includes(state)) return 'bad';
  if (['retrying', 'suspended', 'not ready', 'not guarding', 'stopping', 'not watched'].includes(state))
    return 'warn';
  return 'idle';
}

/** The symbol that goes with a tone. */
function iconOf(tone: string): string {
  return { ok: '✓', warn: '!', bad: '×' }[tone] ?? '–';
}

/** Handed to every view. */
export const WORDS = {
  seconds: formatSeconds,
  time: formatTime,
  count: formatCount,
  tone: toneOf,
  icon: iconOf,
} as const;
export type Words = typeof WORDS;

/** The words above as source text for the browser, under the name `say`. */
export const WORDS_SOURCE = `const say = { ${Object.entries(WORDS)
  .map(([name, word]) => `${name}: ${word.toString()}`)
  .join(',\n')} };`;

/** Texts and attribute values of one row, by the name of the slot they go into. `key` tells rows of a list apart. */
export type Row = Readonly<Record<string, string>> & { readonly key: string };

/** When and how the page looks at a document. */
export interface Look {
  /** Since the document was made; stands still once the daemon is gone. */
  readonly elapsedSeconds: number;
  /** `lost`: it does not answer any more. `ended`: it said so before. */
  readonly gone: 'lost' | 'ended' | null;
  /** Unix seconds of the reader's clock: when the daemon was heard of last. */
  readonly heardAt: number;
  /** How the page is kept up to date. */
  readonly link: 'stream' | 'poll' | 'none';
}
