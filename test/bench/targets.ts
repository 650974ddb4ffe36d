import type { Book, Target } from './book.ts';
import { FAULTS } from './protocol.ts';
import type { Spread } from './statistics.ts';

const MARKETS = 10_000;
const CONNECTIONS = 64;
const ROUND_TRIP_SECONDS = 0.02;
/** The documented limit: as many requests as there are markets, in this time. */
const LIMIT_SECONDS = 10;

interface Bound {
  readonly says: string;
  readonly is: Spread | undefined;
  readonly most?: number;
  readonly least?: number;
  readonly unit?: string;
  readonly decimals?: number;
}

/** A target is met by the median over the rounds. */
function judge({ says, is, most, least, unit = '', decimals = 2 }: Bound): Target {
  if (is === undefined || !Number.isFinite(is.median)) return { says, measured: 'not run', met: null };
  const figure = (value: number) => value.toFixed(decimals);
  const range = is.rounds > 1 ? ` (${figure(is.least)} to ${figure(is.most)})` : '';
  const met = (most === undefined || is.median <= most) && (least === undefined || is.median >= least);
  return { says, measured: `${figure(is.median)}${unit}${range}`, met };
}

/** What the daemon is to reach. */
export function judgeTargets(book: Book): Target[] {
  const { of, ratio } = book;
  // What a burst of 1,000 takes at least: as long as its round trips do over all connections, or as it uses the CPU.
  const burst = (cpu: string) =>
    Math.max((1000 * ROUND_TRIP_SECONDS) / CONNECTIONS, of(`${cpu}/1000/tls`)?.median ?? 0);
  const bounds: readonly Bound[] = [
    ...judgeLong(book),
    { says: 'CPU per renewal / plain undici loop <= 0.60', is: ratio('cpu/10000/tls', 'undici'), most: 0.6 },
    { says: 'CPU per renewal / ccxt <= 0.40', is: ratio('cpu/10000/tls', 'ccxt'), most: 0.4 },
    {
      says: 'CPU per renewal / bare floor at the same tick <= 1.5',
      is: ratio('cpu/10000/tls', 'floor'),
      most: 1.5,
    },
    {
      says: 'RSS with 10,000 markets <= 150 MB',
      is: of('rss/long') ?? of('rss/10000/tls'),
      most: 150,
      unit: ' MB',
      decimals: 0,
    },
    {
      says: 'no scrape holds the loop longer than 10 ms, of the daemon as shipped',
      is: of('turn/scrape'),
      most: 10,
      unit: ' ms',
      decimals: 1,
    },
    {
      says: 'arm 10,000 within 1.01 times what the limit allows (10 s)',
      is: of('all-armed/10000/tls'),
      most: 1.01 * LIMIT_SECONDS,
      unit: ' s',
    },
    {
      says: `arm 1,000 within 1.25 times ${burst('arming-cpu').toFixed(2)} s`,
      is: of('all-armed/1000/tls'),
      most: 1.25 * burst('arming-cpu'),
      unit: ' s',
    },
    {
      says: 'delete 10,000 within 1.01 times what the limit allows (10 s)',
      is: of('delete-all/10000/tls'),
      most: 1.01 * LIMIT_SECONDS,
      unit: ' s',
    },
    {
      says: `delete 1,000 within 1.25 times ${burst('delete-cpu').toFixed(2)} s`,
      is: of('delete-all/1000/tls'),
      most: 1.25 * burst('delete-cpu'),
      unit: ' s',
    },
    {
      says: 'all renewed after 30 s of outage within the same bound',
      is: of('outage/all'),
      most: 1.01 * LIMIT_SECONDS,
      unit: ' s',
    },
    { says: 'no lapse in 30 s of outage at T = 60', is: of('outage/lapses'), most: 0, decimals: 0 },
    ...FAULTS.map((fault) => ({
      says: `gap <= cadence + outage + 0.5 s: ${fault}`,
      is: of(`gap/${fault}`),
      most: 0.5,
      unit: ' s beyond',
    })),
    { says: '10 markets: CPU <= 0.5 % of a core', is: of('core/10/tls'), most: 0.5, unit: ' %' },
    { says: '10 markets: RSS <= 85 MB', is: of('rss/10/tls'), most: 85, unit: ' MB', decimals: 0 },
    {
      says: '10 markets: first timer armed <= 300 ms after the start',
      is: of('first-armed/10/tls'),
      most: 300,
      unit: ' ms',
      decimals: 0,
    },
    { says: 'CPU per renewal at 10,000 markets / at 1,000 <= 1', is: growth(book), most: 1 },
    { says: 'memory per market <= 5 KB', is: of('scraped/memory'), most: 5, unit: ' KB' },
    ...[1, 20, 100].flatMap((roundTripMs) => [
      {
        says: `serial: >= 95 % of 1/injected round trip at ${roundTripMs} ms`,
        is: of(`serial/${roundTripMs}`),
        least: 95,
        unit: ' %',
        decimals: 1,
      },
      {
        says: `serial: the daemon says that the cadence follows at ${roundTripMs} ms`,
        is: of(`serial-said/${roundTripMs}`),
        least: 1,
        decimals: 0,
      },
      {
        says: `serial: the period settles on what is carried, within 10 %, at ${roundTripMs} ms`,
        is: of(`serial-apart/${roundTripMs}`),
        most: 10,
        unit: ' %',
        decimals: 1,
      },
    ]),
  ];
  return bounds.map(judge);
}

function judgeLong({ of }: Book): Bound[] {
  return [
    {
      says: `${MARKETS.toLocaleString('en')} markets, the long run: lapses 0`,
      is: of('lapses/long'),
      most: 0,
      decimals: 0,
    },
    {
      says: 'least slack at a renewal >= 80 % of T',
      is: of('slack/long'),
      least: 80,
      unit: ' %',
      decimals: 1,
    },
    {
      says: 'lateness against the planned time, p99 <= 26 ms, while scraped',
      is: of('late-p99/long'),
      most: 26,
      unit: ' ms',
      decimals: 1,
    },
    {
      says: 'lateness against the planned time, max (upper bound of its bucket) <= 60 ms, while scraped',
      is: of('late-max/long'),
      most: 60,
      unit: ' ms',
      decimals: 1,
    },
    {
      says: 'at most 10,000 requests in any 10 s, from start to end',
      is: of('long/requests'),
      most: 10_000,
      decimals: 0,
    },
  ];
}

function growth({ of }: Book): Spread | undefined {
  const [large, small] = [of('cpu/10000/tls'), of('cpu/1000/tls')];
  if (large === undefined || small === undefined) return undefined;
  const value = large.median / small.median;
  return { median: value, least: value, most: value, rounds: 1 };
}
