import { WORDS } from '../operator/page-words.ts';
import { type SeenBot, type SeenMarket, type SeenStatus, worstMarkets } from './status-document.ts';
import { type Column, cells, type Line, layOut, type Tone } from './table.ts';

/** How much of it is shown. */
export interface StatusView {
  /** Characters per line; infinite where it does not matter. */
  readonly width: number;
  /** Markets that are shown. */
  readonly limit: number;
  /** Characters of a bar, full and empty; null where none are drawn. */
  readonly bar: { readonly full: string; readonly empty: string } | null;
  /** Where the daemon is. */
  readonly at: string;
}

const BAR_WIDTH = 10;
const REASONS_SHOWN = 3;
const NAMES_SHOWN = 5;

/** A status document as lines: what it is and how it is, the markets, and what a stop would do. */
export function renderStatus(seen: SeenStatus, view: StatusView): Line[] {
  const shown = worstMarkets(seen.markets, view.limit);
  const leftOut = seen.markets.length - shown.length;
  return [
    ...describeDaemon(seen, view),
    [],
    ...(shown.length === 0 ? [] : layOut(columnsOf(shown, seen, view), view.width)),
    ...(leftOut === 0 ? [] : [cells('idle', describeLeftOut(leftOut, shown.length))]),
    [],
    ...describeStops(seen),
  ];
}

function describeLeftOut(leftOut: number, shown: number): string {
  const left = `${WORDS.count(leftOut)} more ${leftOut === 1 ? 'market is' : 'markets are'} left out`;
  return shown === 0 ? `${left}.` : `${left}, in no worse state than these; --all shows them.`;
}

function describeDaemon(seen: SeenStatus, { at }: StatusView): Line[] {
  const up = seen.startedAt === null || seen.now === null ? '' : `, up ${seconds(seen.now - seen.startedAt)}`;
  const [first, ...others] = seen.notReady.slice(0, REASONS_SHOWN);
  const more = seen.notReady.length - REASONS_SHOWN;
  return [
    [{ text: `killswitchd ${seen.version}`, tone: 'strong' }, { text: `${up}, at ${at}` }],
    describeVerdict(seen, first),
    ...others.map((reason) => cells(null, `  ${reason}`)),
    ...(more > 0 ? [cells(null, `  and ${WORDS.count(more, 'more reason')}`)] : []),
    ...seen.bases.map(describeBase),
    describeCounts(seen.markets),
  ];
}

function describeVerdict({ ready, nothingGuarded }: SeenStatus, reason: string | undefined): Line {
  if (!ready) return [{ text: 'Not ready', tone: 'bad' }, { text: `: ${reason ?? 'it does not say why'}` }];
  return nothingGuarded === null
    ? [{ text: 'Ready', tone: 'ok' }, { text: ': every wanted market is confirmed armed.' }]
    : [{ text: 'Ready', tone: 'warn' }, { text: `, but ${nothingGuarded}.` }];
}

function describeBase({ url, up, pingSeconds, outage, lastProblem }: SeenStatus['bases'][number]): Line {
  const why = lastProblem === null ? '' : `: ${lastProblem}`;
  const name = { text: `Exchange ${url}: ` };
  if (outage) return [name, { text: 'outage', tone: 'bad' }, { text: why }];
  if (up === null) return [name, { text: 'no ping yet', tone: 'idle' }];
  if (!up) return [name, { text: 'answers no ping', tone: 'bad' }, { text: why }];
  const ping = pingSeconds === null ? '' : `, ping ${seconds(pingSeconds)}`;
  return [name, { text: 'up', tone: 'ok' }, { text: ping }];
}

function describeCounts(markets: readonly SeenMarket[]): Line {
  const counts = new Map<string, number>();
  for (const { state } of markets) counts.set(state, (counts.get(state) ?? 0) + 1);
  const parts = [...counts].flatMap(([state, count], index) => [
    { text: index === 0 ? ': ' : ', ' },
    { text: `${WORDS.count(count)} ${state}`, tone: toneOf(state) },
  ]);
  return [{ text: WORDS.count(markets.length, 'market') }, ...parts];
}

/** One column, market by market. */
interface Fact {
  readonly title: string;
  readonly keep: number;
  readonly text: (market: SeenMarket) => string;
  readonly tone?: (market: SeenMarket) => Tone | null;
  readonly right?: true;
  readonly least?: number;
}

