import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';
import type { ListenAddress } from '../ports.ts';
import { suggest } from '../util/nearest.ts';
import { isLoopback } from '../util/text.ts';
import {
  BOT_PLACE,
  botsOf,
  type Config,
  fillInBot,
  type MarketConfig,
  MEANINGLESS_KEYS,
  refuseCadence,
} from './config.ts';
import { type Checked, describe, firstOf, ok, type Path, wrong } from './problem.ts';
import { DEFAULT_BOT, LIVENESS_MODES, type Values } from './schema.ts';
import type { Report } from './validate.ts';

/** The commands that keep timers armed. `exec` starts the bot itself. */
export type Command = 'run' | 'exec';

/** Null: the configuration is only looked at. */
type Purpose = Pick<Config, 'embeddedExchange'> & { readonly command: Command | null };

/** Checks what the schema cannot: names, addresses, duplicates, what is missing, and whether the cadence fits. */
export function checkMeaning(values: Values, report: Report, { embeddedExchange, command }: Purpose) {
  const { exchange, web, control } = values;
  const bases = embeddedExchange ? [] : exchange.baseUrls;
  if (bases === null) report.missing('exchange.baseUrls', BASES_ARE_MISSING);
  const checkBase = (text: string) => checkBaseUrl(text, exchange.allowPlainHttp);
  const baseUrls = checkList(['exchange', 'baseUrls'], bases, report, checkBase);
  const fleet = checkMarkets(values, report);
  const taken = new Set<string>();
  const webListen = checkList(['web', 'listen'], web.listen, report, checkWebListen, taken);
  const checkControl = (text: string) => checkControlListen(text, control.tokenFile !== null);
  const controlListen = checkList(['control', 'listen'], control.listen, report, checkControl, taken);
  return {
    exchange: { ...exchange, baseUrls },
    fleet,
    web: { listen: webListen },
    control: { ...control, listen: controlListen },
    liveness: checkLiveness(values, command, report, botsOf(fleet)),
  };
}

const BASES_ARE_MISSING =
  'missing; write the address of the exchange, such as exchange: { baseUrls: [https://exchange.example] }, or set KILLSWITCHD_BASE_URL';
const MARKETS_ARE_MISSING =
  'missing; write the markets to keep armed, such as markets: [BTC_USDT, ETH_USDT], or set KILLSWITCHD_MARKETS';

/** All markets with what they inherit; where some are wrong, those that have a name. */
function checkMarkets({ markets, defaults, exchange, shard }: Values, report: Report): MarketConfig[] {
  if (markets === null) report.missing('markets', MARKETS_ARE_MISSING);
  const fleet: MarketConfig[] = [];
  const firstAt = new Map<string, Path>();
  // What was wrong was taken out: such an entry, or such a value of a market, is undefined.
  const entries: readonly (string | Partial<MarketConfig> | undefined)[] = markets ?? [];
  entries.forEach((entry, index) => {
    const at: Path = ['markets', index];
    const isName = typeof entry === 'string';
    const own: Partial<MarketConfig> = isName ? { market: entry } : (entry ?? {});
    const { market, bot = DEFAULT_BOT } = own;
    if (market === undefined) return;
    const { timeoutSeconds, types, renewEverySeconds } = { ...defaults, ...own };
    fleet.push({ market, timeoutSeconds, types, renewEverySeconds, bot });
    const first = firstAt.get(market);
    if (first === undefined) return void firstAt.set(market, at);
    const text = `found ${describe(market)} a second time after ${report.labelOf(first)}; allowed: each market once`;
    report.wrong(isName ? at : [...at, 'market'], text);
  });
  const deciding = ['markets', 'defaults', 'shard', 'exchange.budgetShare'];
  if (firstAt.size < entries.length || deciding.some(report.isMistaken)) return fleet;
  for (const text of refuseCadence(exchange, shard, fleet)) report.wrong('markets', text);
  return fleet;
}

/** Checks each entry of a list of addresses, and that none stands there twice, or in `taken` already. */
function checkList<T extends string | ListenAddress>(
  path: Path,
  entries: readonly (string | undefined)[] | null,
  report: Report,
  check: (text: string) => Checked<T>,
  taken = new Set<string>(),
): T[] {
  return (entries ?? []).flatMap((entry, index) => {
    if (entry === undefined) return [];
    const checked = check(entry);
    if (checked.kind === 'wrong') {
      report.wrong([...path, index], checked.text);
      return [];
    }
    const { value } = checked;
    const name = typeof value === 'string' ? value : value.text;
    const again = `found ${describe(name)} a second time; allowed: each address once`;
    // Port 0 is another port each time.
    if (taken.has(name) && !name.endsWith(':0')) report.wrong([...path, index], again);
    taken.add(name);
    return [value];
  });
}

