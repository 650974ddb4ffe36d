import { Argument, type Command, Option } from 'commander';
import { checkBaseUrl, isPlainAndRemote, warningOfPlainHttp } from '../config/meaning.ts';
import { listProblems } from '../config/problem.ts';
import { findSecrets, readAccessTokenFile } from '../config/secrets.ts';
import { checkLayer, DEFAULTS, mergeLayers } from '../config/validate.ts';
import { type CallOptions, type Client, createClient } from '../exchange/client.ts';
import { type ClientError, isClientError } from '../exchange/errors.ts';
import { OPERATIONS, type Operation, type OperationName } from '../exchange/operations.ts';
import { AMOUNT_UNITS, type StockMarketOrderRequest, type WithdrawPayRequest } from '../exchange/schemas.ts';
import { checkArguments } from '../exchange/validate.ts';
import { didYouMean } from '../util/nearest.ts';
import { hideSecrets, isRecord, type Redact, tidy } from '../util/text.ts';
import { CommandError, type Edge, EXIT, type ExitCode, misconfigured, misuse, onStopSignal } from './edge.ts';
import {
  type Given,
  offer,
  readCredentials,
  readUnchecked,
  refuseUnknown,
  revealed,
  valid,
} from './flags.ts';
import { layOut, paint } from './terminal.ts';

type Flags = Given<'config' | 'baseUrl' | 'accessTokenFile' | 'amountIn', 'list' | 'yes' | 'json'>;

/** More than any request of the API is long. */
const MOST_BYTES = 64 * 1024;

/** `api OPERATION [JSON]`: one call of the API; prints the reply, without key, secret and token, as JSON. */
export function register(program: Command, edge: Edge): void {
  const amountIn = new Option('--amount-in <unit>', 'what the exchange counts the amount of a buy in');
  program
    .command('api')
    .description('call one operation of the exchange and print its reply as JSON')
    .addArgument(offer(new Argument('[operation]', 'which operation'), Object.keys(OPERATIONS)))
    .argument('[json]', 'its arguments as a JSON object; - reads them from standard input')
    .option('--list', 'show the operations and call none')
    .option('--yes', 'do it: needed where money is moved')
    .addOption(offer(amountIn, AMOUNT_UNITS))
    .option('--base-url <url>', 'base address of the exchange (KILLSWITCHD_BASE_URL)')
    .option('--access-token-file <file>', 'file with the OAuth 2.0 token for orderHistory')
    .option('--json', 'errors as JSON on standard output, too; with --list the list as JSON')
    .option('--config <file>', 'configuration file; of it only exchange is read (KILLSWITCHD_CONFIG)')
    .action((name: string | undefined, json: string | undefined, flags: Flags) =>
      flags.list === true ? list(flags, edge) : call(name, json ?? '{}', flags, edge),
    );
}

async function call(named: string | undefined, json: string, flags: Flags, edge: Edge) {
  let hide: Redact = (text) => text;
  let client: Client | null = null;
  const print = (value: unknown) => edge.out(hide(JSON.stringify(value, null, 2)));
  try {
    const name = readName(named);
    const { authentication, effect }: Operation = OPERATIONS[name];
    const given = await readArguments(name, json, flags.amountIn, edge);
    const { secrets, base, ...access } = await findAccess(authentication, flags, edge.env);
    // The exchange may repeat what it was shown.
    hide = (text) => hideSecrets(text, secrets);
    if (isPlainAndRemote(base)) edge.err(`api: ${warningOfPlainHttp(base)}`);
    client = createClient({ ...access, bases: [base], clock: edge.clock });
    const stopping = new AbortController();
    if (effect === 'moves-money') {
      if (flags.yes !== true)
        throw misuse(`${describeMove(name, given)} at ${base}; add --yes to do it, nothing was sent`);
      // Who interrupts an order must be told that it may have been carried out.
      onStopSignal(edge, () => stopping.abort());
    }
    // The client checks the arguments itself.
    const method = client[name] as (request: unknown, options: CallOptions) => Promise<unknown>;
    if (name === 'ping') print({ latencyMs: Math.round((await client.ping()) * 1000) / 1000 });
    else print(await method(given, { signal: stopping.signal }));
    if (edge.readerGone())
      throw new CommandError(EXIT.internal, `${name} was carried out, but its reply could not be written`);
  } catch (error) {
    const failure = describeFailure(error);
    if (flags.json === true) print({ error: failure.error });
    throw new CommandError(failure.exitCode, failure.sentence);
  } finally {
    await client?.close();
  }
}