function columnsOf(markets: readonly SeenMarket[], seen: SeenStatus, { bar }: StatusView): Column[] {
  const botOf = ({ bot }: SeenMarket) => seen.bots.get(bot);
  const byState = ({ state }: SeenMarket) => toneOf(state);
  const facts: readonly Fact[] = [
    { title: 'MARKET', keep: 100, text: ({ market }) => market, least: 8 },
    { title: 'STATE', keep: 100, text: ({ state }) => state, tone: byState },
    { title: 'TIMER', keep: 3, text: (market) => drawBar(market, bar), tone: byState },
    { title: 'LEFT', keep: 100, text: leftOf, right: true },
    { title: 'TIMEOUT', keep: 2, text: (market) => secondsOrNone(market.timeoutSeconds), right: true },
    { title: 'EVERY', keep: 1, text: (market) => secondsOrNone(market.renewEverySeconds), right: true },
    { title: 'SLACK', keep: 5, text: (market) => percentOrNone(market.lastSlackRatio), right: true },
    {
      title: 'BOT',
      keep: 6,
      text: (market) => describeBot(market.bot, botOf(market)),
      tone: (market) => toneOfBot(botOf(market)),
    },
    {
      title: 'LAPSES',
      keep: 7,
      text: ({ lapses }) => WORDS.count(lapses),
      tone: ({ lapses }) => (lapses > 0 ? 'bad' : null),
      right: true,
    },
    { title: 'FAILED', keep: 4, text: ({ failures }) => WORDS.count(failures), right: true },
    { title: 'NOTE', keep: 8, text: (market) => noteOf(market, seen.now), least: 16 },
  ];
  const columns = facts.map(({ title, keep, text, tone, right, least }): Column => {
    const tones = tone === undefined ? null : markets.map(tone);
    return { title, keep, texts: markets.map(text), tones, right: right === true, least: least ?? null };
  });
  return columns.filter(
    ({ title, texts }) => !MAY_BE_EMPTY.includes(title) || texts.some((text) => text !== ''),
  );
}

/** Columns that are left out where they would say nothing. */
const MAY_BE_EMPTY: readonly string[] = ['TIMER', 'NOTE'];

function toneOfBot(bot: SeenBot | undefined): Tone {
  return bot === undefined || bot.mode === 'none' ? 'idle' : toneOf(bot.state);
}

function drawBar({ guaranteedSeconds, timeoutSeconds }: SeenMarket, bar: StatusView['bar']): string {
  if (bar === null) return '';
  if (guaranteedSeconds === null || timeoutSeconds === null || timeoutSeconds <= 0) return '';
  const share = Math.min(1, Math.max(0, guaranteedSeconds / timeoutSeconds));
  // Whatever is left shows: an empty bar means that nothing is.
  const full = Math.ceil(share * BAR_WIDTH);
  return bar.full.repeat(full) + bar.empty.repeat(BAR_WIDTH - full);
}

function leftOf({ guaranteedSeconds }: SeenMarket): string {
  if (guaranteedSeconds === null) return '-';
  return guaranteedSeconds <= 0 ? '0 s' : seconds(Math.max(1, Math.floor(guaranteedSeconds)));
}

function describeBot(name: string, bot: SeenBot | undefined): string {
  if (bot === undefined) return name;
  if (bot.mode === 'none') return `${name} not watched`;
  const age = bot.evidenceAgeSeconds === null ? '' : `${seconds(bot.evidenceAgeSeconds)} ago`;
  const state = { alive: '', goodbye: 'said goodbye' }[bot.state] ?? bot.state;
  return [name, [state, age].filter((part) => part !== '').join(', ')]
    .filter((part) => part !== '')
    .join(' ');
}

/** What somebody must know of this market beyond its figures. */
function noteOf(market: SeenMarket, now: number | null): string {
  const { hold, leaving, handedOverInSeconds, lastProblem } = market;
  const moved =
    handedOverInSeconds === null
      ? ''
      : `moved to another shard, left to it in ${seconds(handedOverInSeconds)}`;
  const notes = [
    moved,
    leaving && moved === '' ? 'no longer configured' : '',
    describeHold(hold, now),
    lastProblem ?? '',
  ];
  return notes.filter((note) => note !== '').join('; ');
}

function describeHold(hold: SeenMarket['hold'], now: number | null): string {
  if (hold === null) return '';
  const { why, untilAt } = hold;
  if (untilAt !== null && now !== null) return `${why} for another ${seconds(Math.max(0, untilAt - now))}`;
  const known = { disarmed: 'disarmed', tripped: 'tripped', lapsed: 'held after a lapse' }[why] ?? why;
  return `${known} until it is armed`;
}

function describeStops({ stops, shutdownPolicy }: SeenStatus): Line[] {
  if (stops.length === 0) return [];
  return [
    cells(null, `A stop now (policy ${shutdownPolicy}):`),
    ...stops.map(({ does, count, markets }) => cells(null, `  ${does}: ${nameMarkets(markets, count)}`)),
  ];
}

/** `BTC_USDT`, `3 markets (A, B, C)`, `9,000 markets (A, B, C, D, E and 8,995 more)`. */
export function nameMarkets(markets: readonly string[], count = markets.length): string {
  const [only] = markets;
  if (count === 1 && only !== undefined) return only;
  if (markets.length === 0) return WORDS.count(count, 'market');
  const named = markets.slice(0, count === NAMES_SHOWN + 1 ? count : NAMES_SHOWN);
  const more = count - named.length;
  const names = named.join(', ') + (more > 0 ? ` and ${WORDS.count(more)} more` : '');
  return `${WORDS.count(count, 'market')} (${names})`;
}

/** `1.2 s`, `54 s`, `4 min 10 s`. */
export function seconds(value: number): string {
  return WORDS.seconds(Math.max(0, value)).replaceAll('\u00a0', ' ');
}

function secondsOrNone(value: number | null): string {
  return value === null ? '-' : seconds(value);
}

function percentOrNone(ratio: number | null): string {
  return ratio === null ? '-' : `${Math.round(ratio * 100)} %`;
}

/** As on the status page. */
function toneOf(state: string): Tone {
  return WORDS.tone(state) as Tone;
}