/** Checks mode, file, address and pace of the evidence against each other, the bots and the command. */
function checkLiveness(
  { liveness: given, control }: Values,
  command: Command | null,
  { wrong, missing, isMistaken }: Report,
  bots: readonly string[],
): Config['liveness'] | null {
  const { file, url, ttlSeconds } = given;
  // `exec` watches its own child unless told otherwise.
  const mode = given.mode ?? (command === 'exec' && !isMistaken('liveness.mode') ? 'process' : null);
  if (mode === null) missing('liveness.mode', MODE_IS_MISSING);
  else wrong('liveness.mode', findModeFlaw(mode, command));
  if ((command === 'exec' || mode === 'process') && given.startupGraceSeconds === 0)
    wrong('liveness.startupGraceSeconds', GRACE_IS_NONE);
  if (mode === 'file' && file === null) missing('liveness.file', FILE_IS_MISSING);
  if (mode === 'http' && url === null) missing('liveness.url', ADDRESS_IS_MISSING);
  // Where an address is wrong, which was reported already, the list is not empty.
  if (mode === 'beat' && control.listen.length === 0) missing('control.listen', CONTROL_IS_MISSING);
  if (file !== null) {
    const flaw = `found ${describe(file)}; allowed: the name of a file, such as /run/bots/bot.alive`;
    const isFile = !file.endsWith('/') && !file.includes('\0');
    wrong('liveness.file', findTemplateFlaw(file, bots, '/run/bots/{bot}.alive') ?? (isFile ? null : flaw));
  }
  if (url !== null) {
    const flaw = findTemplateFlaw(url, bots, 'http://127.0.0.1:8080/{bot}/alive');
    const flaws = [flaw, ...bots.map((bot) => findLivenessUrlFlaw(url, bot))];
    wrong('liveness.url', flaws.find((one) => one !== null) ?? null);
  }
  if (mode === null) return null;

  const mostSeconds = ttlSeconds / 3;
  // Two looks may fail, and the third is still in time.
  const probeEverySeconds = given.probeEverySeconds ?? Math.min(mode === 'http' ? 5 : 1, ttlSeconds / 4);
  const looks = !MEANINGLESS_KEYS[mode].includes('probeEverySeconds');
  const areKnown = !['liveness.probeEverySeconds', 'liveness.ttlSeconds'].some(isMistaken);
  const most = Math.floor(mostSeconds * 100) / 100;
  const text = `found ${probeEverySeconds}; allowed: less than ${most}, a third of liveness.ttlSeconds, so that a look may fail while the bot lives`;
  if (looks && areKnown && probeEverySeconds >= mostSeconds) wrong('liveness.probeEverySeconds', text);
  return { ...given, mode, probeEverySeconds };
}

const MODE_IS_MISSING =
  'missing; how the daemon knows that the bot lives must be chosen, there is no default; allowed: beat (the bot says so at control.listen), file (it touches liveness.file), http (liveness.url answers), process (it runs as a child of killswitchd exec), none (nobody watches the bot: timers are renewed for as long as the daemon runs)';
const GRACE_IS_NONE =
  'found 0; allowed with exec: more than 0, the time in which all markets must be armed before the bot is started';
const FILE_IS_MISSING =
  'missing with liveness.mode: file; write the file that the bot touches, such as liveness: { mode: file, file: /run/bots/bot.alive }, or set KILLSWITCHD_LIVENESS_FILE';
const ADDRESS_IS_MISSING =
  'missing with liveness.mode: http; write the address of the bot, such as liveness: { mode: http, url: http://127.0.0.1:8080/alive }, or set KILLSWITCHD_LIVENESS_URL';
const CONTROL_IS_MISSING =
  'missing with liveness.mode: beat, for that is where beats come in; write control: { listen: ["unix:/run/killswitchd/control.sock"] }, or use --control-listen or KILLSWITCHD_CONTROL_LISTEN';

export function findModeFlaw(mode: string, command: string | null): string | null {
  if (command === 'run' && mode === 'process') {
    const others = LIVENESS_MODES.filter((other) => other !== mode).join(', ');
    return `found "process", for which the daemon must start the bot itself; allowed with run: ${others}; or start both with killswitchd exec -- BOT`;
  }
  // It watches the bot itself, or leaves that to the bot's beats.
  if (command !== 'exec' || mode === 'process' || mode === 'beat') return null;
  return `found "${mode}"; allowed with exec: process, beat; leave it out for process`;
}

