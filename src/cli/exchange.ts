import { openSync, readFileSync, writeSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { checkWebListen } from '../config/meaning.ts';
import { readTokenFile, SECRET_VARIABLES } from '../config/secrets.ts';
import { problemsOf } from '../operator/listen.ts';
import { PROFILES, type Profile } from '../simulator/answer.ts';
import { createNarrator, type ExchangeEvent } from '../simulator/event-log.ts';
import { isMarketName } from '../simulator/markets.ts';
import { EXTRAS, OPERATIONS } from '../simulator/operations.ts';
import { SetupError, type SimulatedServer, startSimulatedServer } from '../simulator/server.ts';
import {
  type ApiKey,
  DEFAULT_ACCOUNT,
  DEMO_KEY,
  DEMO_ORDERS,
  DEMO_TOKEN,
  type ExchangeOptions,
} from '../simulator/state.ts';
import { didYouMean, nearestMarket, suggest } from '../util/nearest.ts';
import { codeOf, isLoopback, listed } from '../util/text.ts';
import { CommandError, type Edge, EXIT, messageOf, misuse, onStopSignal } from './edge.ts';
import { type Given, readCredentials, revealed, valid } from './flags.ts';

type Flags = { readonly listen: string; readonly profile: Profile; readonly seed: string } & Given<
  'tokenFile' | 'markets' | 'orders' | 'keys' | 'balances' | 'limits' | 'eventLog',
  'allowRemote' | 'manualTime' | 'enableNewAddresses'
>;

/** `exchange`: runs the simulated exchange alone. The first line on standard output is its address and nothing else. */
export function register(program: Command, edge: Edge): void {
  const profile = new Option('--profile <profile>', 'whose answers to give').choices(PROFILES);
  const markets = 'the only markets there are, with commas between (default: any BASE_QUOTE)';
  const orders = 'JSON file with the resting orders, or "none" (default: some in each demo market)';
  const keys =
    'JSON file with API keys that are accepted besides: for several daemons, or for fewer permissions';
  program
    .command('exchange')
    .description('run the simulated exchange: to try the daemon, or to test a bot against')
    .option('--listen <host:port>', 'where to listen; port 0 takes a free one', '127.0.0.1:17480')
    .option('--allow-remote', 'allow an address that other hosts can reach')
    .option('--token-file <file>', 'file with the token that opens /simulator to other hosts')
    .addOption(profile.default('documented'))
    .option('--markets <markets>', markets)
    .option('--orders <file>', orders)
    .option('--keys <file>', keys)
    .option('--balances <amounts>', 'what the account begins with: USDT=1000,BTC=2 (default: some of each)')
    .option('--limits <limits>', 'requests in 10 s by operation: kill-switch=100,ping=10')
    .option('--seed <number>', 'seed of codes, addresses, hashrates and faults', '1')
    .option('--manual-time', 'let the clock stand still but for POST /simulator/advance')
    .option('--enable-new-addresses', 'enable create-new-address for the account')
    .option('--event-log <file>', 'append every event to this file as a line of JSON')
    .action((flags: Flags) => runExchange(flags, edge));
}

async function runExchange(flags: Flags, edge: Edge): Promise<void> {
  const options = readOptions(flags, edge);
  const append = openEventLog(flags.eventLog, edge);
  const server = await startSimulatedServer(options).catch((error: unknown) => {
    throw explain(error, flags);
  });
  const { log } = server.exchange;
  for (const event of log.since(0)) append(event);
  log.subscribe(append);
  const exit = () => edge.exitNow(EXIT.ok);
  onStopSignal(edge, () => void server.close().then(exit, exit));
  for (const line of [server.url, ...introduce(options, server)]) edge.out(line);
  log.subscribe(createNarrator(edge.out));
}

function explain(error: unknown, flags: Flags): CommandError {
  if (error instanceof SetupError) {
    const name = error.path.replace('/simulator/', '') as 'keys' | 'orders';
    return misuse(`--${name}: ${flags[name]}: ${error.message}`);
  }
  const why = problemsOf('--listen')[codeOf(error)] ?? messageOf(error);
  return new CommandError(EXIT.unreachable, `cannot listen on ${flags.listen}: ${why}`);
}

function introduce(options: ReturnType<typeof readOptions>, { exchange, url }: SimulatedServer): string[] {
  const pair =
    options.exchange.keys[0] === DEMO_KEY
      ? `the key ${DEMO_KEY.key} with the secret ${DEMO_KEY.secret}`
      : 'the key and the secret of the environment';
  const keys = options.setup.flatMap(({ path, body }) =>
    path === '/simulator/keys' ? (body as ApiKey[]) : [],
  );
  const more = keys.length === 0 ? '' : `the keys ${listed(keys.map(({ key: name }) => name))}, `;
  const orders = exchange.orders();
  const markets = [...new Set(orders.map((order) => order.market))];
  const hang = '{"kind":"hang","mode":"hold","forMs":6000}';
  const live = 'A library for the live exchange, such as ccxt, wants --profile live.';
  return [
    `A simulated exchange, profile ${exchange.profile}: no real market, no real money.`,
    ...(exchange.profile === 'documented' ? [live] : []),
    `It accepts ${pair}, ${more}and the access token ${DEMO_TOKEN.token} for the order history.`,
    orders.length === 0
      ? 'No orders rest in its books.'
      : `Resting orders: ${orders.length}, in ${listed(markets)}. A timer that fires cancels those of its market and types.`,
    `What can be asked of it: ${url}/`,
    `To make it hang for 6 s: curl -H 'content-type: application/json' -d '${hang}' ${url}/simulator/faults`,
    'Ctrl-C ends it. What happens from here on, without renewals (times in UTC):',
  ];
}

function readOptions(flags: Flags, { env, clock }: Edge) {
  if (!/^\d{1,10}$/.test(flags.seed) || Number(flags.seed) >= 2 ** 32)
    throw misuse(`--seed: found "${flags.seed}"; allowed: a whole number from 0 to ${2 ** 32 - 1}`);
  const markets = readMarkets(flags.markets);
  // The key is that of the environment, as the daemon reads it: one environment serves both.
  const isGiven = SECRET_VARIABLES.some((name) => env[name] !== undefined);
  const key: ApiKey = isGiven ? { ...readCredentials(env), account: DEFAULT_ACCOUNT } : DEMO_KEY;
  /** The names of the flags are those of the control endpoints that take what is in the files. */
  const files = { keys: flags.keys, orders: flags.orders === 'none' ? undefined : flags.orders };
  const isThere = (market: string) => markets === 'any' || markets.includes(market);
  const balances = readAmounts('--balances', flags.balances, (name) =>
    /^[A-Z0-9]{1,20}$/.test(name) ? null : `found "${name}"; allowed: a ticker such as USDT`,
  );
  return {
    clock,
    listen: readListen(flags.listen, flags.allowRemote === true),
    exchange: {
      profile: flags.profile,
      markets,
      limits: readLimits(flags.limits),
      newAddresses: flags.enableNewAddresses === true,
      keys: [key],
      ...(flags.balances !== undefined && { balances: { [key.account]: Object.fromEntries(balances) } }),
    },
    orders: flags.orders === undefined ? DEMO_ORDERS.filter(({ market }) => isThere(market)) : [],
    setup: Object.entries(files).flatMap(([name, file]) =>
      file === undefined ? [] : { path: `/simulator/${name}`, body: readJson(`--${name}`, file) },
    ),
    seed: Number(flags.seed),
    time: flags.manualTime === true ? ('manual' as const) : ('running' as const),
    ...(flags.tokenFile !== undefined && { token: revealed('--token-file', readTokenFile(flags.tokenFile)) }),
  };
}

/** `NAME=AMOUNT` with commas between. `flawOf`: what else is wrong with one. */
function readAmounts(
  flag: string,
  text: string | undefined,
  flawOf: (name: string, amount: string) => string | null,
) {
  const amounts = new Map<string, string>();
  for (const pair of text?.split(',') ?? []) {
    const [, name, amount] = /^([\w-]+)=(\d+(?:\.\d+)?)$/.exec(pair) ?? [];
    if (name === undefined || amount === undefined)
      throw misuse(`${flag}: found "${pair}"; allowed: NAME=AMOUNT with commas between`);
    const flaw = amounts.has(name) ? `found "${name}" twice` : flawOf(name, amount);
    if (flaw !== null) throw misuse(`${flag}: ${flaw}`);
    amounts.set(name, amount);
  }
  return amounts;
}

function readLimits(text: string | undefined): NonNullable<ExchangeOptions['limits']> {
  const names = [...OPERATIONS, ...EXTRAS].map(({ name }) => name);
  const limits = readAmounts('--limits', text, (name, amount) => {
    if (!names.includes(name))
      return `found "${name}"; allowed: ${names.join(', ')}${didYouMean(name, names)}`;
    const isRight = /^[1-9]\d{0,6}$/.test(amount);
    return isRight ? null : `${name} is ${amount}; allowed: a whole number from 1 to 9999999`;
  });
  const limitOf = (amount: string) => ({ requests: Number(amount), windowMs: 10_000 });
  return Object.fromEntries([...limits].map(([name, amount]) => [name, limitOf(amount)]));
}

function readListen(text: string, allowRemote: boolean) {
  const { host: named, port } = valid('--listen', checkWebListen(text));
  const host = named === 'localhost' ? '127.0.0.1' : named;
  const allowed = '127.0.0.1, [::1], or any address together with --allow-remote';
  if (!allowRemote && !isLoopback(host))
    throw misuse(`--listen: other hosts can reach ${host}; allowed: ${allowed}`);
  return { host, port };
}

function readMarkets(list: string | undefined): readonly string[] | 'any' {
  const markets = list?.split(',') ?? [];
  const wrong = markets.find((market) => !isMarketName(market));
  if (wrong === undefined) return list === undefined ? 'any' : markets;
  const allowed = 'names of the form BASE_QUOTE with commas between';
  throw misuse(`--markets: found "${wrong}"; allowed: ${allowed}${suggest(nearestMarket(wrong))}`);
}

function readJson(flag: string, file: string): unknown {
  try {
    // Skips a byte order mark.
    return JSON.parse(new TextDecoder().decode(readFileSync(file)));
  } catch (error) {
    // The message of a parser repeats a piece of the file, which may be a secret.
    const [, place] = /\((line \d+ column \d+)\)$/.exec(messageOf(error)) ?? [];
    const none = place === undefined ? 'it is none' : `it is none at ${place}`;
    const missing = codeOf(error) === 'ENOENT' ? 'there is no such file' : messageOf(error);
    const why = error instanceof SyntaxError ? none : missing;
    throw misuse(`${flag}: cannot read ${file} as JSON: ${why}`);
  }
}

/** Each line is with the operating system before the next event happens: whoever dies, none is lost. */
function openEventLog(file: string | undefined, edge: Edge): (event: ExchangeEvent) => void {
  if (file === undefined) return () => {};
  let descriptor: number | null;
  try {
    descriptor = openSync(file, 'a');
  } catch (error) {
    throw misuse(`--event-log: cannot append to ${file}: ${messageOf(error)}`);
  }
  return (event) => {
    try {
      if (descriptor !== null) writeSync(descriptor, `${JSON.stringify(event)}\n`);
    } catch (error) {
      descriptor = null;
      const why = messageOf(error);
      edge.err(`killswitchd exchange: --event-log: writing to ${file} failed, no more is written: ${why}`);
    }
  };
}
