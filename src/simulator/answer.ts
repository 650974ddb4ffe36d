/**
 * `documented`: the API document to the letter. `live`: as the live exchange was observed to answer: `[]` on a
 * delete, `types: null` for all types, whole-number timeouts accepted, and HTML pages where its gateway answers.
 */
export const PROFILES = ['documented', 'live'] as const;
export type Profile = (typeof PROFILES)[number];

/** What the simulated exchange sends back. Header names are lower case. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What an operation or a check came to, before it is put into the error shape of the operation. */
export type Answer = { readonly kind: 'done'; readonly status: number; readonly value: unknown } | Refusal;

type Errors = Readonly<Record<string, readonly string[]>>;

export interface Refusal {
  readonly kind: 'refused';
  readonly status: number;
  readonly code: number;
  readonly message: string;
  readonly errors: Errors;
  /** `json`: an error object. `html`: a page of the gateway before the exchange. `empty`: no body. */
  readonly form: 'json' | 'html' | 'empty';
}

export function done(value: unknown, status = 200): Answer {
  return { kind: 'done', status, value };
}

export function refuse(status: number, code: number, message: string, errors: Errors = {}): Refusal {
  return { kind: 'refused', status, code, message, errors, form: 'json' };
}

/** The page that the gateway of the live exchange sends where the exchange itself is not reached. */
export function gatewayPage(status: number, title: string): Reply {
  const body = `<!DOCTYPE html>\n<html><head><title>${title}</title></head><body><center><h1>${status} ${title}</h1></center></body></html>\n`;
  return { status, headers: { 'content-type': 'text/html; charset=UTF-8' }, body };
}

/** A reply with a JSON body. Responses are not cached, as the API document says. */
export function jsonReply(status: number, value: unknown): Reply {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
  return { status, headers, body: JSON.stringify(value) };
}

/** Puts an answer into the shape of the API document, which has another one for the errors of public operations. */
export function renderAnswer(answer: Answer, audience: 'public' | 'private'): Reply {
  if (answer.kind === 'done') return jsonReply(answer.status, answer.value);
  const { status, code, message, errors, form } = answer;
  if (form === 'empty') return { status, headers: {}, body: '' };
  if (form === 'html') return gatewayPage(status, message);
  const error = { code, message, errors };
  return jsonReply(status, audience === 'public' ? { success: false, message, params: [] } : error);
}

/** One line that says why a request was refused, for the event log. */
export function reasonOf(refusal: Refusal): string {
  const details = Object.values(refusal.errors).flat();
  return details.length === 0 ? refusal.message : `${refusal.message}: ${details.join(' ')}`;
}

/** Codes of the API document for order creation, and of the simulator's own operations where it shows none. */
export const CODES = { field: 30, market: 31, amount: 32, clientOrderId: 36 } as const;

/** What is wrong with one field of a body. `field` is spelled as in the API document. */
export interface Flaw {
  readonly field: string;
  /** Sentences, or, beginning with a small letter, what comes after the name of the field. */
  readonly messages: readonly string[];
  /** What the live exchange says after the name where it writes `Market` for the document's `The market`. */
  readonly live?: string;
  /** The code of the document, or that of order creation that fits best. */
  readonly code: number;
  /** The code of the live exchange where it has one of its own for this flaw. */
  readonly liveCode?: number;
}

/** `form`: a field is missing or not of its form. `inner`: well-formed, and not possible as things stand. */
type Stage = 'form' | 'inner';

export function flaw(field: string, message: string, more: Partial<Flaw> = {}): Flaw {
  return { field, messages: [message], code: CODES.field, ...more };
}

/** The same where something is not right, else null. */
export function unless(isRight: boolean, ...what: Parameters<typeof flaw>): Flaw | null {
  return isRight ? null : flaw(...what);
}

/** The live exchange spells `client_order_id` as `clientOrderId`. */
function spell(field: string, profile: Profile): string {
  return profile === 'live' ? field.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()) : field;
}

type Body = Readonly<Record<string, unknown>>;

/** The value of a field; the live profile takes either spelling, because clients of the live exchange use theirs. */
export function fieldOf(body: Body, field: string, profile: Profile): unknown {
  return body[spell(field, profile)] ?? body[field];
}