function readName(text: string | undefined): OperationName {
  const names = Object.keys(OPERATIONS) as OperationName[];
  const known = names.find((name) => name === text);
  if (known !== undefined) return known;
  const found =
    text === undefined ? 'no operation is named' : `there is no operation ${JSON.stringify(text)}`;
  throw misuse(`${found}; allowed: ${names.join(', ')}${didYouMean(text ?? '', names)}`);
}

async function readArguments(name: OperationName, json: string, amountIn: string | undefined, edge: Edge) {
  const bytes = json === '-' ? await edge.input(MOST_BYTES) : Buffer.from(json);
  const allowed = `allowed: a JSON object of at most ${MOST_BYTES / 1024} KiB`;
  if (bytes === null) throw misuse(`standard input is longer, or cannot be read; ${allowed}`);
  // Skips a byte order mark, which some editors and shells write.
  const text = new TextDecoder().decode(bytes);
  // Bytes that were no UTF-8 are lost by now, and may have been a part of an address.
  if (text.includes('\uFFFD')) throw misuse(`the arguments are not UTF-8 as a whole; ${allowed}`);
  const given = parse(text);
  if (OPERATIONS[name].authentication === 'none' && JSON.stringify(given) !== '{}')
    throw misuse(`${name} takes no arguments; leave the JSON away`);
  if (amountIn === undefined || !isRecord(given)) return given;
  if (name !== 'createStockMarketOrder')
    throw misuse(`--amount-in: ${name} has no amount to be counted; leave it away`);
  if ('amountIn' in given && given['amountIn'] !== amountIn)
    throw misuse(`--amount-in is ${tidy(amountIn)}, and amountIn in the JSON is another; give one`);
  return { ...given, amountIn };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The engine repeats a part of the text, which may be a secret.
    const place = / at position \d+/.exec(String(error))?.[0] ?? '';
    throw misuse(`the arguments are no JSON${place}; write an object such as '{"market":"BTC_USDT"}'`);
  }
}

/** What a call that moves money would do. Throws an ArgumentError where its arguments are not allowed. */
function describeMove(name: OperationName, given: unknown): string {
  if (name === 'withdrawPay') {
    const { amount, ticker, address } = checkArguments(name, given as WithdrawPayRequest);
    return `${name} would send ${amount} ${ticker} to ${tidy(JSON.stringify(address))}, with the fee on top,`;
  }
  const order = checkArguments(name, given as StockMarketOrderRequest);
  const { side, amount, amountIn, market } = order;
  const [base, quote] = market.split('_');
  const deal =
    side === 'sell'
      ? `sell ${amount} ${base}, for ${quote}`
      : amountIn === 'quote'
        ? `buy ${base} for ${amount} ${quote}`
        : `buy ${amount} ${base}, whatever that costs in ${quote}`;
  return `${name} would ${deal}, at the market price,`;
}

function list(flags: Flags, edge: Edge): void {
  const operations: Operation[] = Object.values(OPERATIONS);
  const rows = operations.map(({ name, method, path, authentication, effect, limit }) => {
    return { name, method, path, authentication, limit, effect, movesMoney: effect === 'moves-money' };
  });
  if (flags.json === true) return edge.out(JSON.stringify(rows, null, 2));
  const limitOf = ({ limit }: Operation) =>
    limit === null ? 'not shown' : `${limit.requests} in ${limit.windowMs / 1000} s`;
  const lines = layOut(operations, Number.POSITIVE_INFINITY, [
    ['operation', {}, ({ name }) => name],
    ['request', {}, ({ method, path }) => `${method} ${path}`],
    ['limit', {}, limitOf],
    ['effect', {}, ({ effect }) => effect.replace('-', ' ')],
  ]);
  for (const line of lines) edge.out(paint(line, false));
}

const MAYBE = 'it may have been carried out all the same';
const NOTHING = 'nothing was changed';
const refused = (code = '') => `the exchange refused what was asked${code}, ${NOTHING}`;

