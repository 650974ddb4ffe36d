import type { Fault, FaultKind } from './faults.ts';

interface Field {
  readonly allowed: string;
  readonly fits: (value: unknown) => boolean;
  readonly required?: boolean;
}

const MAX_MS = 86_400_000;
const DURATION: Field = {
  allowed: `milliseconds from 0 to ${MAX_MS}`,
  fits: (value) => isNumberIn(value, 0, MAX_MS),
};
const ADDRESS: Field = {
  allowed: 'an address without white space',
  fits: (value) => typeof value === 'string' && /^[!-~]{1,2000}$/.test(value),
};

const SCOPE: Readonly<Record<string, Field>> = {
  match: { allowed: 'an object with operation, market and/or key as strings', fits: isMatchObject },
  skip: whole(0, Number.MAX_SAFE_INTEGER),
  probability: { allowed: 'a number from 0 to 1', fits: (value) => isNumberIn(value, 0, 1) },
  count: {
    allowed: 'a whole number of at least 1',
    fits: (value) => isNumberIn(value, 1, Number.MAX_SAFE_INTEGER) && Number.isInteger(value),
  },
  forMs: DURATION,
};

const FIELDS: Readonly<Record<FaultKind, Readonly<Record<string, Field>>>> = {
  latency: { ms: required(DURATION), jitterMs: DURATION, when: oneOf('before', 'after') },
  hang: { ms: DURATION, mode: required(oneOf('drop', 'hold')) },
  reset: { when: required(oneOf('before', 'after')) },
  status: {
    status: required(whole(400, 599)),
    body: oneOf('json', 'html'),
  },
  refusal: {
    status: whole(400, 499),
    code: whole(0, Number.MAX_SAFE_INTEGER),
    message: { allowed: 'a string', fits: (value) => typeof value === 'string' },
    errors: { allowed: 'an object with arrays of strings', fits: isErrors },
  },
  grant: { seconds: required(whole(1, 86_400)) },
  cache: {},
  throttle: {},
  'stale-nonce': {},
  maintenance: {},
  garbage: {},
  'cut-off': {},
  oversize: {},
  'wrong-shape': {},
  unacknowledged: {},
  lie: {},
  'slow-body': { ms: required(DURATION) },
  redirect: { location: ADDRESS },
  unauthorised: {},
  forbidden: {},
};

/** Every kind of fault, for the pages and messages that list them. */
export const FAULT_KINDS: readonly string[] = Object.keys(FIELDS);

/** The faults that a text from outside asks for, or a sentence that says what is wrong with it. */
export type ParsedFaults =
  | { readonly ok: true; readonly faults: readonly Fault[] }
  | { readonly ok: false; readonly problem: string };

/** Reads one fault or an array of faults, in the form of the type `Fault`. */
export function parseFaults(input: unknown): ParsedFaults {
  const faults: Fault[] = [];
  const items: readonly unknown[] = Array.isArray(input) ? input : [input];
  for (const [index, item] of items.entries()) {
    const place = Array.isArray(input) ? `fault ${index + 1}` : 'fault';
    const problem = findProblem(item);
    if (problem !== null) return { ok: false, problem: `${place}: ${problem}` };
    faults.push(item as Fault);
  }
  return { ok: true, faults };
}

function findProblem(item: unknown): string | null {
  if (!isObject(item)) return `expected an object such as {"kind":"latency","ms":200}`;
  const kind = item['kind'];
  const own = typeof kind === 'string' && Object.hasOwn(FIELDS, kind) ? FIELDS[kind as FaultKind] : null;
  if (own === null) return `kind is ${quote(kind)}; allowed: ${FAULT_KINDS.join(', ')}`;
  const fields = { ...own, ...SCOPE };
  for (const name of Object.keys(item)) {
    if (name !== 'kind' && !Object.hasOwn(fields, name)) {
      return `unknown field "${name}"; allowed for ${quote(kind)}: ${Object.keys(fields).join(', ')}`;
    }
  }
  for (const [name, field] of Object.entries(fields)) {
    const value = item[name];
    if (value === undefined ? field.required === true : !field.fits(value)) {
      return `${name} is ${quote(value)}; expected ${field.allowed}`;
    }
  }
  return null;
}

function whole(min: number, max: number): Field {
  return {
    allowed:
      max === Number.MAX_SAFE_INTEGER
        ? `a whole number of at least ${min}`
        : `a whole number from ${min} to ${max}`,
    fits: (value) => isNumberIn(value, min, max) && Number.isInteger(value),
  };
}

function required(field: Field): Field {
  return { ...field, required: true };
}

function oneOf(...values: readonly string[]): Field {
  return { allowed: values.join(' or '), fits: (value) => values.some((known) => known === value) };
}

function isNumberIn(value: unknown, min: number, max: number): boolean {
  return typeof value === 'number' && value >= min && value <= max;
}

function isMatchObject(value: unknown): boolean {
  return (
    isObject(value) &&
    Object.entries(value).every(
      ([name, member]) => ['operation', 'market', 'key'].includes(name) && typeof member === 'string',
    )
  );
}

function isErrors(value: unknown): boolean {
  return (
    isObject(value) &&
    Object.values(value).every(
      (member) => Array.isArray(member) && member.every((text) => typeof text === 'string'),
    )
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function quote(value: unknown): string {
  return value === undefined ? 'missing' : JSON.stringify(value);
}
