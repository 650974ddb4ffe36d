import { type Refusal, refuse } from './answer.ts';
import type { Profile } from './exchange-state.ts';

/** Codes of the API document for order creation, and of the simulator's own operations where it shows none. */
export const DEFAULT_VALIDATION = 30;
export const MARKET_VALIDATION = 31;
export const AMOUNT_VALIDATION = 32;
export const CLIENT_ID_VALIDATION = 36;

/** What is wrong with one field of a body. `field` is spelled as in the API document. */
export interface Flaw {
  readonly field: string;
  /** The code of the document, or that of order creation that fits best. */
  readonly code: number;
  /** The code of the live exchange where it has one of its own for this flaw. */
  readonly liveCode?: number;
  readonly messages: readonly string[];
}

/** `form`: a field is missing or not of its form. `inner`: well-formed, and not possible as things stand. */
export type Stage = 'form' | 'inner';

/** The live exchange spells `client_order_id` as `clientOrderId`. */
export function spell(field: string, profile: Profile): string {
  return profile === 'live' ? field.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()) : field;
}

/** The value of a field; the live profile takes either spelling, because clients of the live exchange use theirs. */
export function fieldOf(body: Readonly<Record<string, unknown>>, field: string, profile: Profile): unknown {
  return body[spell(field, profile)] ?? body[field];
}

/** The messages begin with `The market` in the document and with `Market` at the live exchange. */
export function inFull(field: string, problem: string, profile: Profile): string {
  if (profile === 'documented') return `The ${field} ${problem}`;
  const name = spell(field, profile);
  return `${name.charAt(0).toUpperCase()}${name.slice(1)} ${problem}`;
}

/**
 * The refusal of an order: 422 for its form and 400 for what is inside, as the API document says. Of several codes the
 * lowest counts, because the document lists it first.
 */
export function refuseOrder(stage: Stage, flaws: readonly Flaw[], profile: Profile): Refusal {
  const code = Math.min(...flaws.map((flaw) => flaw.code));
  return refuse(stage === 'form' ? 422 : 400, code, 'Validation failed', errorsOf(flaws, profile));
}

/**
 * The refusal of an operation whose errors the document does not show. Documented profile: as for an order. Live
 * profile: 400 with code 0 for the form, and 422 with its own codes for what is inside.
 */
export function refuseFields(stage: Stage, flaws: readonly Flaw[], profile: Profile): Refusal {
  if (profile === 'documented') return refuseOrder(stage, flaws, profile);
  const errors = errorsOf(flaws, profile);
  if (stage === 'form') return refuse(400, 0, 'Validation failed', errors);
  const code = Math.min(...flaws.map((flaw) => flaw.liveCode ?? 0));
  return refuse(422, code, 'Inner validation failed', errors);
}

function errorsOf(flaws: readonly Flaw[], profile: Profile): Refusal['errors'] {
  return Object.fromEntries(
    flaws.map(({ field, messages }) => [
      spell(field, profile),
      profile === 'live' ? messages.map((text) => text.replace(`The ${field} `, inWords)) : messages,
    ]),
  );
}

/** `The unique_id` in the document is `The unique id` at the live exchange, whose key for it is `uniqueId`. */
function inWords(name: string): string {
  return name.replaceAll('_', ' ');
}

/** What is wrong with a field that must be a text with something in it; null where nothing is. */
export function textFlaw(field: string, value: unknown): Flaw | null {
  const problem =
    value === undefined || value === null || value === ''
      ? `The ${field} field is required.`
      : typeof value === 'string'
        ? null
        : `The ${field} must be a string.`;
  return problem === null ? null : { field, code: DEFAULT_VALIDATION, messages: [problem] };
}

/** The same for a text that may be left out: then it is not required, whatever stands in its place. */
export function optionalTextFlaw(field: string, value: unknown): Flaw | null {
  if (value === undefined || (typeof value === 'string' && value !== '')) return null;
  const problem = value === '' ? 'must not be an empty string.' : 'must be a string.';
  return { field, code: DEFAULT_VALIDATION, messages: [`The ${field} ${problem}`] };
}

/** What is wrong with a whole number from `min` to `max` that may be left out; null where nothing is. */
export function integerFlaw(field: string, value: unknown, min: number, max: number): Flaw | null {
  const problem =
    value === undefined
      ? null
      : typeof value !== 'number' || !Number.isSafeInteger(value)
        ? `The ${field} must be an integer.`
        : value < min
          ? `The ${field} must be at least ${min}.`
          : value > max
            ? `The ${field} may not be greater than ${max}.`
            : null;
  return problem === null ? null : { field, code: DEFAULT_VALIDATION, messages: [problem] };
}

/** The flaws among what was looked at. */
export function flawsAmong(found: readonly (Flaw | null)[]): readonly Flaw[] {
  return found.filter((flaw) => flaw !== null);
}
