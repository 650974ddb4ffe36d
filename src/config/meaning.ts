import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { carriedPerSecond, planCadence } from '../core/promise.ts';
import type { ListenAddress } from '../ports.ts';
import { suggest } from '../util/nearest.ts';
import { isLoopback } from '../util/text.ts';
import {
  BOT_PLACE,
  botsOf,
  budgetOf,
  type Config,
  fillInBot,
  type MarketConfig,
  type MarketEntry,
  MEANINGLESS_KEYS,
  marketsOf,
  type Settled,
  settleMarkets,
  toMarketSettings,
} from './config.ts';
import { describe, type Mistake, type Path } from './problem.ts';
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
  const bots = botsOf(markets).filter((bot) => new RegExp(BOT_PATTERN).test(bot));
  const liveness = checkLiveness(values, before, bots);
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
  const baseUrls = {
    path: ['exchange', 'baseUrls'],
    text: 'missing; write the address of the exchange, such as exchange: { baseUrls: [https://exchange.example] }, or set KILLSWITCHD_BASE_URL',
  };
  const markets = {
    path: ['markets'],
    text: 'missing; write the markets to keep armed, such as markets: [BTC_USDT, ETH_USDT], or set KILLSWITCHD_MARKETS',
  };
  return [
    ...(embeddedExchange || values.exchange.baseUrls !== undefined ? [] : [baseUrls]),
    ...(values.markets === undefined ? [markets] : []),
  ].filter(({ path }) => !isMistaken(path));
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
      const text = `found ${describe(own.bot)}; allowed: 1 to 64 letters, digits, dots, dashes and underscores, not dots alone`;
      mistakes.push({ path: [...at, 'bot'], text });
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
      const text = `found ${describe(own.market)} a second time after ${labelOf(first)}; allowed: each market once`;
      mistakes.push({ path, text });
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
  for (const [index, entry] of entries.entries()) {
    if (entry === undefined) continue;
    const wrong = (text: string) => mistakes.push({ path: [...path, index], text });
    const checked = check(entry);
    if (checked.kind === 'wrong') {
      wrong(checked.text);
      continue;
    }
    const name = nameOf(checked.value);
    // Port 0 is another port each time.
    if (names.has(name) && !name.endsWith(':0'))
      wrong(`found ${describe(name)} a second time; allowed: each address once`);
    names.add(name);
    values.push(checked.value);
  }
  return { values, mistakes };
}

export type LivenessMode = Config['liveness']['mode'];
/** The commands that keep timers armed. `exec` starts the bot itself. */
export type Command = 'run' | 'exec';

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
  { command, isMistaken }: Pick<Before, 'command' | 'isMistaken'>,
  bots: readonly string[],
): Pick<Meaning, 'mistakes' | 'missing' | 'liveness'> {
  const mistakes: Mistake[] = [];
  const missing: Mistake[] = [];
  const wrong = (path: Path, text: string | null) => {
    if (text !== null) mistakes.push({ path, text });
  };
  const lack = (path: Path, text: string) => {
    if (!isMistaken(path)) missing.push({ path, text });
  };
  // `exec` watches its own child unless told otherwise.
  const mode = given.mode ?? (command === 'exec' && !isMistaken(MODE) ? 'process' : undefined);
  if (mode === undefined) lack(MODE, MODE_IS_MISSING);
  else wrong(MODE, findModeFlaw(mode, command));
  if (mode === 'file' && given.file === undefined) lack(FILE, FILE_IS_MISSING);
  if (mode === 'http' && given.url === undefined) lack(ADDRESS, ADDRESS_IS_MISSING);
  // A wrong address was reported already: then the list is not empty.
  if (mode === 'beat' && control.listen.length === 0 && !isMistaken(CONTROL))
    wrong(CONTROL, CONTROL_IS_MISSING);
  wrong(FILE, findTargetFlaw(FILE, given.file, bots));
  wrong(ADDRESS, findTargetFlaw(ADDRESS, given.url, bots));
  if (mode === undefined) return { mistakes, missing, liveness: null };

  const mostSeconds = given.ttlSeconds / 3;
  // Two looks may fail, and the third is still in time.
  const usualSeconds = Math.min(mode === 'http' ? 5 : 1, given.ttlSeconds / 4);
  const { file = null, url = null, probeEverySeconds = usualSeconds } = given;
  const looks = !MEANINGLESS_KEYS[mode].includes('probeEverySeconds');
  if (looks && probeEverySeconds >= mostSeconds && ![PROBE, TTL].some(isMistaken)) {
    const most = Math.floor(mostSeconds * 100) / 100;
    const text = `found ${probeEverySeconds}; allowed: less than ${most}, a third of liveness.ttlSeconds, so that a look may fail while the bot lives`;
    wrong(PROBE, text);
  }
  return { mistakes, missing, liveness: { ...given, mode, file, url, probeEverySeconds } };
}

