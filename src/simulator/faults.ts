import { STATUS_CODES } from 'node:http';
import Type, { type Static, type TObject, type TProperties } from 'typebox';
import { hashText } from '../util/text.ts';
import { gatewayPage, jsonReply, type Refusal, type Reply, refuse } from './answer.ts';
import { EXTRAS, MAX_BODY_BYTES, OPERATIONS, type RequestTarget } from './operations.ts';
import { createRandom } from './random.ts';
import { FORBIDDEN, STALE, UNAUTHORISED } from './signed-request.ts';

const MAX_MS = 86_400_000;
const MILLISECONDS = `milliseconds from 0 to ${MAX_MS}`;
const DURATION = Type.Number({ minimum: 0, maximum: MAX_MS, description: MILLISECONDS });
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

export const OPERATION_NAMES = [...OPERATIONS, ...EXTRAS].map(({ name }) => name);
const MATCH = `an object with operation (${OPERATION_NAMES.join(', ')}), market and/or key as strings`;

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
      { additionalProperties: false, description: MATCH },
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

/** What a fault adds to what those before it did. `random`: a number in [0, 1). `leftMs`: how long it lasts yet. */
type Effect<Fields> = (
  fault: Fields,
  hit: { faultId: number; before: Treatment; random: number; leftMs: number },
) => Partial<Treatment>;

/** Its name, its fields beside those of every fault, and what it does. */
function kind<Name extends string, Fields extends TProperties>(
  name: Name,
  fields: Fields,
  effect: Effect<Static<TObject<Fields>>>,
) {
  const properties = { kind: Type.Literal(name, { description: name }), ...fields, ...SCOPE };
  return { name, shape: Type.Object(properties, { additionalProperties: false }), effect };
}

/** A kind that decides what is carried out and told. */
function deciding<Name extends string, Fields extends TProperties>(
  name: Name,
  fields: Fields,
  verdictOf: (fault: Static<TObject<Fields>>, faultId: number) => Verdict,
) {
  return kind(name, fields, (fault, { faultId }) => ({ verdict: verdictOf(fault, faultId) }));
}

/** Answered in the exchange's place: not carried out. */
const instead = (reply: CannedReply | Refusal): Verdict => ({ apply: 'no', tell: () => reply });

/** Carried out, and answered with something else. */
const afterwards = (reply: CannedReply): Verdict => ({ tell: () => reply });

/** A kind without fields of its own, which always decides the same. */
const always = <Name extends string>(name: Name, verdict: Verdict) => deciding(name, {}, () => verdict);

const oversized = (own: Reply) => ({ ...own, body: `${own.body}${' '.repeat(MAX_BODY_BYTES + 1)}` });
const serverError = (status: number) => jsonReply(status, { error: ['Internal server error.'] });
const NO_JSON = Buffer.from([0x7b, 0xff, 0xfe, 0x00, 0x22, 0x9f, 0x3c, 0x0a]);
const LOCATION = Type.String({ pattern: '^[!-~]{1,2000}$', description: 'an address without white space' });
const MESSAGES = { description: 'an object with arrays of strings' };

