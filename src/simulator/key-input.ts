import { PERMISSIONS, type Permission } from './permissions.ts';
import type { ApiKey } from './signed-request.ts';

const MAX_KEYS = 1000;
const MAX_TEXT = 255;
const FIELDS = ['key', 'secret', 'account', 'permissions'];

/** The keys that a text from outside names, or a sentence that says what is wrong with it. */
export type ParsedKeys =
  | { readonly ok: true; readonly keys: readonly ApiKey[] }
  | { readonly ok: false; readonly problem: string };

/**
 * Reads an array of keys that are accepted besides `usual`: `key`, `secret` and optionally `account`, where it is not that
 * of the usual key, and `permissions`, where it has not all of them. No sentence repeats a secret.
 */
export function parseKeys(input: unknown, usual: ApiKey): ParsedKeys {
  if (!Array.isArray(input))
    return { ok: false, problem: 'expected an array of objects with key and secret' };
  if (input.length > MAX_KEYS) return { ok: false, problem: `${input.length} keys; allowed: ${MAX_KEYS}` };
  const items: readonly unknown[] = input;
  const names = new Set([usual.key]);
  const keys: ApiKey[] = [];
  for (const [index, item] of items.entries()) {
    const key = readKey(item, usual.account);
    if (typeof key === 'string') return { ok: false, problem: `key ${index + 1}: ${key}` };
    if (names.has(key.key))
      return { ok: false, problem: `key ${index + 1}: ${quote(key.key)} is accepted already` };
    names.add(key.key);
    keys.push(key);
  }
  return { ok: true, keys };
}

function readKey(item: unknown, usualAccount: string): ApiKey | string {
  if (typeof item !== 'object' || item === null || Array.isArray(item))
    return 'expected an object with key, secret and optionally account and permissions';
  const given: Readonly<Record<string, unknown>> = { ...item };
  const unknown = Object.keys(given).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined) return `unknown field ${quote(unknown)}; allowed: ${FIELDS.join(', ')}`;
  const { key, secret, account = usualAccount, permissions = PERMISSIONS } = given;
  if (!isText(key)) return `key is ${quote(key)}; expected a text such as "second-key"`;
  if (!isText(secret))
    return `secret is ${typeof secret === 'string' ? 'empty, too long or has more than plain letters' : 'no text'}`;
  if (!isText(account)) return `account is ${quote(account)}; expected a text such as ${quote(usualAccount)}`;
  const allowed = readPermissions(permissions);
  if (allowed === null)
    return `permissions is ${quote(permissions)}; expected an array of ${PERMISSIONS.join(', ')}`;
  return { key, secret, account, permissions: allowed };
}

function readPermissions(value: unknown): readonly Permission[] | null {
  if (!Array.isArray(value)) return null;
  const found = PERMISSIONS.filter((permission) => value.includes(permission));
  return found.length === value.length ? found : null;
}

/** Fit for the header and for a log. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TEXT && /^[!-~]+$/.test(value);
}

function quote(value: unknown): string {
  return value === undefined ? 'missing' : JSON.stringify(value).slice(0, MAX_TEXT);
}
