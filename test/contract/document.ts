import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { OperationName } from '../../src/exchange/operations.ts';
import type { Schema } from '../docs/openapi-exchange.ts';

export type RowKind = 'operation' | 'request' | 'reply' | 'rule' | 'state' | 'status' | 'code' | 'limit';

/** One thing that the API document says. */
export interface Row {
  /** Method and path of its operation, or that it holds for all. */
  readonly section: string;
  /** Null where it holds for more than one operation. */
  readonly operation: OperationName | null;
  readonly kind: RowKind;
  /** Of a reply the path of a field, `[]` for each element of a list. */
  readonly name: string;
  /** Type and rules, in short; of a reply its type. */
  readonly says: string;
}

/** Names a row in cases and tables. */
export const rowId = ({ operation, kind, name }: Row): string => `${operation ?? 'all'} ${kind} ${name}`;

interface Described {
  readonly operationId: OperationName;
  readonly summary: string;
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content & { readonly description: string }>>;
  readonly 'x-limit'?: { readonly requests: number; readonly seconds: number };
  readonly 'x-says'?: readonly string[];
}

interface Content {
  readonly content: { readonly 'application/json': { readonly schema: Schema } };
}

interface Document {
  readonly 'x-says': readonly string[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
}

const FILE = new URL('../../docs/openapi/exchange.yaml', import.meta.url);
export const DOCUMENT = parse(readFileSync(FILE, 'utf8')) as Document;

/** What the API document says: its operations, fields, rules, states, codes and limits. */
export const ROWS: readonly Row[] = [
  ...Object.entries(DOCUMENT.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) =>
      rowsOf(`${method.toUpperCase()} ${path}`, operation),
    ),
  ),
  ...rowsThatSay(DOCUMENT['x-says'], { section: 'All operations', operation: null }),
];

export function schemaOf({ content }: Content): Schema {
  return content['application/json'].schema;
}

function rowsOf(section: string, described: Described): Row[] {
  const { operationId: operation, summary, requestBody, responses } = described;
  const { 'x-limit': limit, 'x-says': says = [] } = described;
  const row = (kind: RowKind, name: string, text: string): Row => {
    return { section, operation, kind, name, says: text };
  };
  const statuses = Object.entries(responses).filter(
    ([status, { description }]) => status !== 'default' && description !== 'done',
  );
  return [
    row('operation', section, summary),
    ...(requestBody === undefined ? [] : fieldsOf(schemaOf(requestBody))).map(([name, text]) =>
      row('request', name, text),
    ),
    ...statuses.map(([status, { description }]) => row('status', status, description)),
    ...(responses['200'] === undefined ? [] : leavesOf(schemaOf(responses['200']), '')).map(([name, type]) =>
      row('reply', name, type),
    ),
    ...(limit === undefined
      ? []
      : [row('limit', `${limit.requests} in ${limit.seconds} s`, 'requests of one account')]),
    ...rowsThatSay(says, { section, operation }),
  ];
}

/** `kind name | what it says`. */
function rowsThatSay(lines: readonly string[], of: Pick<Row, 'section' | 'operation'>): Row[] {
  return lines.map((line) => {
    const [id = '', says = ''] = line.split(' | ');
    const [kind, ...name] = id.split(' ');
    return { ...of, kind: kind as RowKind, name: name.join(' '), says };
  });
}

function typeOf({ type, anyOf, enum: values }: Schema): string {
  return (
    anyOf?.map(typeOf).join(' or ') ?? type?.toString() ?? (Array.isArray(values) ? 'string' : 'anything')
  );
}

