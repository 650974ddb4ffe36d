import { plannedPerSecond } from '../core/rate.ts';
import { planCadence } from '../core/timing.ts';
import { suggest } from '../util/nearest.ts';
import {
  type Checked,
  checkBaseUrl,
  checkControlListen,
  checkWebListen,
  type ListenAddress,
} from './addresses.ts';
import { type Config, type MarketConfig, type MarketEntry, type Settled, settleMarkets } from './config.ts';
import { budgetOf, toMarketSettings } from './core-settings.ts';
import { type Command, checkLiveness } from './liveness.ts';
import { BOT_PATTERN, MARKET_PATTERN } from './market-schema.ts';
import type { Path } from './problem.ts';
import { marketsOf } from './shard.ts';
import type { Mistake } from './validate.ts';
import { describe } from './wording.ts';

/** What only the whole of a configuration tells. */
export interface Meaning {
  readonly mistakes: readonly Mistake[];
  /** What must be there and is not, whichever source would have given it. */
  readonly missing: readonly Mistake[];
  readonly markets: readonly MarketConfig[];
  readonly baseUrls: readonly string[];
  readonly webListen: readonly ListenAddress[];
  readonly controlListen: readonly ListenAddress[];
  /** Null where no mode is given. */
  readonly liveness: Config['liveness'] | null;
}

export interface Before {
  readonly embeddedExchange: boolean;
  /** Null where the configuration is only looked at. */
  readonly command: Command | null;
  /** Something at, above or below the path was already found wrong: it is not missing, and what follows from it is unknown. */
  readonly isMistaken: (path: Path) => boolean;
  /** Where a value stands, for a message about another one. */
  readonly labelOf: (path: Path) => string;
}

/** Checks what the schema cannot: names, addresses, duplicates, what is missing, and whether the cadence fits. */
export function checkMeaning(values: Settled, before: Before): Meaning {
  const baseUrls = before.embeddedExchange
    ? { values: [], mistakes: [] }
    : checkList(['exchange', 'baseUrls'], values.exchange.baseUrls ?? [], checkBaseUrl, String);
  const nameOf = ({ text }: ListenAddress) => text;
  const web = checkList(['web', 'listen'], values.web.listen, checkWebListen, nameOf);
  const control = checkList(
    ['control', 'listen'],
    values.control.listen,
    checkControlListen,
    nameOf,
    web.values.map(nameOf),
  );
  const markets = settleMarkets(values.markets ?? [], values.defaults);
  const marketMistakes = checkMarkets(values.markets ?? [], before.labelOf);
  const liveness = checkLiveness(values, {
    command: before.command,
    markets,
    controlListeners: control.values.length,
    isMistaken: before.isMistaken,
  });
  const cadenceIsSettled =
    marketMistakes.length === 0 &&
    ![['markets'], ['defaults'], ['shard'], ['exchange', 'budgetShare']].some(before.isMistaken);
  return {
    mistakes: [
      ...baseUrls.mistakes,
      ...marketMistakes,
      ...(cadenceIsSettled ? checkCadence(values, markets) : []),
      ...web.mistakes,
      ...control.mistakes,
      ...liveness.mistakes,
    ],
    missing: [...findMissing(values, before), ...liveness.missing],
    markets,
    baseUrls: baseUrls.values,
    webListen: web.values,
    controlListen: control.values,
    liveness: liveness.liveness,
  };
}

function findMissing(values: Settled, { embeddedExchange, isMistaken }: Before): Mistake[] {
  const wanted: { path: Path; value: unknown; text: string }[] = [
    {
      path: ['exchange', 'baseUrls'],
      value: embeddedExchange ? [] : values.exchange.baseUrls,
      text: 'missing; write the address of the exchange, such as exchange: { baseUrls: [https://exchange.example] }, or set KILLSWITCHD_BASE_URL',
    },
    {
      path: ['markets'],
      value: values.markets,
      text: 'missing; write the markets to keep armed, such as markets: [BTC_USDT, ETH_USDT], or set KILLSWITCHD_MARKETS',
    },
  ];
  return wanted
    .filter(({ path, value }) => value === undefined && !isMistaken(path))
    .map(({ path, text }) => ({ path, text }));
}