/** What is wrong with `{bot}` in a file name or an address, whether the mode uses it or not. */
function findTemplateFlaw(template: string, bots: readonly string[], example: string): string | null {
  const stranger = (template.match(/\{[^{}]*\}/g) ?? []).find((found) => found !== BOT_PLACE);
  if (stranger !== undefined)
    return `found the placeholder ${describe(stranger)}; allowed: ${BOT_PLACE}, which stands for the name of the bot`;
  if (bots.length <= 1 || template.includes(BOT_PLACE)) return null;
  return `found one for the ${bots.length} bots ${firstOf(bots)}; allowed: one with ${BOT_PLACE} in the place of the bot's name, such as ${example}`;
}

/** Refuses what was found, with what is allowed, and what was probably meant. */
const refuser =
  (allowed: string) =>
  (found: string, meant: string | null = null) =>
    wrong(`found ${found}; allowed: ${allowed}${suggest(meant)}`);

const wrongBase = refuser(
  'https://HOST[:PORT], or http://HOST[:PORT] where HOST is this host (127.0.0.1, [::1], localhost)',
);

/** A base address as its origin: https, or http to this host (with `allowPlainHttp` to any), with no path. */
export function checkBaseUrl(text: string, allowPlainHttp = false): Checked<string> {
  const url = readHttp(text);
  // An address that cannot be read may hold a password.
  if (url === null && text.includes('@')) return wrongBase('an address that cannot be read');
  if (url === null)
    return wrongBase(describe(text), /^[\w.-]+(:\d+)?$/.test(text) ? `https://${text}` : null);
  const { origin } = url;
  if (hasPassword(url)) return wrongBase('a user name or password in the address', origin);
  if (isPlainAndRemote(url.href) && !allowPlainHttp) {
    const found = `${describe(origin)}, which is not encrypted and not this host, without exchange.allowPlainHttp`;
    return wrongBase(found, origin.replace('http:', 'https:'));
  }
  if (url.pathname !== '/' || /[?#]/.test(text)) return wrongBase('more than a host and a port', origin);
  return ok(origin);
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
const IPV4 = '127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 169.254.0.0/16 100.64.0.0/10';
for (const network of `${IPV4} ::1/128 fc00::/7 fe80::/10`.split(' ')) {
  const [address = '', bits] = network.split('/');
  PRIVATE_ADDRESSES.addSubnet(address, Number(bits), isIPv4(address) ? 'ipv4' : 'ipv6');
}

/** Endings of names that the public DNS does not know: RFC 6761, 6762, 8375, ICANN's `internal`, and Kubernetes' `svc`. */
const PRIVATE_NAMES = /\.(localhost|local|internal|home\.arpa|lan|svc)$/;

/** As http or https has it; null where it is none or several, or has the port at which nobody listens. */
function readHttp(text: string): URL | null {
  const url = URL.parse(text);
  const isOne = /^https?:$/.test(url?.protocol ?? '') && /^(\[.*\]|[\w.-]+)$/.test(url?.hostname ?? '');
  return isOne && url?.port !== '0' ? url : null;
}

const hasPassword = ({ username, password }: URL) => username !== '' || password !== '';

/** An address or a name that means this host or one of its own network, whoever asks. */
function isPrivate({ hostname }: URL): boolean {
  // Without the brackets of IPv6, and without the dot that ends a full name.
  const host = hostname.replace(/^\[|\]$|\.$/g, '');
  if (isIP(host) !== 0) return PRIVATE_ADDRESSES.check(host, isIPv4(host) ? 'ipv4' : 'ipv6');
  return !host.includes('.') || PRIVATE_NAMES.test(host);
}

/**
 * Why `bot` cannot be asked at this address whether it lives; null where it can. Not on the public Internet: whoever
 * answers there would keep the timers of a dead bot armed. What may be a password or a token is not shown.
 */
function findLivenessUrlFlaw(template: string, bot: string): string | null {
  const text = fillInBot(template, bot);
  const allowed =
    'allowed: http(s)://HOST[:PORT]/PATH where HOST is this host (127.0.0.1, [::1], localhost) or of a private network (10.0.0.7, bot, bot.internal, bot.trading.svc)';
  // A suggestion with the name of one bot would be wrong for the others.
  const wrong = (found: string, meant: string | null = null) =>
    `found ${found}; ${allowed}${suggest(text === template ? meant : null)}`;
  const url = readHttp(text);
  if (url === null) {
    if (text.includes('@')) return wrong('an address that cannot be read');
    const shown = text.replace(/[?#].*$/s, '');
    return wrong(describe(shown), /^[\w.-]+(:\d+)?(\/[\w./-]*)?$/.test(shown) ? `http://${shown}` : null);
  }
  const bare = `${url.origin}${url.pathname}`;
  if (hasPassword(url)) return wrong('a user name or password in the address', bare);
  const here = new URL(bare);
  here.hostname = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' }[url.hostname] ?? url.hostname;
  if (here.hostname !== url.hostname)
    return wrong(`${describe(url.host)}, which is where to listen and not whom to ask`, here.href);
  if (!isPrivate(url)) return wrong(`the host ${describe(url.hostname)}, which is not of a private network`);
  return text.includes('#') ? wrong('a part after #, which is never sent', bare) : null;
}

/** Why messages cannot be posted to this address, without showing any of it; null where they can. */
export function findUrlFlaw(text: string, isTelegram: boolean): string | null {
  const url = readHttp(text);
  if (url === null) return 'found what is no address; allowed: https://HOST/PATH';
  if (hasPassword(url)) return 'found a user name or password in the address; allowed: https://HOST/PATH';
  if (url.protocol === 'http:' && !isPrivate(url))
    return 'found http:// to a host of the public network; allowed: https://HOST/PATH';
  if (isTelegram && !(url.pathname.endsWith('/sendMessage') && url.searchParams.has('chat_id')))
    return 'found another address than format telegram needs; allowed: https://api.telegram.org/botTOKEN/sendMessage?chat_id=CHAT';
  return null;
}

type TcpAddress = Extract<ListenAddress, { kind: 'tcp' }>;

const wrongWeb = refuser('HOST:PORT or [IPV6]:PORT with a port from 0 to 65535');

/** `HOST:PORT` or `[IPV6]:PORT` of the web listener. */
export function checkWebListen(text: string): Checked<TcpAddress> {
  const value = readTcp(text);
  return value === null ? wrongWeb(describe(text), meantListen(text)) : ok(value);
}

/** Bytes that a Unix socket's path may have: a little less than any system takes (107 on Linux, 103 on others). */
const LONGEST_SOCKET_PATH = 100;
const wrongControl = refuser(
  `unix:/PATH with at most ${LONGEST_SOCKET_PATH} bytes, or HOST:PORT where HOST is this host (127.0.0.1, [::1], localhost), or any other with control.tokenFile`,
);

/** `unix:/PATH`, or `HOST:PORT`. An address that other hosts can reach needs a token. */
export function checkControlListen(text: string, hasToken: boolean): Checked<ListenAddress> {
  if (text.startsWith('unix:') || text.startsWith('/')) {
    const path = text.replace(/^unix:/, '').replace(/^\/+/, '/');
    if (!text.startsWith('unix:/') || text.startsWith('unix://'))
      return wrongControl(describe(text), /^\/./s.test(path) ? `unix:${path}` : null);
    const bytes = Buffer.byteLength(path);
    if (bytes > LONGEST_SOCKET_PATH) return wrongControl(`a path of ${bytes} bytes`);
    if (path.endsWith('/') || path.includes('\0')) return wrongControl(describe(text));
    return ok({ kind: 'unix', text, path });
  }
  const value = readTcp(text);
  if (value === null) return wrongControl(describe(text), meantListen(text));
  if (hasToken || isLoopback(value.host)) return ok(value);
  return wrongControl(`${describe(text)}, which other hosts can reach`, `127.0.0.1:${value.port}`);
}

function readTcp(text: string): TcpAddress | null {
  const [, given = '', digits] = /^(\[[0-9A-Fa-f:.]+\]|[^\s:[\]/@]+):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  const isV6 = isIPv6(given.slice(1, -1));
  const host = isV6 ? new URL(`http://${given}`).hostname : given.toLowerCase();
  const isName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(host) && !/^[\d.]+$/.test(host);
  const isRight = port <= 65535 && (isV6 || isIPv4(host) || isName);
  return isRight
    ? { kind: 'tcp', text: `${host}:${port}`, host: isV6 ? host.slice(1, -1) : host, port }
    : null;
}

function meantListen(text: string): string | null {
  const bare = text.replace(/^https?:\/\//, '').replace(/\/$/, '');
  const bracketed = bare.replace(/^(.+):(\d+)$/, '[$1]:$2');
  const candidates = [bare, `127.0.0.1:${bare}`, `0.0.0.0${bare}`, bracketed];
  return candidates.find((candidate) => candidate !== text && readTcp(candidate) !== null) ?? null;
}
