import { stringify } from 'yaml';
import { fieldsOf, OPERATIONS, type Operation, type OperationName } from '../../src/exchange/operations.ts';
import { ARGUMENTS, REPLIES } from '../../src/exchange/schemas.ts';

/** As much of a JSON Schema as the documents use. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly [keyword: string]: unknown;
}

/** What the schemas of the code do not hold: `kind name | what it says`, in the words of the API document. */
interface Notes {
  readonly summary: string;
  readonly replies?: Readonly<Record<number, string>>;
  /** Of fields of the request. */
  readonly fields?: Readonly<Record<string, string>>;
  readonly says?: string;
}

const NOT_CACHED = 'rule not cached | Responses are not cached.';
const MESSAGE = 'rule message | Validation failed';

const NOTES: Readonly<Record<OperationName, Notes>> = {
  createStockMarketOrder: {
    summary: 'Creates a stock market order.',
    replies: {
      200: 'order created',
      400: 'inner validation failed',
      422: 'request validation failed',
      503: 'temporarily unavailable',
    },
    fields: { amount: 'of a buy in the quote currency, of a sell in the base currency' },
    says: `
      rule minimum total | A buy has a minimum total, in the quote currency.
      rule minimum amount | A sell has a minimum amount, in the base currency.
      state FILLED | the only status of an order that is named
      code 30 required | A missing amount, market or side: a message per field.
      code 30 side | side may hold only buy or sell.
      code 31 not available | market not available
      code 31 empty | market must not be an empty string
      code 32 not numeric | amount must be a numeric string or number
      code 32 balance | not enough balance
      code 32 minimum | less than the minimum amount, plus the minimum amount step
      code 36 string | client_order_id must be a string
      ${MESSAGE}
      limit client_order_id | unique; letters, dashes, digits, dots, underscores`,
  },
  orderHistory: { summary: 'Returns the history of trading orders. A JSON object each way.' },
  withdrawPay: {
    summary: 'Creates a withdrawal.',
    replies: { 200: 'validation succeeded, the withdrawal has begun' },
    fields: {
      ticker: 'can_deposit must be true',
      amount: 'what the receiver gets',
      unique_id: 'a new one for every withdrawal',
      provider: 'required if the currency is fiat',
      network: 'default for USDT is ERC20',
    },
    says: `
      rule fee on top | The fee is deducted in addition to the amount.
      ${NOT_CACHED}
      limit unique_id | new value per withdrawal`,
  },
  syncKillSwitch: {
    summary: 'Sets, updates or deletes the timer.',
    fields: { timeout: 'seconds 5 to 600; null deletes the timer' },
    says: `
      state none to active | cancellationTime is startTime + timeout.
      state active to active | The timer is updated; same shape.
      state active to none | A null timeout deletes the timer of the market.
      state fires for all types | When types is null, orders of all types of the market are cancelled.
      state fires for its types | Else those of the given types.
      code 30 market | market required
      code 30 timeout | timeout required
      code 30 below 5 | should be at least 5
      code 31 not available | market not available
      ${MESSAGE}
      limit timeout | 5 to 600, or null to delete`,
  },
  myCodes: {
    summary: 'Lists the codes created by the account.',
    says: `
      ${NOT_CACHED}
      state Activated | the only status of a code that is known
      limit limit | 1 to 100
      limit offset | 0 to 10000`,
  },
  miningHashrate: {
    summary: 'Returns the hashrate of an account.',
    fields: { account: 'mining account name' },
    says: `
      ${NOT_CACHED}
      code 422 timestamp | Incorrect timestamp`,
  },
  createNewAddress: {
    summary: 'Creates a new deposit address.',
    fields: { network: 'default for USDT is ERC20', type: 'default bech32' },
    says: `
      rule disabled by default | It must be enabled for the account.
      rule even when unused | A new one even when the last one has not been used.
      ${NOT_CACHED}`,
  },
  miningPool: { summary: 'Returns the mining pool overview.' },
  ping: { summary: 'Returns an array with one string, pong.' },
};

const SAYS_OF_ALL = `
  rule public by GET | Public endpoints use GET.
  rule private by POST | Private endpoints use POST with a JSON body.
  rule JSON answers | Every response is JSON, either an object or an array.
  rule Unix time | Every time value is Unix time.
  rule amounts as strings | Amounts and prices in responses are JSON strings.
  rule Content-type | application/json
  rule X-TXC-APIKEY | the public API key
  rule X-TXC-PAYLOAD | Base64 of the JSON body
  rule X-TXC-SIGNATURE | HMAC-SHA512, hex
  rule request and nonce | The body must contain the path, and the nonce as a string.
  rule permissions | The key must carry permissions appropriate to the operation.
  rule bearer token | Order history uses OAuth 2.0 instead.
  rule public without authentication | Public endpoints need no authentication.
  rule private error object | code, message, errors by parameter
  rule public error object | success false, message, params
  rule empty errors | errors may be empty
  rule path prefix | /api/v4
  rule both base addresses | The same paths are served on both.`;

const linesOf = (text: string | undefined) => (text ?? '').trim().split(/\n\s*/).filter(Boolean);
const json = (content: object, description: string) => ({
  description,
  content: { 'application/json': { schema: content } },
});