/** Exit code and hint by the kind of error; null where the message says all. */
const ENDS: { readonly [name in ClientError['name']]?: readonly [ExitCode, hint: string | null] } = {
  ArgumentError: [EXIT.usage, null],
  CredentialError: [EXIT.config, 'nothing was sent'],
  NonceError: [
    EXIT.unreachable,
    `the nonce is stale, because another process uses the key, or there are too many requests; ${NOTHING}`,
  ],
  OrderMismatchError: [EXIT.internal, 'nothing was undone'],
  ProtocolError: [EXIT.internal, MAYBE],
  PublicRefusedError: [EXIT.usage, refused()],
  RefusedError: [EXIT.usage, null],
  ThrottledError: [EXIT.unreachable, `too many requests; ${NOTHING}`],
  UnauthorisedError: [EXIT.refused, `the exchange refuses the key, its permissions or the token; ${NOTHING}`],
  UnknownOutcomeError: [EXIT.unconfirmed, null],
};

/** How a call failed, in a sentence and for programs, without a secret; throws other errors again. */
function describeFailure(error: unknown) {
  if (error instanceof CommandError) {
    const { exitCode, name, message } = error;
    return { exitCode, sentence: message, error: { name, message } };
  }
  if (!isClientError(error)) throw error;
  const { name, message } = error;
  const [exitCode, usual] = ENDS[name] ?? [EXIT.unreachable, MAYBE];
  let hint = usual;
  if (error.name === 'RefusedError') hint = refused(` with code ${error.code}`);
  else if (error.name === 'ArgumentError')
    hint = message.startsWith('amountIn is missing') ? 'name it with --amount-in or in the JSON' : null;
  else if (error.maybeApplied) hint = usual?.replace(NOTHING, MAYBE) ?? null;
  else if (usual === MAYBE) hint = null;
  const sentence = hint === null ? message : `${message.replace(/\.$/, '')}; ${hint}`;
  // Its cause is in the message.
  return { exitCode, sentence, error: Object.assign({ name, message }, error, { cause: undefined }) };
}

/** Base address, nonces, and the key or token that the operation needs; nothing else of the configuration is read. */
async function findAccess(authentication: Operation['authentication'], flags: Flags, env: Edge['env']) {
  refuseUnknown(env);
  const file = flags.config ?? env['KILLSWITCHD_CONFIG'];
  const { values, place } =
    file === undefined ? { values: {}, place: DEFAULTS.place } : await readUnchecked(file);
  const layer = checkLayer('file', { exchange: values['exchange'] ?? {} }, place);
  if (layer.problems.length > 0) throw misconfigured(listProblems(layer.problems).join('\n'));
  const { allowPlainHttp, nonce, baseUrls } = mergeLayers([layer, DEFAULTS]).exchange;
  const places = [
    { label: '--base-url', text: flags.baseUrl },
    { label: 'KILLSWITCHD_BASE_URL', text: env['KILLSWITCHD_BASE_URL'] },
    { label: place(['exchange', 'baseUrls', 0]).label, text: baseUrls?.[0] },
  ];
  const { label, text } = places.find((one) => one.text !== undefined) ?? {};
  if (label === undefined || text === undefined)
    throw misconfigured(
      'nothing says where the exchange is; write --base-url https://HOST[:PORT], set KILLSWITCHD_BASE_URL to it, or name a configuration file with exchange.baseUrls by --config',
    );
  const base = valid(label, checkBaseUrl(text, allowPlainHttp));
  const credentials = authentication === 'signed' ? readCredentials(env) : { key: '', secret: '' };
  const token = authentication === 'bearer' ? readToken(flags.accessTokenFile) : '';
  // Also where the request shows no key: the exchange may know it, and repeat it.
  const { apiKey, apiSecret } = findSecrets(env, { demo: false });
  const secrets = [apiKey, apiSecret].flatMap((found) => found?.reveal() ?? []).concat(token);
  const revealing = { credentials: () => credentials, accessToken: () => token, hidden: () => secrets };
  return { base, allowPlainHttp, nonce, secrets, ...revealing };
}

function readToken(file: string | undefined): string {
  if (file !== undefined) return revealed('--access-token-file', readAccessTokenFile(file));
  throw misuse(
    '--access-token-file: missing; the order history needs an OAuth 2.0 access token, write it into a file and name that here',
  );
}
