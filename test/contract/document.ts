import type { OperationName } from '../../src/exchange/operations.ts';
import { describedIn, type Schema } from '../docs/openapi-exchange.ts';

/**
 * One thing that the API document says, of more than one operation where `operation` is null. `kind`: operation,
 * request, reply, rule, state, status, code or limit. Of a reply `name` is the path of a field, with `[]` for each
 * element of a list, and `says` its type; else it is empty.
 */
type Row = Readonly<Record<'kind' | 'name' | 'says', string>> & { readonly operation: OperationName | null };

/** Names a row in cases and tables. */
export const rowId = ({ operation, kind, name }: Row): string => `${operation ?? 'all'} ${kind} ${name}`;

type Described = ReturnType<typeof exchange.of>;
type Body = NonNullable<Described['requestBody']>;

export const exchange = describedIn('exchange.yaml');
const { paths, 'x-says': common } = exchange.document;

/** What the API document says: its operations, fields, rules, states, codes and limits. */
export const ROWS: readonly Row[] = [
  ...Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, described]) =>
      rowsOf(`${method.toUpperCase()} ${path}`, described),
    ),
  ),
  ...rowsThatSay(common, null),
];

export function schemaOf({ content }: Body): Schema {
  return content['application/json']?.schema ?? {};
}

function rowsOf(endpoint: string, { requestBody, responses, ...described }: Described): Row[] {
  const operation = described['operationId'] as OperationName;
  const limit = described['x-limit'] as { readonly requests: number; readonly seconds: number } | undefined;
  const row = (kind: string, name: string, says = ''): Row => ({ operation, kind, name, says });
  const fields = requestBody === undefined ? {} : (schemaOf(requestBody).properties ?? {});
  const statuses = Object.entries(responses).filter(
    ([status, { description }]) => status !== 'default' && description !== 'done',
  );
  const reply = responses['200'] === undefined ? [] : leavesOf(schemaOf(responses['200']), '');
  return [
    row('operation', endpoint),
    ...Object.keys(fields).map((name) => row('request', name)),
    ...statuses.map(([status]) => row('status', status)),
    ...reply.map(([name, type]) => row('reply', name, type)),
    ...(limit === undefined ? [] : [row('limit', `${limit.requests} in ${limit.seconds} s`)]),
    ...rowsThatSay(described['x-says'], operation),
  ];
}

/** Of lines `kind name | what it says`. */
function rowsThatSay(lines: unknown, operation: OperationName | null): Row[] {
  return ((lines ?? []) as readonly string[]).map((line) => {
    const [, kind = '', name = ''] = /^(\w+) (.*?) \|/.exec(line) ?? [];
    return { operation, kind, name, says: '' };
  });
}

/** The fields of a reply by their path, each with its type. */
function leavesOf({ type, anyOf, items, properties }: Schema, path: string): [string, string][] {
  const [shape] = anyOf ?? [];
  if (shape !== undefined) return leavesOf(shape, path);
  if (properties !== undefined) {
    return Object.entries(properties).flatMap(([name, inner]) =>
      leavesOf(inner, path === '' ? name : `${path}.${name}`),
    );
  }
  if (path === '') return [];
  return items === undefined ? [[path, type?.toString() ?? '']] : leavesOf(items, `${path}[]`);
}

/**
 * The ids of the rows of an operation and a request that they are about: a sample with other fields, or without those that are "-". `->` is a
 * refusal: status, code and field, what its message says, and `sent` where only the exchange can know. `=>` is what the
 * reply says.
 */
