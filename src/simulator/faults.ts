import { STATUS_CODES } from 'node:http';
import Type, { type Static, type TProperties } from 'typebox';
import { hashText } from '../util/text.ts';
import { gatewayPage, jsonReply, type Reply, renderAnswer } from './answer.ts';
import { EXTRAS, MAX_BODY_BYTES, OPERATIONS, type RequestTarget } from './operations.ts';
import { createRandom } from './random.ts';
import { FORBIDDEN, STALE, UNAUTHORISED } from './signed-request.ts';

const MAX_MS = 86_400_000;
const DURATION = Type.Number({
  minimum: 0,
  maximum: MAX_MS,
  description: `milliseconds from 0 to ${MAX_MS}`,
});
const TEXT = Type.String({ description: 'a string' });

function oneOf<const Values extends readonly string[]>(...values: Values) {
  return Type.Unsafe<Values[number]>({ enum: values, description: values.join(' or ') });
}

/** A whole number in a schema, in words as well. */
export function whole(minimum: number, maximum = Number.MAX_SAFE_INTEGER) {
  const range =
    maximum === Number.MAX_SAFE_INTEGER ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`;
  return Type.Integer({ minimum, maximum, description: `a whole number ${range}` });
}

const OPERATION_NAMES = [...OPERATIONS, ...EXTRAS].map(({ name }) => name);

/** Which requests a fault hits, how often and how long. */
const SCOPE = {
  /** Missing members match every request. */
  match: Type.Optional(
    Type.Object(
      {
        operation: Type.Optional(Type.Unsafe<string>({ enum: OPERATION_NAMES })),
        market: Type.Optional(TEXT),
        key: Type.Optional(TEXT),
      },
      {
        additionalProperties: false,
        description: `an object with operation (${OPERATION_NAMES.join(', ')}), market and/or key as strings`,
      },
    ),
  ),
  /** How many matching requests are let through before the first one is hit; default 0. */
  skip: Type.Optional(whole(0)),
  /** Share of the matching requests that are hit; default 1. */
  probability: Type.Optional(Type.Number({ minimum: 0, maximum: 1, description: 'a number from 0 to 1' })),
  /** How many requests are hit before the fault is spent; default: no bound. */
  count: Type.Optional(whole(1)),
  /** How long after it was added the fault lasts; default: until it is cleared. */
  forMs: Type.Optional(DURATION),
};

function kind<Name extends string, Fields extends TProperties>(name: Name, fields: Fields) {
  const properties = { kind: Type.Literal(name, { description: name }), ...fields, ...SCOPE };
  return Type.Object(properties);
}

const KINDS = [
  /** Delays the request on its way to the exchange, or the reply on its way back (`when: 'after'`), evenly spread. */
  kind('latency', {
    ms: DURATION,
    jitterMs: Type.Optional(DURATION),
    when: Type.Optional(oneOf('before', 'after')),
  }),
  /**
   * Leaves the connection open and silent for `ms`, or until the fault ends or is cleared. Then the request is carried
   * out and answered (`hold`, even where the client has gone: it was written), or its connection is closed (`drop`).
   */
  kind('hang', { ms: Type.Optional(DURATION), mode: oneOf('drop', 'hold') }),
  /** Resets the connection before or after the request was carried out. */
  kind('reset', { when: oneOf('before', 'after') }),
  /**
   * A status as a page of the gateway (`html`) or as JSON: below 500 the error object of the API, from 500 on that of
   * the server itself. Not carried out.
   */
  kind('status', { status: whole(400, 599), body: Type.Optional(oneOf('json', 'html')) }),
  /** A refusal of the API, 422 with code 30 unless told otherwise; not carried out. */
  kind('refusal', {
    status: Type.Optional(whole(400, 499)),
    code: Type.Optional(whole(0)),
    message: Type.Optional(TEXT),
    /** Messages per parameter. */
    errors: Type.Optional(
      Type.Record(Type.String(), Type.Array(TEXT), { description: 'an object with arrays of strings' }),
    ),
  }),
  /** Arms timers for this many seconds, whatever was asked for, and says so in the reply. */
  kind('grant', { seconds: whole(1, 86_400) }),
  /** Repeats the first good reply for each operation, market and key; what it repeats is not carried out. */
  kind('cache', {}),
  /** The gateway's 429 page; not carried out. */
  kind('throttle', {}),
  /** The 429 with JSON that a stale nonce gets; not carried out. */
  kind('stale-nonce', {}),
  /** The gateway's 503 page; not carried out. */
  kind('maintenance', {}),
  /** 200 with bytes that are not JSON; carried out. */
  kind('garbage', {}),
  /** Half of the reply, although its length was announced; then the connection is closed. Carried out. */
  kind('cut-off', {}),
  /** The good reply with more than 64 KiB of white space after it; carried out. */
  kind('oversize', {}),
  /** 200 with a JSON object that fits no operation; carried out. */
  kind('wrong-shape', {}),
  /** Carried out, but answered with a 500. */
  kind('unacknowledged', {}),
  /** The good reply, but nothing was carried out. */
  kind('lie', {}),
  /** The good reply, its body spread over `ms`. */
  kind('slow-body', { ms: DURATION }),
  /** A 302; not carried out. */
  kind('redirect', {
    location: Type.Optional(
      Type.String({ pattern: '^[!-~]{1,2000}$', description: 'an address without white space' }),
    ),
  }),
  /** The 401 of a wrong key; not carried out. */
  kind('unauthorised', {}),
  /** The 403 of a key without permission; not carried out. */
  kind('forbidden', {}),
] as const;

/** A fault as data: what is sent to `POST /simulator/faults`. */
export type Fault = Static<(typeof KINDS)[number]>;
export type FaultKind = Fault['kind'];

/** A fault in force. Times in Unix milliseconds of the exchange's clock. */
export interface ActiveFault {
  readonly id: number;
  readonly fault: Fault;
  readonly hits: number;
  /** Null where it lasts until it is cleared. */
  readonly endsAtMs: number | null;
}

/** A body that takes the place of the exchange's own answer. */
export interface CannedReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

/** What is to be done with one request. Whoever transports requests carries it out, from top to bottom. */
export interface Treatment {
  readonly hang: {
    readonly faultId: number;
    /** Milliseconds; null where only clearing the fault ends it. */
    readonly ms: number | null;
    /** The hang ends together with its fault, and with it every request that the fault holds. */
    readonly endsWithFault: boolean;
    readonly mode: 'drop' | 'hold';
  } | null;
  readonly waitMs: number;
  readonly apply: 'yes' | 'no' | 'pretend';
  readonly replyWaitMs: number;
  /** Timers are armed for this many seconds; null: as asked for. */
  readonly grantSeconds: number | null;
  /** The body is spread over this long. */
  readonly bodyMs: number;
  /** What the client is told in place of the exchange's own answer; null: its connection is reset. */
  readonly tell: ((own: Reply) => CannedReply | null) | null;
  /** Half of the answer is sent. */
  readonly isCutOff: boolean;
  /** The fault under which the first good answer is repeated. */
  readonly cachedBy: number | null;
  /** The faults that took part, for the log. */
  readonly hits: readonly { readonly faultId: number; readonly kind: FaultKind }[];
}

/** What is done with a request that no fault hits. */
export const UNTOUCHED: Treatment = {
  hang: null,
  waitMs: 0,
  apply: 'yes',
  replyWaitMs: 0,
  grantSeconds: null,
  bodyMs: 0,
  tell: null,
  isCutOff: false,
  cachedBy: null,
  hits: [],
};

/** Every kind of fault, for the pages and messages that list them. */
export const FAULT_KINDS: readonly FaultKind[] = KINDS.map(({ properties }) => properties.kind.const);

/** JSON Schema of a `Fault`. */
export const FAULT_SCHEMA = {
  type: 'object',
  description: 'an object such as {"kind":"latency","ms":200}',
  discriminator: { propertyName: 'kind' },
  required: ['kind'],
  properties: { kind: { enum: FAULT_KINDS, description: 'a kind of fault' } },
  oneOf: KINDS.map(({ properties, required }) => {
    const fields = Object.entries<object>(properties).map(([name, shape]) => [name, { ...shape }] as const);
    return { type: 'object', required, properties: Object.fromEntries(fields), additionalProperties: false };
  }),
};

/** The faults in force and what they do to each request. Times in Unix milliseconds of the exchange's clock. */
export interface FaultPlan {
  add(fault: Fault, nowMs: number): ActiveFault;
  /** Ends every fault and returns how many there were. */
  clear(): number;
  active(nowMs: number): readonly ActiveFault[];
  /** Decides what becomes of one request. Without a fault in force it need not be called. */
  treat(target: RequestTarget, nowMs: number): Treatment;
}

interface Planned extends ActiveFault {
  hits: number;
  skipped: number;
  readonly random: () => number;
}

/**
 * A plan whose decisions depend on nothing but the seed, the faults and the requests. Each fault draws from a stream
 * of its own, made from its content, so that adding or removing another fault changes nothing about its decisions.
 */
export function createFaultPlan(seed: number): FaultPlan {
  let planned: readonly Planned[] = [];
  const copies = new Map<string, number>();
  let lastId = 0;

  function prune(nowMs: number): void {
    if (planned.some((fault) => isOver(fault, nowMs))) {
      planned = planned.filter((fault) => !isOver(fault, nowMs));
    }
  }

  return {
    add(fault, nowMs) {
      const content = JSON.stringify(fault);
      const copy = copies.get(content) ?? 0;
      copies.set(content, copy + 1);
      lastId += 1;
      const random = createRandom(hashText(`${seed} ${copy} ${content}`));
      const endsAtMs = fault.forMs === undefined ? null : nowMs + fault.forMs;
      const added: Planned = { id: lastId, fault, hits: 0, skipped: 0, endsAtMs, random };
      planned = [...planned, added];
      return added;
    },
    clear() {
      const ended = planned.length;
      planned = [];
      return ended;
    },
    active(nowMs) {
      prune(nowMs);
      return planned.map(({ id, fault, hits, endsAtMs }) => ({ id, fault, hits, endsAtMs }));
    },
    treat(target, nowMs) {
      prune(nowMs);
      let treatment = UNTOUCHED;
      for (const candidate of planned) {
        if (!isMatch(candidate.fault, target)) continue;
        if (candidate.skipped < (candidate.fault.skip ?? 0)) {
          candidate.skipped += 1;
          continue;
        }
        const chance = candidate.random();
        const jitter = candidate.random();
        if (chance >= (candidate.fault.probability ?? 1)) continue;
        const next = applyFault(treatment, candidate, jitter, nowMs);
        if (next === null) continue;
        candidate.hits += 1;
        treatment = next;
      }
      return treatment;
    },
  };
}

function isOver(planned: Planned, nowMs: number): boolean {
  const { fault, hits, endsAtMs } = planned;
  return (endsAtMs !== null && nowMs >= endsAtMs) || (fault.count !== undefined && hits >= fault.count);
}

/** Whether a fault's `match` admits a request. */
function isMatch(fault: Fault, target: RequestTarget): boolean {
  const { operation, market, key } = fault.match ?? {};
  return (
    (operation === undefined || operation === target.operation) &&
    (market === undefined || market === target.market) &&
    (key === undefined || key === target.key)
  );
}

/**
 * Adds what one fault does to what the faults before it did: delays add up; of two that decide what the client is
 * told, the earlier one wins (null: this fault changes nothing). `random` is a number in [0, 1) for its jitter.
 */
function applyFault(
  treatment: Treatment,
  active: ActiveFault,
  random: number,
  nowMs: number,
): Treatment | null {
  const { fault, id } = active;
  const hits = [...treatment.hits, { faultId: id, kind: fault.kind }];
  if (fault.kind === 'latency') {
    const ms = fault.ms + random * (fault.jitterMs ?? 0);
    return fault.when === 'after'
      ? { ...treatment, hits, replyWaitMs: treatment.replyWaitMs + ms }
      : { ...treatment, hits, waitMs: treatment.waitMs + ms };
  }
  if (fault.kind === 'slow-body') return { ...treatment, hits, bodyMs: treatment.bodyMs + fault.ms };
  if (fault.kind === 'grant') {
    return treatment.grantSeconds === null ? { ...treatment, hits, grantSeconds: fault.seconds } : null;
  }
  if (fault.kind === 'hang') {
    if (treatment.hang !== null) return null;
    const leftMs = active.endsAtMs === null ? null : active.endsAtMs - nowMs;
    const endsWithFault = leftMs !== null && leftMs <= (fault.ms ?? Number.POSITIVE_INFINITY);
    const ms = endsWithFault ? leftMs : (fault.ms ?? null);
    return { ...treatment, hits, hang: { faultId: id, ms, endsWithFault, mode: fault.mode } };
  }
  const { apply, tell, isCutOff, cachedBy } = treatment;
  const decided = apply !== 'yes' || tell !== null || isCutOff || cachedBy !== null;
  return decided ? null : { ...treatment, hits, ...verdictOf(fault, id) };
}

type Deciding = Exclude<Fault, { kind: 'latency' | 'slow-body' | 'hang' | 'grant' }>;
type Verdict = Partial<Pick<Treatment, 'apply' | 'tell' | 'isCutOff' | 'cachedBy'>>;

/** What faults without fields of their own do. */
const VERDICTS: Record<
  Exclude<Deciding['kind'], 'reset' | 'status' | 'refusal' | 'cache' | 'redirect'>,
  Verdict
> = {
  throttle: instead(gatewayPage(429, 'Too Many Requests')),
  'stale-nonce': instead(renderAnswer(STALE, 'private')),
  maintenance: instead(gatewayPage(503, 'Service Temporarily Unavailable')),
  unauthorised: instead(renderAnswer(UNAUTHORISED, 'private')),
  forbidden: instead(renderAnswer(FORBIDDEN, 'private')),
  garbage: afterwards({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from([0x7b, 0xff, 0xfe, 0x00, 0x22, 0x9f, 0x3c, 0x0a]),
  }),
  'wrong-shape': afterwards(jsonReply(200, { code: 0 })),
  unacknowledged: afterwards(statusReply(500, 'json')),
  'cut-off': { isCutOff: true },
  oversize: { tell: (own) => ({ ...own, body: `${own.body}${' '.repeat(MAX_BODY_BYTES + 1)}` }) },
  lie: { apply: 'pretend' },
};

function verdictOf(fault: Deciding, id: number): Verdict {
  switch (fault.kind) {
    case 'reset':
      return { apply: fault.when === 'after' ? 'yes' : 'no', tell: () => null };
    case 'status':
      return instead(statusReply(fault.status, fault.body ?? 'json'));
    case 'refusal': {
      const { status = 422, code = 30, message = 'Validation failed', errors = {} } = fault;
      return instead(jsonReply(status, { code, message, errors }));
    }
    case 'cache':
      return { cachedBy: id };
    case 'redirect': {
      const { location = '/api/v4/public/ping' } = fault;
      return instead({ status: 302, headers: { location }, body: '' });
    }
    default:
      return VERDICTS[fault.kind];
  }
}

/** Answered in the exchange's place: not carried out. */
function instead(reply: CannedReply): Verdict {
  return { apply: 'no', tell: () => reply };
}

function afterwards(reply: CannedReply): Verdict {
  return { tell: () => reply };
}

/** The JSON from 500 on is what the live exchange sends with a 500. */
function statusReply(status: number, body: 'json' | 'html'): CannedReply {
  const title = STATUS_CODES[status] ?? (status < 500 ? 'Client Error' : 'Server Error');
  if (body === 'html') return gatewayPage(status, title);
  return status < 500
    ? jsonReply(status, { code: 0, message: `${title}.`, errors: {} })
    : jsonReply(status, { error: ['Internal server error.'] });
}