const MODE_IS_MISSING =
  'missing; how the daemon knows that the bot lives must be chosen, there is no default; allowed: beat (the bot says so at control.listen), file (it touches liveness.file), http (liveness.url answers), process (it runs as a child of killswitchd exec), none (nobody watches the bot: timers are renewed for as long as the daemon runs)';
const FILE_IS_MISSING =
  'missing with liveness.mode: file; write the file that the bot touches, such as liveness: { mode: file, file: /run/bots/bot.alive }, or set KILLSWITCHD_LIVENESS_FILE';
const ADDRESS_IS_MISSING =
  'missing with liveness.mode: http; write the address of the bot, such as liveness: { mode: http, url: http://127.0.0.1:8080/alive }, or set KILLSWITCHD_LIVENESS_URL';
const CONTROL_IS_MISSING =
  'missing with liveness.mode: beat, for that is where beats come in; write control: { listen: ["unix:/run/killswitchd/control.sock"] }, or use --control-listen or KILLSWITCHD_CONTROL_LISTEN';

function findModeFlaw(mode: LivenessMode, command: Command | null): string | null {
  if (command === 'run' && mode === 'process') {
    const others = LIVENESS_MODES.filter((other) => other !== 'process').join(', ');
    return `found "process", for which the daemon must start the bot itself; allowed with run: ${others}; or start both with killswitchd exec -- BOT`;
  }
  if (command === 'exec' && !MODES_OF_EXEC.includes(mode))
    return `found "${mode}"; allowed with exec: ${MODES_OF_EXEC.join(', ')}; leave it out for process`;
  return null;
}

/** What is wrong with a file name or an address, whether the mode uses it or not. */
function findTargetFlaw(path: Path, template: string | undefined, bots: readonly string[]): string | null {
  if (template === undefined) return null;
  const stranger = (template.match(/\{[^{}]*\}/g) ?? []).find((found) => found !== BOT_PLACE);
  if (stranger !== undefined)
    return `found the placeholder ${describe(stranger)}; allowed: ${BOT_PLACE}, which stands for the name of the bot`;
  if (bots.length > 1 && !template.includes(BOT_PLACE)) {
    const names = bots.length > 5 ? `${bots.slice(0, 5).join(', ')}, ...` : bots.join(', ');
    const example = path === FILE ? '/run/bots/{bot}.alive' : 'http://127.0.0.1:8080/{bot}/alive';
    return `found one for the ${bots.length} bots ${names}; allowed: one with ${BOT_PLACE} in the place of the bot's name, such as ${example}`;
  }
  if (path === FILE) {
    return template.endsWith('/') || template.includes('\0')
      ? `found ${describe(template)}; allowed: the name of a file, such as /run/bots/bot.alive`
      : null;
  }
  const checked = bots.map((bot) => checkLivenessUrl(template, bot));
  return checked.find((one) => one.kind === 'wrong')?.text ?? null;
}

export type Checked<T> =
  | { readonly kind: 'ok'; readonly value: T }
  /** `text` says what was found, what is allowed and what was probably meant. */
  | { readonly kind: 'wrong'; readonly text: string };

/**
 * A base address as its origin, without a trailing slash: https, or http to loopback (with `allowPlainHttp` to any
 * host), and nothing but host and port.
 */
