import { carriedPerSecond, planCadence } from '../core/promise.ts';
import type { ListenAddress } from '../ports.ts';
import { suggest } from '../util/nearest.ts';
import { isLoopback } from '../util/text.ts';
import {
  type Checked,
  checkBaseUrl,
  checkControlListen,
  checkLivenessUrl,
  checkWebListen,
  isPlainAndRemote,
  warningOfPlainHttp,
} from './addresses.ts';
import {
  BOT_PLACE,
  botsOf,
  budgetOf,
  type Config,
  type MarketConfig,
  type MarketEntry,
  marketsOf,
  type Settled,
  settleMarkets,
  toMarketSettings,
} from './config.ts';
import { describe, formatPath, type Mistake, type Path } from './problem.ts';
import { BOT_PATTERN, LIVENESS_MODES, MARKET_PATTERN } from './schema.ts';

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
  const checkBase = (text: string) => checkBaseUrl(text, values.exchange.allowPlainHttp);
  const baseUrls = before.embeddedExchange
    ? { values: [], mistakes: [] }
    : checkList(['exchange', 'baseUrls'], values.exchange.baseUrls ?? [], checkBase, String);
  const nameOf = ({ text }: ListenAddress) => text;
  const web = checkList(['web', 'listen'], values.web.listen, checkWebListen, nameOf);
  const control = checkList(
    ['control', 'listen'],
    values.control.listen,
    (text) => checkControlListen(text, values.control.tokenFile !== undefined),
    nameOf,
    web.values.map(nameOf),
  );
  const markets = settleMarkets(values.markets ?? [], values.defaults);
  const marketMistakes = checkMarkets(values.markets ?? [], before.labelOf);
  const liveness = checkLiveness(values, { ...before, markets });
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
    // A wrong name was reported already.
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
  const { problems } = planCadence(
    markets,
    carriedPerSecond({ ...exchange, budget: budgetOf(exchange, shard) }, null),
  );
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

export type LivenessMode = Config['liveness']['mode'];
/** The commands that keep timers armed. `exec` starts the bot itself. */
export type Command = 'run' | 'exec';

type Surroundings = Pick<Before, 'command' | 'isMistaken'> & { readonly markets: readonly MarketConfig[] };

/** Modes that `killswitchd exec` can do: it watches the bot itself, or leaves that to the bot's beats. */
const MODES_OF_EXEC: readonly LivenessMode[] = ['process', 'beat'];

const MODE: Path = ['liveness', 'mode'];
const FILE: Path = ['liveness', 'file'];
const ADDRESS: Path = ['liveness', 'url'];
const PROBE: Path = ['liveness', 'probeEverySeconds'];
const TTL: Path = ['liveness', 'ttlSeconds'];
const CONTROL: Path = ['control', 'listen'];

/** Checks mode, file, address and pace of the evidence against each other, the bots and the command. */
function checkLiveness(
  { liveness: given, control }: Settled,
  around: Surroundings,
): Pick<Meaning, 'mistakes' | 'missing' | 'liveness'> {
  const mistakes: Mistake[] = [];
  const missing: Mistake[] = [];
  const lack = (path: Path, text: string) => {
    if (!around.isMistaken(path)) missing.push({ path, text });
  };
  // `exec` watches its own child unless told otherwise.
  const mode = given.mode ?? (around.command === 'exec' && !around.isMistaken(MODE) ? 'process' : undefined);
  if (mode === undefined) lack(MODE, MODE_IS_MISSING);
  else mistakes.push(...checkMode(mode, around.command));
  if (mode === 'file' && given.file === undefined) lack(FILE, FILE_IS_MISSING);
  if (mode === 'http' && given.url === undefined) lack(ADDRESS, ADDRESS_IS_MISSING);
  // A wrong address was reported already: then the list is not empty.
  if (mode === 'beat' && control.listen.length === 0 && !around.isMistaken(CONTROL)) {
    mistakes.push({ path: CONTROL, text: CONTROL_IS_MISSING });
  }
  mistakes.push(...checkTarget(FILE, given.file, around), ...checkTarget(ADDRESS, given.url, around));
  if (mode === undefined) return { mistakes, missing, liveness: null };

  const mostSeconds = given.ttlSeconds / 3;
  const probeEverySeconds = given.probeEverySeconds ?? usualProbe(mode, given.ttlSeconds);
  const looks = !meaninglessKeys(mode).includes('probeEverySeconds');
  if (looks && probeEverySeconds >= mostSeconds && ![PROBE, TTL].some(around.isMistaken)) {
    const most = Math.floor(mostSeconds * 100) / 100;
    const text = `found ${probeEverySeconds}; allowed: less than ${most}, a third of liveness.ttlSeconds, so that a look may fail while the bot lives`;
    mistakes.push({ path: PROBE, text });
  }
  const liveness = {
    mode,
    file: given.file ?? null,
    url: given.url ?? null,
    probeEverySeconds,
    ttlSeconds: given.ttlSeconds,
    startupGraceSeconds: given.startupGraceSeconds,
    onStale: given.onStale,
  };
  return { mistakes, missing, liveness };
}