const KINDS = [
  /** Delays the request on its way to the exchange, or the reply on its way back (`when: 'after'`), evenly spread. */
  kind(
    'latency',
    { ms: DURATION, jitterMs: Type.Optional(DURATION), when: Type.Optional(oneOf('before', 'after')) },
    ({ ms, jitterMs = 0, when }, { before, random }) => {
      const addedMs = ms + random * jitterMs;
      if (when === 'after') return { replyWaitMs: before.replyWaitMs + addedMs };
      return { waitMs: before.waitMs + addedMs };
    },
  ),
  /**
   * Leaves the connection open and silent for `ms`, or until the fault ends or is cleared. Then the request is carried
   * out and answered (`hold`, even where the client has gone: it was written), or its connection is closed (`drop`).
   */
  kind(
    'hang',
    { ms: Type.Optional(DURATION), mode: oneOf('drop', 'hold') },
    ({ ms = Infinity, mode }, { faultId, leftMs }) => ({
      hang: { faultId, ms: Math.min(ms, leftMs), endsWithFault: leftMs <= ms, mode },
    }),
  ),
  deciding('reset', { when: oneOf('before', 'after') }, ({ when }) => ({
    apply: when === 'after' ? 'yes' : 'no',
    tell: () => null,
  })),
  deciding(
    'status',
    { status: whole(400, 599), body: Type.Optional(oneOf('json', 'html')) },
    ({ status, body }) => instead(statusReply(status, body)),
  ),
  deciding(
    'refusal',
    {
      status: Type.Optional(whole(400, 499)),
      code: Type.Optional(whole(0)),
      message: Type.Optional(TEXT),
      errors: Type.Optional(Type.Record(Type.String(), Type.Array(TEXT), MESSAGES)),
    },
    ({ status = 422, code = 30, message = 'Validation failed', errors = {} }) =>
      instead(refuse(status, code, message, errors)),
  ),
  /** Arms timers for this many seconds, whatever was asked for, and says so in the reply. */
  kind('grant', { seconds: whole(1, 86_400) }, ({ seconds }) => ({ grantSeconds: seconds })),
  /** Repeats the first good reply for each operation, market and key; what it repeats is not carried out. */
  deciding('cache', {}, (_, faultId) => ({ cachedBy: faultId })),
  always('throttle', instead(gatewayPage(429, 'Too Many Requests'))),
  always('stale-nonce', instead(STALE)),
  always('maintenance', instead(gatewayPage(503, 'Service Temporarily Unavailable'))),
  always('garbage', afterwards({ ...jsonReply(200, null), body: NO_JSON })),
  /** Half of the reply, although its length was announced; then the connection is closed. Carried out. */
  always('cut-off', { isCutOff: true }),
  /** The good reply with more than 64 KiB of white space after it; carried out. */
  always('oversize', { tell: oversized }),
  always('wrong-shape', afterwards(jsonReply(200, { code: 0 }))),
  always('unacknowledged', afterwards(serverError(500))),
  always('lie', { apply: 'pretend' }),
  kind('slow-body', { ms: DURATION }, ({ ms }, { before }) => ({ bodyMs: before.bodyMs + ms })),
  deciding('redirect', { location: Type.Optional(LOCATION) }, ({ location = '/api/v4/public/ping' }) =>
    instead({ status: 302, headers: { location }, body: '' }),
  ),
  always('unauthorised', instead(UNAUTHORISED)),
  always('forbidden', instead(FORBIDDEN)),
] as const;

/** What is sent to `POST /simulator/faults`. */
export type Fault = Static<(typeof KINDS)[number]['shape']>;
export type FaultKind = Fault['kind'];

/** A fault in force. Times in Unix milliseconds of the exchange's clock. */
export interface ActiveFault {
  readonly id: number;
  readonly fault: Fault;
  readonly hits: number;
  /** Null where it lasts until it is cleared. */
  readonly endsAtMs: number | null;
}

/** What takes the place of the exchange's own answer. */
export type CannedReply = Omit<Reply, 'body'> & { readonly body: string | Buffer };

/** What is to be done with one request. Whoever transports requests carries it out, from top to bottom. */
export interface Treatment {
  readonly hang: {
    readonly faultId: number;
    /** Infinity where only clearing the fault ends it. */
    readonly ms: number;
    /** The hang ends together with its fault, and with it every request that the fault holds. */
    readonly endsWithFault: boolean;
    readonly mode: 'drop' | 'hold';
  } | null;
  readonly waitMs: number;
  readonly replyWaitMs: number;
  /** Timers are armed for this many seconds; null: as asked for. */
  readonly grantSeconds: number | null;
  /** The body is spread over this long. */
  readonly bodyMs: number;
  /** Null: carried out and answered as the exchange does. */
  readonly verdict: Verdict | null;
  /** The faults that took part, for the log. */
  readonly hits: readonly { readonly faultId: number; readonly kind: FaultKind }[];
}

export interface Verdict {
  /** Default `yes`. */
  readonly apply?: 'yes' | 'no' | 'pretend';
  /** What the client is told in place of the exchange's own answer; null: its connection is reset. */
  readonly tell?: (own: Reply) => CannedReply | Refusal | null;
  /** Half of the answer is sent. */
  readonly isCutOff?: boolean;
  /** The fault under which the first good answer is repeated. */
  readonly cachedBy?: number;
}