export function checkBaseUrl(text: string, allowPlainHttp = false): Checked<string> {
  const allowed =
    'allowed: https://HOST[:PORT], or http://HOST[:PORT] where HOST is this host (127.0.0.1, [::1], localhost)';
  const wrong = (found: string, meant: string | null): Checked<string> => ({
    kind: 'wrong',
    text: `found ${found}; ${allowed}${suggest(meant)}`,
  });
  const url = readHttp(text);
  if (url === null) {
    // An address that cannot be read may hold a password.
    if (text.includes('@')) return wrong('an address that cannot be read', null);
    const meant = /^[\w.-]+(:\d+)?$/.test(text) ? `https://${text}` : null;
    return wrong(describe(text), meant);
  }
  if (url.username !== '' || url.password !== '')
    return wrong('a user name or password in the address', url.origin);
  if (isPlainAndRemote(url.href) && !allowPlainHttp) {
    return wrong(
      `${describe(url.origin)}, which is not encrypted and not this host, without exchange.allowPlainHttp`,
      url.origin.replace('http:', 'https:'),
    );
  }
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || /[?#]/.test(text)) {
    return wrong('more than a host and a port', url.origin);
  }
  return { kind: 'ok', value: url.origin };
}

/** Whether what goes to this base address crosses a network without encryption. */
export function isPlainAndRemote(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !isLoopback(hostname);
}

export function warningOfPlainHttp(base: string): string {
  return `exchange.allowPlainHttp: everybody on the way to ${base} can read the API key and change what is sent; for a test exchange only, never with a key that can trade`;
}

const PRIVATE_ADDRESSES = new BlockList();
for (const [network, prefix] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['169.254.0.0', 16],
  ['100.64.0.0', 10],
] as const) {
  PRIVATE_ADDRESSES.addSubnet(network, prefix, 'ipv4');
}
PRIVATE_ADDRESSES.addAddress('::1', 'ipv6');
PRIVATE_ADDRESSES.addSubnet('fc00::', 7, 'ipv6');
PRIVATE_ADDRESSES.addSubnet('fe80::', 10, 'ipv6');

/** Endings of names that the public DNS does not know: RFC 6761, 6762, 8375, ICANN's `internal`, and Kubernetes' `svc`. */
const PRIVATE_NAMES = /\.(localhost|local|internal|home\.arpa|lan|svc)$/;

/** The address as http or https has it; null where it is none. */
function readHttp(text: string): URL | null {
  const url = URL.parse(text);
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url : null;
}