function fieldsOf({ properties = {}, required = [] }: Schema): [string, string][] {
  return Object.entries(properties).map(([name, field]) => {
    const parts = [typeOf(field), required.includes(name) ? 'required' : '', field.description ?? ''];
    return [name, parts.filter((part) => part !== '').join('; ')];
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
 * Under the id of a row requests that are samples with other fields, or without those that are "-". `->` is a refusal:
 * status, code and field, what its message says, and `sent` where only the exchange can know. `=>` is what the reply says.
 */
const REQUESTS = `
createStockMarketOrder status 400
  {"amount":"1000001"} -> 400 32 amount /./ sent
createStockMarketOrder status 422
  {"side":7} -> 422 30 side
withdrawPay request ticker
  {"ticker":"XMR","amount":"1","network":"XMR"} -> 400 30 ticker /can_deposit/ sent
  without ticker -> 422 30 ticker
withdrawPay request amount
  without amount -> 422 30 amount
withdrawPay request address
  without address -> 422 30 address
withdrawPay request unique_id
  without unique_id -> 422 30 unique_id
withdrawPay request provider
  {"ticker":"EUR","network":"-"} -> 422 30 provider /./ sent
  {"ticker":"EUR","network":"-","provider":"NOBODY"} -> 400 30 provider /./ sent
withdrawPay request network
  {"network":"NOWHERE"} -> 400 30 network /./ sent
withdrawPay rule fee on top
  {"amount":"999998"} -> 400 32 amount /./ sent
syncKillSwitch request market
  {"market":"-"} -> 422 30 market /required/
syncKillSwitch request types
  {"types":["spot","options"]} -> 422 30 types
  {"types":null} => /"types":\\["spot","margin","futures"\\]/
myCodes request limit
  {"limit":"10"} -> 422 30 limit
miningHashrate request interval
  {"interval":"often"} -> 422 30 interval
createNewAddress request ticker
  without ticker -> 422 30 ticker
createNewAddress request network
  {"ticker":"USDT","network":"-"} => /"address":"0x/
  {"ticker":"USDT","network":"TRC20"} => /"address":"T/
createNewAddress request type
  {"ticker":"BTC","network":"-"} => /"address":"bc1q/
  {"ticker":"LTC","network":"-"} => /"address":"ltc1q/
  {"ticker":"BTC","network":"-","type":"p2sh-segwit"} => /"address":"3/
  {"ticker":"ETH","network":"-","type":"bech32"} -> 400 30 type
  {"ticker":"BTC","network":"-","type":"legacy"} -> 400 30 type
createStockMarketOrder request market
  without market -> 422 30 market /required/
createStockMarketOrder request side
  without side -> 422 30 side /required/
createStockMarketOrder request amount
  {"amount":60} => /"amount":"60"/
  without amount -> 422 30 amount /required/
createStockMarketOrder request client_order_id
  {"client_order_id":"aZ-09._"} => /"client_order_id":"aZ-09\\._"/
  without client_order_id => /"client_order_id":""/
createStockMarketOrder request stp
  {"stp":"maybe"} -> 422 30 stp
  {"stp":"cancel_old"} => /"stp":"cancel_old"/
  {"stp":"cancel_new"} => /"stp":"cancel_new"/
  {"stp":"cancel_both"} => /"stp":"cancel_both"/
  {"stp":"no"} => /"stp":"no"/
createStockMarketOrder rule minimum total
  {"amount":"4.99"} -> 400 32 amount /less than min amount 5 Min amount step = 0\\.01/ sent
createStockMarketOrder rule minimum amount
  {"side":"sell","amount":"0.00009"} -> 400 32 amount /min amount 0\\.0001 Min amount step = / sent
createStockMarketOrder code 30 required
  {"amount":"-"} -> 422 30 amount /required/
createStockMarketOrder code 30 side
  {"side":"hold"} -> 422 30 side /buy or sell/
createStockMarketOrder code 31 not available
  {"market":"NO_MARKET"} -> 400 31 market /not available/ sent
createStockMarketOrder code 31 empty
  {"market":""} -> 422 31 market /empty string/
createStockMarketOrder code 32 not numeric
  {"amount":"much"} -> 422 32 amount /numeric string or number/
createStockMarketOrder code 32 balance
  {"amount":"99999999"} -> 400 32 amount /[Nn]ot enough balance/ sent
createStockMarketOrder code 32 minimum
  {"side":"sell","amount":"0.0100001"} -> 400 32 amount /Min amount step = 0\\.000001/ sent
createStockMarketOrder code 36 string
  {"client_order_id":7} -> 422 36 client_order_id /must be a string/
syncKillSwitch code 30 market
  without market -> 422 30 market /required/
syncKillSwitch code 30 timeout
  without timeout -> 422 30 timeout /required/
syncKillSwitch code 30 below 5
  {"timeout":"4"} -> 422 30 timeout /should be at least 5/
syncKillSwitch code 31 not available
  {"market":"NO_MARKET"} -> 422 31 market /not available/ sent
miningHashrate code 422 timestamp
  {"from":1700007200,"to":1700000000} -> 422 422 from /^$/
  {"from":4000000000,"to":4000003600} -> 422 422 from /^$/ sent
syncKillSwitch limit timeout
  {"timeout":"601"} -> 422 30 timeout
myCodes limit limit
  {"limit":0} -> 422 30 limit
  {"limit":101} -> 422 30 limit
myCodes limit offset
  {"offset":-1} -> 422 30 offset
  {"offset":10001} -> 422 30 offset
createStockMarketOrder limit client_order_id
  {"client_order_id":"a/b"} -> 422 36 client_order_id
`;

/** One request that a row is about. */
export interface Example {
  readonly row: Row;
  /** As it is written. */
  readonly text: string;
  /** Other fields than those of the sample; undefined for none. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly expected: { readonly says: RegExp } & (
    | { readonly kind: 'reply' }
    | { readonly kind: 'refusal'; status: number; code: number; field: string; sent: boolean }
  );
}

export const EXAMPLES: readonly Example[] = readExamples();

function readExamples(): Example[] {
  const examples: Example[] = [];
  let row: Row | undefined;
  for (const line of REQUESTS.trim().split('\n')) {
    if (!line.startsWith(' ')) row = ROWS.find((one) => rowId(one) === line);
    else if (row !== undefined) examples.push(readExample(row, line.trim()));
    if (row === undefined) throw new Error(`no row is called ${line}`);
  }
  return examples;
}

function readExample(row: Row, text: string): Example {
  const [, given = '', arrow, rest = ''] = /^(.+) ([-=]>) (.+)$/.exec(text) ?? [];
  const json = given.replace(/^without (\w+)$/, '{"$1":"-"}');
  const fields = JSON.parse(json, (_name, value: unknown) => (value === '-' ? undefined : value)) as object;
  const removed = [...json.matchAll(/"(\w+)":"-"/g)].map(([, name]) => [name, undefined]);
  const says = new RegExp(/\/(.+)\//.exec(rest)?.[1] ?? '');
  const [status, code, field = ''] = rest.split(' ');
  const refusal = { kind: 'refusal', status: Number(status), code: Number(code), field } as const;
  const expected =
    arrow === '=>' ? ({ kind: 'reply' } as const) : { ...refusal, sent: rest.endsWith(' sent') };
  return {
    row,
    text,
    fields: { ...fields, ...Object.fromEntries(removed) },
    expected: { says, ...expected },
  };
}