function checkMarkets(entries: readonly MarketEntry[], labelOf: Before['labelOf']): Mistake[] {
  const mistakes: Mistake[] = [];
  const firstAt = new Map<string, Path>();
  entries.forEach((entry, index) => {
    if (entry === undefined) return;
    const own = typeof entry === 'string' ? { market: entry } : entry;
    const at: Path = ['markets', index];
    const path = typeof entry === 'string' ? at : [...at, 'market'];
    if (own.bot !== undefined && !new RegExp(BOT_PATTERN).test(own.bot)) {
      const found = describe(own.bot);
      mistakes.push({
        path: [...at, 'bot'],
        text: `found ${found}; allowed: 1 to 64 letters, digits, dots, dashes and underscores, not dots alone`,
      });
    }
    // A name that was taken out as wrong has been told about.
    if (typeof own.market !== 'string') return;
    if (!new RegExp(MARKET_PATTERN).test(own.market)) {
      const variable = own.market.includes(':')
        ? ', or MARKET[:SECONDS[:TYPE+TYPE]] in a variable or flag'
        : '';
      const allowed = `allowed: BASE_QUOTE in upper-case letters and digits${variable}`;
      const meant = suggest(meantMarket(own.market));
      mistakes.push({ path, text: `found ${describe(own.market)}; ${allowed}${meant}` });
      return;
    }
    const first = firstAt.get(own.market);
    if (first === undefined) firstAt.set(own.market, at);
    else {
      mistakes.push({
        path,
        text: `found ${describe(own.market)} a second time after ${labelOf(first)}; allowed: each market once`,
      });
    }
  });
  return mistakes;
}

function meantMarket(text: string): string | null {
  const [, name, seconds] = /^([A-Z0-9]+_[A-Z0-9]+):(\d+)$/.exec(text) ?? [];
  if (name !== undefined) return `{ market: ${name}, timeoutSeconds: ${seconds} }`;
  const joined = text
    .trim()
    .toUpperCase()
    .replace(/[-/ :.]/, '_');
  const parted = joined.includes('_') ? joined : joined.replace(/(USDT|USDC|USD|EUR|BTC|ETH)$/, '_$1');
  return new RegExp(MARKET_PATTERN).test(parted) ? parted : null;
}

function checkCadence({ exchange, shard }: Settled, fleet: readonly MarketConfig[]): Mistake[] {
  const markets = marketsOf(shard, fleet).map(toMarketSettings);
  const { problems } = planCadence(markets, plannedPerSecond({ budget: budgetOf(exchange, shard) }, null));
  return problems.map((text) => ({ path: ['markets'], text }));
}

/** Checks each entry of a list of addresses, and that none stands there twice, here or in `taken`. */
function checkList<T>(
  path: Path,
  entries: readonly (string | undefined)[],
  check: (text: string) => Checked<T>,
  nameOf: (value: T) => string,
  taken: readonly string[] = [],
): { values: T[]; mistakes: Mistake[] } {
  const values: T[] = [];
  const mistakes: Mistake[] = [];
  const names = new Set(taken);
  entries.forEach((entry, index) => {
    if (entry === undefined) return;
    const checked = check(entry);
    if (checked.kind === 'wrong') {
      mistakes.push({ path: [...path, index], text: checked.text });
      return;
    }
    const name = nameOf(checked.value);
    // Port 0 is another port each time.
    if (names.has(name) && !name.endsWith(':0')) {
      mistakes.push({
        path: [...path, index],
        text: `found ${describe(name)} a second time; allowed: each address once`,
      });
    }
    names.add(name);
    values.push(checked.value);
  });
  return { values, mistakes };
}