const NO_DELAY = { waitMs: 0, replyWaitMs: 0, bodyMs: 0 };
/** What is done with a request that no fault hits. */
const UNTOUCHED: Treatment = { ...NO_DELAY, hang: null, grantSeconds: null, verdict: null, hits: [] };
/** Of two faults that decide one of these, the earlier one wins. */
const DECIDED_ONCE = ['hang', 'grantSeconds', 'verdict'] as const;

/** Every kind of fault, for the pages and messages that list them. */
export const FAULT_KINDS: readonly FaultKind[] = KINDS.map(({ name }) => name);

const EFFECTS = new Map(KINDS.map(({ name, effect }) => [name, effect as Effect<Fault>]));

/** JSON Schema of a `Fault`. */
export const FAULT_SCHEMA = {
  ...Type.Unsafe<Fault>({}),
  type: 'object',
  description: 'an object such as {"kind":"latency","ms":200}',
  discriminator: { propertyName: 'kind' },
  required: ['kind'],
  properties: { kind: { enum: FAULT_KINDS, description: 'a kind of fault' } },
  oneOf: KINDS.map(({ shape }) => shape),
};

interface Planned extends ActiveFault {
  hits: number;
  skipped: number;
  readonly random: () => number;
}

export type FaultPlan = ReturnType<typeof createFaultPlan>;

/**
 * The faults in force and what they do to each request. Each draws from a random stream of its own, made from the seed
 * and its content, so that adding or removing another fault changes nothing about its decisions.
 */
export function createFaultPlan(seed: number) {
  let planned: readonly Planned[] = [];
  const copies = new Map<string, number>();
  let lastId = 0;

  function prune(nowMs: number): void {
    planned = planned.filter(
      ({ fault, hits, endsAtMs }) => (endsAtMs ?? Infinity) > nowMs && hits < (fault.count ?? Infinity),
    );
  }

  return {
    add(fault: Fault, nowMs: number): ActiveFault {
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
    clear(): number {
      const ended = planned.length;
      planned = [];
      return ended;
    },
    active(nowMs: number): readonly ActiveFault[] {
      prune(nowMs);
      return planned.map(({ id, fault, hits, endsAtMs }) => ({ id, fault, hits, endsAtMs }));
    },
    treat(target: RequestTarget, nowMs: number): Treatment {
      prune(nowMs);
      let treatment = UNTOUCHED;
      for (const candidate of planned) {
        if (!isMatch(candidate.fault, target)) continue;
        if (candidate.skipped < (candidate.fault.skip ?? 0)) {
          candidate.skipped += 1;
          continue;
        }
        const chance = candidate.random();
        const random = candidate.random();
        if (chance >= (candidate.fault.probability ?? 1)) continue;
        const { fault, id: faultId, endsAtMs } = candidate;
        const leftMs = (endsAtMs ?? Infinity) - nowMs;
        const added = EFFECTS.get(fault.kind)?.(fault, { faultId, before: treatment, random, leftMs }) ?? {};
        if (DECIDED_ONCE.some((part) => part in added && treatment[part] !== null)) continue;
        candidate.hits += 1;
        treatment = { ...treatment, ...added, hits: [...treatment.hits, { faultId, kind: fault.kind }] };
      }
      return treatment;
    },
  };
}

function isMatch({ match = {} }: Fault, target: RequestTarget): boolean {
  const names = ['operation', 'market', 'key'] as const;
  return names.every((name) => match[name] === undefined || match[name] === target[name]);
}

/** A page of the gateway, or the JSON of the API; from 500 on that of the live exchange's server itself. */
function statusReply(status: number, body: 'json' | 'html' = 'json'): CannedReply | Refusal {
  const title = STATUS_CODES[status] ?? (status < 500 ? 'Client Error' : 'Server Error');
  if (body === 'html') return gatewayPage(status, title);
  return status < 500 ? refuse(status, 0, `${title}.`) : serverError(status);
}
