import { parse, stringify } from 'yaml';
import { fieldsOf, OPERATIONS, type Operation, type OperationName } from '../../src/exchange/operations.ts';
import { ARGUMENTS, REPLIES } from '../../src/exchange/schemas.ts';
import { read } from './documents.ts';

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

interface Content {
  readonly description: string;
  readonly content: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface DescribedOperation {
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
  readonly [keyword: string]: unknown;
}

interface Described {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly securitySchemes: object;
  };
  readonly [keyword: string]: unknown;
}

/** A document as it stands. Its words stand there alone; what the code checks with is written over it. */
export function describedIn(name: string) {
  const document = parse(read(`docs/openapi/${name}`)) as Described;
  return {
    document,
    of: (path: string, method: string): DescribedOperation => {
      const described = document.paths[path]?.[method];
      if (described === undefined)
        throw new Error(`docs/openapi/${name} does not describe ${method} ${path}`);
      return described;
    },
  };
}

export const renderDocument = (document: object): string =>
  `# What the code checks with is written by: UPDATE_DOCS=1 npx vitest run test/contract/openapi.test.ts\n${stringify(
    JSON.parse(JSON.stringify(document)),
    // Readers of YAML 1.1 take a plain no for false.
    { lineWidth: 0, aliasDuplicateObjects: false, version: '1.1' },
  )}`;

/** The nine operations of the exchange as OpenAPI 3.1, with the schemas by which requests and replies are checked. */
export function exchangeDocument() {
  const { document, of } = describedIn('exchange.yaml');
  const operations = Object.entries(OPERATIONS) as [OperationName, Operation][];
  const paths = operations.map(([name, operation]) => {
    const method = operation.method.toLowerCase();
    return [operation.path, { [method]: operationOf(name, operation, of(operation.path, method)) }];
  });
  return { ...document, paths: Object.fromEntries(paths) };
}

const NEEDS = {
  signed: [{ key: [], payload: [], signature: [] }],
  bearer: [{ token: [] }],
  none: [],
} as const;

function operationOf(
  name: OperationName,
  { path, authentication, limit }: Operation,
  described: DescribedOperation,
) {
  const json = (schema: object, description: string) => {
    return { description, content: { 'application/json': { schema } } };
  };
  const error = { $ref: `#/components/schemas/${authentication === 'none' ? 'PublicError' : 'Error'}` };
  const responses = Object.entries(described.responses).map(([status, response]) => {
    // Of a 503 the API document gives no shape, and it comes from a gateway.
    if (status === '503') return [status, response];
    return [status, json(status === '200' ? REPLIES[name] : error, response.description)];
  });
  const words = described.requestBody?.content['application/json']?.schema.properties ?? {};
  const body = { required: true, ...json(bodyOf(name, path, words), 'a JSON object') };
  return {
    ...described,
    operationId: name,
    security: NEEDS[authentication],
    requestBody: authentication === 'none' ? undefined : body,
    responses: Object.fromEntries(responses),
    'x-limit': limit === null ? undefined : { requests: limit.requests, seconds: limit.windowMs / 1000 },
  };
}

/** The body of a request, under the names of the wire: what the operation makes of the arguments that the client checks. */
function bodyOf(name: OperationName, path: string, words: Readonly<Record<string, Schema>>): Schema {
  const { properties, required = [] } = JSON.parse(JSON.stringify(ARGUMENTS[name])) as Schema;
  if (properties === undefined) return { type: 'object' };
  const names = Object.keys(properties);
  const wire = Object.entries(fieldsOf(name, Object.fromEntries(names.map((one) => [one, one]))));
  const numbers = fieldsOf(name, Object.fromEntries(names.map((one) => [one, 7])));
  const written = wire.map(([field, argument]): [string, Schema] => {
    const schema = properties[String(argument)] ?? {};
    const shape = numbers[field] === '7' ? asText(schema, name === 'createStockMarketOrder') : schema;
    return [field, { ...shape, ...(words[field]?.description && { description: words[field].description }) }];
  });
  const needed = wire.filter(([, argument]) => required.includes(String(argument))).map(([field]) => field);
  return {
    type: 'object',
    required: [...needed, 'request', 'nonce'],
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