const MEANING_OF_MODE = {
  beat: 'the bot says so at control.listen',
  file: 'it touches liveness.file',
  http: 'liveness.url answers',
  process: 'it runs as a child of killswitchd exec',
  none: 'nobody watches the bot: timers are renewed for as long as the daemon runs',
} as const satisfies Record<LivenessMode, string>;

const MODE_IS_MISSING = `missing; how the daemon knows that the bot lives must be chosen, there is no default; allowed: ${LIVENESS_MODES.map((mode) => `${mode} (${MEANING_OF_MODE[mode]})`).join(', ')}`;
const FILE_IS_MISSING =
  'missing with liveness.mode: file; write the file that the bot touches, such as liveness: { mode: file, file: /run/bots/bot.alive }, or set KILLSWITCHD_LIVENESS_FILE';
const ADDRESS_IS_MISSING =
  'missing with liveness.mode: http; write the address of the bot, such as liveness: { mode: http, url: http://127.0.0.1:8080/alive }, or set KILLSWITCHD_LIVENESS_URL';
const CONTROL_IS_MISSING =
  'missing with liveness.mode: beat, for that is where beats come in; write control: { listen: ["unix:/run/killswitchd/control.sock"] }, or use --control-listen or KILLSWITCHD_CONTROL_LISTEN';

function checkMode(mode: LivenessMode, command: Command | null): Mistake[] {
  if (command === 'run' && mode === 'process') {
    const others = LIVENESS_MODES.filter((other) => other !== 'process').join(', ');
    const text = `found "process", for which the daemon must start the bot itself; allowed with run: ${others}; or start both with killswitchd exec -- BOT`;
    return [{ path: MODE, text }];
  }
  if (command === 'exec' && !MODES_OF_EXEC.includes(mode)) {
    const text = `found "${mode}"; allowed with exec: ${MODES_OF_EXEC.join(', ')}; leave it out for process`;
    return [{ path: MODE, text }];
  }
  return [];
}

/** What is wrong with a file name or an address, whether the mode uses it or not. */
function checkTarget(path: Path, template: string | undefined, { markets }: Surroundings): Mistake[] {
  if (template === undefined) return [];
  const placeholder = /\{[^{}]*\}/g;
  const stranger = (template.match(placeholder) ?? []).find((found) => found !== BOT_PLACE);
  if (stranger !== undefined) {
    const text = `found the placeholder ${describe(stranger)}; allowed: ${BOT_PLACE}, which stands for the name of the bot`;
    return [{ path, text }];
  }
  const bots = botsOf(markets).filter((bot) => new RegExp(BOT_PATTERN).test(bot));
  if (bots.length > 1 && !template.includes(BOT_PLACE)) {
    const names = bots.length > 5 ? `${bots.slice(0, 5).join(', ')}, ...` : bots.join(', ');
    const example = path === FILE ? '/run/bots/{bot}.alive' : 'http://127.0.0.1:8080/{bot}/alive';
    const text = `found one for the ${bots.length} bots ${names}; allowed: one with ${BOT_PLACE} in the place of the bot's name, such as ${example}`;
    return [{ path, text }];
  }
  if (path === FILE) return checkFileName(template);
  for (const bot of bots) {
    const checked = checkLivenessUrl(template, bot);
    if (checked.kind === 'wrong') return [{ path, text: checked.text }];
  }
  return [];
}

function checkFileName(template: string): Mistake[] {
  if (!template.endsWith('/') && !template.includes('\0')) return [];
  return [
    {
      path: FILE,
      text: `found ${describe(template)}; allowed: the name of a file, such as /run/bots/bot.alive`,
    },
  ];
}

/** Seconds. Two looks may fail, and the third is still in time. */
function usualProbe(mode: LivenessMode, ttlSeconds: number): number {
  return Math.min(mode === 'http' ? 5 : 1, ttlSeconds / 4);
}