const REQUESTS = `
createStockMarketOrder status 400 | {"amount":"1000001"} -> 400 32 amount /./ sent
createStockMarketOrder status 422 | {"side":7} -> 422 30 side
withdrawPay request ticker | {"ticker":"XMR","amount":"1","network":"XMR"} -> 400 30 ticker /can_deposit/ sent
withdrawPay request ticker | without ticker -> 422 30 ticker
withdrawPay request amount | without amount -> 422 30 amount
withdrawPay request address | without address -> 422 30 address
withdrawPay request unique_id | without unique_id -> 422 30 unique_id
withdrawPay request provider | {"ticker":"EUR","network":"-"} -> 422 30 provider /./ sent
withdrawPay request provider | {"ticker":"EUR","network":"-","provider":"NOBODY"} -> 400 30 provider /^Unsupported provider\\. EUR has: VISAMASTER, SEPA\\.$/ sent
withdrawPay request network | {"network":"NOWHERE"} -> 400 30 network /^Unsupported network\\. USDT has: ERC20, TRC20, OMNI\\.$/ sent
withdrawPay rule fee on top | {"amount":"999998"} -> 400 32 amount /^Not enough money, USDT balance = 1000000, fee = 3\\.2$/ sent
syncKillSwitch request types | {"types":["spot","options"]} -> 422 30 types
syncKillSwitch request types | {"types":null} => /"types":\\["spot","margin","futures"\\]/
myCodes request limit | {"limit":"10"} -> 422 30 limit
miningHashrate request interval | {"interval":"often"} -> 422 30 interval
createNewAddress request ticker | without ticker -> 422 30 ticker
createNewAddress request network | {"ticker":"USDT","network":"-"} => /"address":"0x/
createNewAddress request network | {"ticker":"USDT","network":"TRC20"} => /"address":"T/
createNewAddress request type | {"ticker":"BTC","network":"-"} => /"address":"bc1q/
createNewAddress request type | {"ticker":"LTC","network":"-"} => /"address":"ltc1q/
createNewAddress request type | {"ticker":"BTC","network":"-","type":"p2sh-segwit"} => /"address":"3/
createNewAddress request type | {"ticker":"ETH","network":"-","type":"bech32"} -> 400 30 type /^ETH has one type of address; type must not be given\\.$/
createNewAddress request type | {"ticker":"BTC","network":"-","type":"legacy"} -> 400 30 type
createStockMarketOrder request market | without market -> 422 30 market /required/
createStockMarketOrder request side | without side -> 422 30 side /required/
createStockMarketOrder request amount | {"amount":60} => /"amount":"60"/
createStockMarketOrder request client_order_id | {"client_order_id":"aZ-09._"} => /"client_order_id":"aZ-09\\._"/
createStockMarketOrder request client_order_id | without client_order_id => /"client_order_id":""/
createStockMarketOrder request stp | {"stp":"maybe"} -> 422 30 stp
createStockMarketOrder request stp | {"stp":"cancel_old"} => /"stp":"cancel_old"/
createStockMarketOrder request stp | {"stp":"cancel_new"} => /"stp":"cancel_new"/
createStockMarketOrder request stp | {"stp":"cancel_both"} => /"stp":"cancel_both"/
createStockMarketOrder request stp | {"stp":"no"} => /"stp":"no"/
createStockMarketOrder rule minimum total | {"amount":"4.99"} -> 400 32 amount /less than min amount 5 Min amount step = 0\\.01/ sent
createStockMarketOrder rule minimum amount | {"side":"sell","amount":"0.00009"} -> 400 32 amount /min amount 0\\.0001 Min amount step = / sent
createStockMarketOrder request amount, code 30 required | without amount -> 422 30 amount /required/
createStockMarketOrder code 30 side | {"side":"hold"} -> 422 30 side /buy or sell/
createStockMarketOrder code 31 not available | {"market":"NO_MARKET"} -> 400 31 market /not available/ sent
createStockMarketOrder code 31 empty | {"market":""} -> 422 31 market /empty string/
createStockMarketOrder code 32 not numeric | {"amount":"much"} -> 422 32 amount /numeric string or number/
createStockMarketOrder code 32 balance | {"amount":"99999999"} -> 400 32 amount /[Nn]ot enough balance/ sent
createStockMarketOrder code 32 minimum | {"side":"sell","amount":"0.0100001"} -> 400 32 amount /Min amount step = 0\\.000001/ sent
createStockMarketOrder code 36 string | {"client_order_id":7} -> 422 36 client_order_id /must be a string/
syncKillSwitch request market, code 30 market | without market -> 422 30 market /required/
syncKillSwitch code 30 timeout | without timeout -> 422 30 timeout /required/
syncKillSwitch code 30 below 5 | {"timeout":"4"} -> 422 30 timeout /should be at least 5/
syncKillSwitch limit timeout | {"timeout":"601"} -> 422 30 timeout /should be at most 600/
syncKillSwitch code 31 not available | {"market":"NO_MARKET"} -> 422 31 market /not available/ sent
miningHashrate code 422 timestamp | {"from":1700007200,"to":1700000000} -> 422 422 from /^$/
miningHashrate code 422 timestamp | {"from":4000000000,"to":4000003600} -> 422 422 from /^$/ sent
myCodes limit limit | {"limit":0} -> 422 30 limit
myCodes limit limit | {"limit":101} -> 422 30 limit
myCodes limit offset | {"offset":-1} -> 422 30 offset
myCodes limit offset | {"offset":10001} -> 422 30 offset
createStockMarketOrder limit client_order_id | {"client_order_id":"a/b"} -> 422 36 client_order_id
`;

/** How a request is refused. `sent`: only the exchange can know, so that the client sends it. */
export type Refused = Exclude<(typeof EXAMPLES)[number]['expected'], RegExp>;

export const EXAMPLES = REQUESTS.trim()
  .split('\n')
  .map((line) => {
    const [ids = '', text = ''] = line.split(' | ');
    const [, operation = '', names = ''] = /^(\w+) (.+)$/.exec(ids) ?? [];
    const [, given = '', arrow, rest = ''] = /^(.+) ([-=]>) (.+)$/.exec(text) ?? [];
    const json = given.replace(/^without (\w+)$/, '{"$1":"-"}');
    const entries = Object.entries(JSON.parse(json) as object) as [string, unknown][];
    const says = new RegExp(/\/(.+)\//.exec(rest)?.[1] ?? '');
    const [status, code, field = ''] = rest.split(' ');
    const refused = { status: Number(status), code: Number(code), field, says, sent: rest.endsWith(' sent') };
    return {
      operation: operation as OperationName,
      rows: names.split(', ').map((name) => `${operation} ${name}`),
      text,
      /** Other fields than those of the sample; undefined for none. */
      fields: Object.fromEntries(entries.map(([name, value]) => [name, value === '-' ? undefined : value])),
      expected: arrow === '=>' ? says : refused,
    };
  });