/** The host of an address without the brackets of IPv6, and without the dot that ends a full name. */
function bareHost({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

/** An address or a name that means this host or one of its own network, whoever asks. */
function isPrivate(host: string): boolean {
  if (isIPv4(host)) return PRIVATE_ADDRESSES.check(host, 'ipv4');
  if (isIPv6(host)) return PRIVATE_ADDRESSES.check(host, 'ipv6');
  return !host.includes('.') || PRIVATE_NAMES.test(host);
}

/**
 * The address at which `bot` is asked whether it lives, in its normal form. Not on the public Internet: whoever answers
 * there would keep the timers of a dead bot armed. What may be a password or a token is not shown.
 */
export function checkLivenessUrl(template: string, bot: string): Checked<string> {
  const text = fillInBot(template, bot);
  const allowed =
    'allowed: http(s)://HOST[:PORT]/PATH where HOST is this host (127.0.0.1, [::1], localhost) or of a private network (10.0.0.7, bot, bot.internal, bot.trading.svc)';
  const wrong = (found: string, meant: string | null = null): Checked<string> => ({
    kind: 'wrong',
    // A suggestion with the name of one bot would be wrong for the others.
    text: `found ${found}; ${allowed}${suggest(text === template ? meant : null)}`,
  });
  const url = readHttp(text);
  if (url === null) {
    if (text.includes('@')) return wrong('an address that cannot be read');
    const shown = text.replace(/[?#].*$/s, '');
    return wrong(describe(shown), /^[\w.-]+(:\d+)?(\/[\w./-]*)?$/.test(shown) ? `http://${shown}` : null);
  }
  const bare = `${url.origin}${url.pathname}`;
  if (url.username !== '' || url.password !== '') {
    return wrong('a user name or password in the address', bare);
  }
  const host = bareHost(url);
  if (/^(0\.0\.0\.0|::)$/.test(host)) {
    const here = new URL(bare);
    here.hostname = host === '::' ? '[::1]' : '127.0.0.1';
    return wrong(`${describe(url.host)}, which is where to listen and not whom to ask`, here.href);
  }
  if (!isPrivate(host)) return wrong(`the host ${describe(url.hostname)}, which is not of a private network`);
  if (text.includes('#')) return wrong('a part after #, which is never sent', bare);
  return { kind: 'ok', value: url.href };
}

/** Why messages cannot be posted to this address, without showing any of it; null where they can. */
export function findUrlFlaw(text: string, isTelegram: boolean): string | null {
  const url = readHttp(text);
  if (url === null) return 'found what is no address; allowed: https://HOST/PATH';
  if (url.username !== '' || url.password !== '')
    return 'found a user name or password in the address; allowed: https://HOST/PATH';
  if (url.protocol === 'http:' && !isPrivate(bareHost(url)))
    return 'found http:// to a host of the public network; allowed: https://HOST/PATH';
  if (isTelegram && !(url.pathname.endsWith('/sendMessage') && url.searchParams.has('chat_id')))
    return 'found another address than format telegram needs; allowed: https://api.telegram.org/botTOKEN/sendMessage?chat_id=CHAT';
  return null;
}

type TcpAddress = Extract<ListenAddress, { kind: 'tcp' }>;

/** `HOST:PORT` or `[IPV6]:PORT` of the read-only listener. */
export function checkWebListen(text: string): Checked<TcpAddress> {
  const address = readTcp(text);
  if (address !== null) return { kind: 'ok', value: address };
  return {
    kind: 'wrong',
    text: `found ${describe(text)}; allowed: HOST:PORT or [IPV6]:PORT with a port from 0 to 65535${suggest(meantListen(text))}`,
  };
}

/** Bytes that a Unix socket's path may have: a little less than any system takes (107 on Linux, 103 on others). */
const LONGEST_SOCKET_PATH = 100;

/** `unix:/PATH`, or `HOST:PORT`. An address that other hosts can reach needs a token. */
export function checkControlListen(text: string, hasToken: boolean): Checked<ListenAddress> {
  const wrong = (found: string, meant: string | null = null): Checked<ListenAddress> => ({
    kind: 'wrong',
    text: `found ${found}; allowed: unix:/PATH with at most ${LONGEST_SOCKET_PATH} bytes, or HOST:PORT where HOST is this host (127.0.0.1, [::1], localhost), or any other with control.tokenFile${suggest(meant)}`,
  });
  if (text.startsWith('unix:') || text.startsWith('/')) {
    const path = text.replace(/^unix:/, '').replace(/^\/+/, '/');
    if (!text.startsWith('unix:/') || text.startsWith('unix://')) {
      return wrong(describe(text), path.startsWith('/') && path.length > 1 ? `unix:${path}` : null);
    }
    const bytes = Buffer.byteLength(path);
    if (bytes > LONGEST_SOCKET_PATH) return wrong(`a path of ${bytes} bytes`);
    if (path.endsWith('/') || path.includes('\0')) return wrong(describe(text));
    return { kind: 'ok', value: { kind: 'unix', text, path } };
  }
  const address = readTcp(text);
  if (address === null) return wrong(describe(text), meantListen(text));
  if (!hasToken && !isLoopback(address.host)) {
    return wrong(`${describe(text)}, which other hosts can reach`, `127.0.0.1:${address.port}`);
  }
  return { kind: 'ok', value: address };
}

function readTcp(text: string): TcpAddress | null {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:[\]/@]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65535) return null;
  const [, bracketed, plain] = match;
  if (bracketed !== undefined) {
    if (!isIPv6(bracketed)) return null;
    const host = new URL(`http://[${bracketed}]`).hostname.slice(1, -1);
    return { kind: 'tcp', text: `[${host}]:${port}`, host, port };
  }
  const host = (plain ?? '').toLowerCase();
  const isName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(host) && !/^[\d.]+$/.test(host);
  return isIPv4(host) || isName ? { kind: 'tcp', text: `${host}:${port}`, host, port } : null;
}

function meantListen(text: string): string | null {
  const bare = text.replace(/^https?:\/\//, '').replace(/\/$/, '');
  const ipv6 = /^(.+):(\d+)$/.exec(bare);
  const candidates = [
    bare,
    `127.0.0.1:${bare}`,
    `0.0.0.0${bare}`,
    ...(ipv6 !== null && isIPv6(ipv6[1] ?? '') ? [`[${ipv6[1]}]:${ipv6[2]}`] : []),
  ];
  return candidates.find((candidate) => candidate !== text && readTcp(candidate) !== null) ?? null;
}