/** The keys of the section that change nothing with a mode. */
export function meaninglessKeys(mode: LivenessMode): readonly (keyof Config['liveness'])[] {
  switch (mode) {
    case 'beat':
      return ['file', 'url', 'probeEverySeconds'];
    case 'file':
      return ['url'];
    case 'http':
      return ['file'];
    case 'process':
      return ['file', 'url'];
    case 'none':
      return ['file', 'url', 'probeEverySeconds', 'ttlSeconds', 'startupGraceSeconds', 'onStale'];
    default:
      return mode satisfies never;
  }
}

/** Sentences about what is allowed and yet worth a thought. Each begins with the key that it is about. */
export function findWarnings(
  config: Config,
  isWritten: (path: Path) => boolean,
  command: Command | null,
): string[] {
  return [
    ...warnOfExchange(config, isWritten),
    ...warnOfShard(config),
    ...warnOfWeb(config),
    ...warnOfControl(config),
    ...warnOfLiveness(config, isWritten, command),
  ];
}

function warnOfExchange(config: Config, isWritten: (path: Path) => boolean): string[] {
  const warnings: string[] = [];
  const { baseUrls, sameAccount } = config.exchange;
  if (config.embeddedExchange && isWritten(['exchange', 'baseUrls'])) {
    warnings.push(
      'exchange.baseUrls: not used, since the daemon brings its own exchange (--embedded-exchange)',
    );
  }
  if (baseUrls.length > 1 && !sameAccount) {
    warnings.push(
      `exchange.baseUrls: only ${baseUrls[0]} is used for renewals, the others only with exchange.sameAccount: true`,
    );
  }
  for (const base of baseUrls.filter(isPlainAndRemote)) {
    warnings.push(warningOfPlainHttp(base));
  }
  return warnings;
}

function warnOfShard({ shard, fleet, markets }: Config): string[] {
  const { index, count } = shard;
  const warnings: string[] = [];
  if (index >= count) {
    warnings.push(
      `shard.index: shard ${index} of ${count} guards no market; it waits for a shard.count above ${index}`,
    );
  } else if (markets.length === 0) {
    warnings.push(
      `shard.index: none of the ${fleet.length} markets belongs to shard ${index} of ${count}; it guards none`,
    );
  }
  return warnings;
}

function warnOfWeb({ web }: Config): string[] {
  const remote = web.listen.filter((address) => address.kind === 'tcp' && !isLoopback(address.host));
  return remote.map(
    ({ text }) =>
      `web.listen: whoever reaches ${text} can read markets, addresses and states, without password or encryption; keep it to a private network, or listen on 127.0.0.1 behind a proxy with TLS and a password`,
  );
}

function warnOfControl({ control, embeddedExchange }: Config): string[] {
  const open = control.listen.filter(({ kind }) => kind === 'tcp').map(({ text }) => text);
  // Nothing of value is guarded at an exchange that the daemon brings along.
  if (control.tokenFile === null && open.length > 0 && !embeddedExchange) {
    return [
      `control.listen: every user and program of this host may send beats and commands to ${open.join(', ')}; set control.tokenFile, or listen at a unix: socket only`,
    ];
  }
  if (control.tokenFile !== null && open.length === 0) {
    return [
      'control.tokenFile: of no meaning without a HOST:PORT in control.listen; a unix: socket is guarded by its mode',
    ];
  }
  const remote = control.listen.filter((address) => address.kind === 'tcp' && !isLoopback(address.host));
  return remote.map(
    ({ text }) =>
      `control.listen: other hosts can reach ${text}, and the token crosses the network unencrypted; keep it to a private network`,
  );
}

function warnOfLiveness(
  { liveness: { mode } }: Config,
  isWritten: (path: Path) => boolean,
  command: Command | null,
): string[] {
  const warnings: string[] = [];
  const idle = meaninglessKeys(mode)
    .map((key): Path => ['liveness', key])
    .filter(isWritten)
    .map(formatPath);
  if (idle.length > 0) warnings.push(`${idle.join(', ')}: of no meaning with liveness.mode: ${mode}`);
  if (mode === 'process' && command === null) {
    warnings.push(
      'liveness.mode: process: only for killswitchd exec -- BOT, which starts the bot; run refuses it',
    );
  }
  if (mode === 'none') {
    warnings.push(
      'liveness.mode: none: nobody watches the bot; timers are renewed for as long as this daemon runs, even when the bot is dead',
    );
  }
  return warnings;
}