/** `The unique_id` in the document is `The unique id` at the live exchange. */
function inWords({ field, messages, live }: Flaw, profile: Profile): readonly string[] {
  const name = spell(field, profile);
  if (profile === 'live' && live !== undefined)
    return [`${name.charAt(0).toUpperCase()}${name.slice(1)} ${live}`];
  const subject = profile === 'live' ? field.replaceAll('_', ' ') : field;
  return messages.map((text) => (/^[a-z]/.test(text) ? `The ${subject} ${text}` : text));
}

function errorsOf(flaws: readonly Flaw[], profile: Profile): Errors {
  return Object.fromEntries(flaws.map((one) => [spell(one.field, profile), inWords(one, profile)]));
}

/** 422 for the form of an order and 400 for what is inside. Of several codes the lowest counts: it is listed first. */
export function refuseOrder(stage: Stage, flaws: readonly Flaw[], profile: Profile): Refusal {
  const code = Math.min(...flaws.map((one) => one.code));
  return refuse(stage === 'form' ? 422 : 400, code, 'Validation failed', errorsOf(flaws, profile));
}

/** Where the document shows no errors: as for an order; live, 400 with code 0 for the form and 422 for what is inside. */
export function refuseFields(stage: Stage, flaws: readonly Flaw[], profile: Profile): Refusal {
  if (profile === 'documented') return refuseOrder(stage, flaws, profile);
  const errors = errorsOf(flaws, profile);
  if (stage === 'form') return refuse(400, 0, 'Validation failed', errors);
  return refuse(422, Math.min(...flaws.map((one) => one.liveCode ?? 0)), 'Inner validation failed', errors);
}

export function flawsAmong(found: readonly (Flaw | null)[]): readonly Flaw[] {
  return found.filter((one) => one !== null);
}

/** Reads fields of a body and gathers what is wrong with their form. What was read counts where nothing is. */
export function readForm({ body, profile }: { readonly body: Body; readonly profile: Profile }) {
  const flaws: Flaw[] = [];
  const note = (found: Flaw | null) => found !== null && flaws.push(found);
  /** A whole number from `min` to `max`, or `unset` where it is left out. */
  const integer = (field: string, min: number, max: number, unset: number): number => {
    const given = fieldOf(body, field, profile);
    const value = given === undefined ? unset : given;
    if (typeof value !== 'number' || !Number.isSafeInteger(value)) note(flaw(field, 'must be an integer.'));
    else if (value < min) note(flaw(field, `must be at least ${min}.`));
    else if (value > max) note(flaw(field, `may not be greater than ${max}.`));
    return typeof value === 'number' ? value : unset;
  };
  return {
    flaws,
    integer,
    page: (limit: number) => ({
      limit: integer('limit', 1, 100, limit),
      offset: integer('offset', 0, 10_000, 0),
    }),
    /** A text with something in it. `problem`: what else may be wrong with it. */
    text(field: string, problem: (text: string) => Flaw | null = () => null): string {
      const value = fieldOf(body, field, profile);
      if (value === undefined || value === null || value === '') note(flaw(field, 'field is required.'));
      else note(typeof value === 'string' ? problem(value) : flaw(field, 'must be a string.'));
      return typeof value === 'string' ? value : '';
    },
    /** The same for a text that may be left out: then it is not required, whatever stands in its place. */
    optionalText(field: string, problem: (text: string) => Flaw | null = () => null): string | undefined {
      const value = fieldOf(body, field, profile);
      if (value === '') note(flaw(field, 'must not be an empty string.'));
      else if (typeof value === 'string') note(problem(value));
      else if (value !== undefined) note(flaw(field, 'must be a string.'));
      return typeof value === 'string' ? value : undefined;
    },
  };
}

/** What is wrong with a field of an order that must be there; null where nothing is. */
export function requiredFlaw(field: string, value: unknown): Flaw | null {
  const live = 'field is required.';
  return unless(value !== undefined && value !== null, field, live, { live });
}

export function marketFlaw(market: unknown): Flaw | null {
  const { market: code } = CODES;
  const missing = requiredFlaw('market', market);
  if (missing !== null) return missing;
  if (typeof market !== 'string') return flaw('market', 'Market must be a string.', { code });
  if (market !== '') return null;
  const live = 'field should not be empty string.';
  return flaw('market', 'Market must not be an empty string.', { code, live });
}

/** The market is none of this exchange, or not one for what is asked. */
export const NO_MARKET = flaw('market', 'Market is not available.', { code: CODES.market });