/** What both documents begin with. */
export const headOf = (info: object, server: object) => ({
  openapi: '3.1.0',
  info: { ...info, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
  servers: [server],
});

/** The nine operations of the exchange as OpenAPI 3.1, from the schemas by which requests and replies are checked. */
export function exchangeDocument() {
  const operations = Object.entries(OPERATIONS) as [OperationName, Operation][];
  return {
    ...headOf(
      {
        title: 'Exchange HTTP API',
        version: '4.0.0',
        description: 'The nine operations that killswitchd and its simulated exchange know.',
      },
      { url: 'http://127.0.0.1:17480', description: 'the simulated exchange' },
    ),
    'x-says': linesOf(SAYS_OF_ALL),
    paths: Object.fromEntries(
      operations.map(([name, operation]) => [
        operation.path,
        { [operation.method.toLowerCase()]: operationOf(name, operation) },
      ]),
    ),
    components: { schemas: ERRORS, securitySchemes: SECURITY },
  };
}

export const renderDocument = (document: object): string =>
  `# Made from the code by: UPDATE_DOCS=1 npx vitest run test/contract/openapi.test.ts\n${stringify(
    JSON.parse(JSON.stringify(document)),
    // Readers of YAML 1.1 take a plain no for false.
    { lineWidth: 0, aliasDuplicateObjects: false, version: '1.1' },
  )}`;

const TEXT: Schema = { type: 'string' };
const ERRORS = {
  Error: {
    type: 'object',
    required: ['code', 'message', 'errors'],
    properties: {
      code: { type: 'integer' },
      message: TEXT,
      errors: {
        description: 'messages by parameter; may be empty',
        type: 'object',
        additionalProperties: { type: 'array', items: TEXT },
      },
    },
  },
  PublicError: {
    type: 'object',
    required: ['success', 'message', 'params'],
    properties: { success: { const: false }, message: TEXT, params: { type: 'array', items: {} } },
  },
};

const header = (name: string, description: string) => ({ type: 'apiKey', in: 'header', name, description });
const SECURITY = {
  key: header('X-TXC-APIKEY', 'the public API key'),
  payload: header('X-TXC-PAYLOAD', 'Base64 of the JSON body'),
  signature: header('X-TXC-SIGNATURE', 'HMAC-SHA512 of the payload by the secret, hex'),
  token: { type: 'http', scheme: 'bearer' },
};
const NEEDS = {
  signed: [{ key: [], payload: [], signature: [] }],
  bearer: [{ token: [] }],
  none: [],
} as const;

function operationOf(name: OperationName, { path, authentication, limit }: Operation) {
  const { summary, replies = { 200: 'done' }, says } = NOTES[name];
  const error = { $ref: `#/components/schemas/${authentication === 'none' ? 'PublicError' : 'Error'}` };
  const responses = Object.entries(replies).map(([status, description]) => {
    // Of a 503 the document gives no shape, and it comes from a gateway.
    if (status === '503') return [status, { description }];
    return [status, json(status === '200' ? REPLIES[name] : error, description)];
  });
  return {
    operationId: name,
    summary,
    security: NEEDS[authentication],
    ...(authentication === 'none'
      ? {}
      : { requestBody: { required: true, ...json(bodyOf(name, path), 'a JSON object') } }),
    responses: { ...Object.fromEntries(responses), default: json(error, 'refused') },
    ...(limit === null ? {} : { 'x-limit': { requests: limit.requests, seconds: limit.windowMs / 1000 } }),
    ...(says === undefined ? {} : { 'x-says': linesOf(says) }),
  };
}

/** The body of a request, under the names of the wire: what the operation makes of the arguments that the client checks. */
function bodyOf(name: OperationName, path: string): Schema {
  const { properties, required = [] } = JSON.parse(JSON.stringify(ARGUMENTS[name])) as Schema;
  if (properties === undefined) return { type: 'object' };
  const names = Object.keys(properties);
  const wire = Object.entries(fieldsOf(name, Object.fromEntries(names.map((one) => [one, one]))));
  const numbers = fieldsOf(name, Object.fromEntries(names.map((one) => [one, 7])));
  const written = wire.map(([field, argument]): [string, Schema] => {
    const schema = properties[String(argument)] ?? {};
    const shape = numbers[field] === '7' ? asText(schema, name === 'createStockMarketOrder') : schema;
    const note = NOTES[name].fields?.[field];
    return [field, note === undefined ? shape : { ...shape, description: note }];
  });
  return {
    type: 'object',
    required: [
      ...wire.filter(([, argument]) => required.includes(String(argument))).map(([field]) => field),
      'request',
      'nonce',
    ],
    properties: {
      ...Object.fromEntries(written),
      request: { type: 'string', const: path, description: 'endpoint path' },
      nonce: { type: 'string', minLength: 1, description: 'unique' },
    },
  };
}

/** A number that the client writes as text. An order's amount may also be a number. */
function asText(schema: Schema, numberToo: boolean): Schema {
  const { anyOf, ...rest } = schema;
  if (anyOf === undefined) return schema;
  const isNumber = ({ type }: Schema) => type === 'number' || type === 'integer';
  const texts = anyOf.some(({ type }) => type === 'string')
    ? anyOf.flatMap((one) => (isNumber(one) ? (numberToo ? [{ type: 'number' }] : []) : [one]))
    : anyOf.map((one) => (isNumber(one) ? { type: 'string', pattern: String.raw`^\d+$` } : one));
  return texts.length === 1 ? { ...rest, ...texts[0] } : { ...rest, anyOf: texts };
}
