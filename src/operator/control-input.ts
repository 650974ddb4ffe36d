import { didYouMean } from '../util/nearest.ts';
import { ControlRefusal, describeFound, listNames } from './control-refusal.ts';
import { type ControlSources, LOG_LEVELS, type LogLevel } from './control-sources.ts';

/** What a request may say. Durations in seconds. */
export interface Input {
  readonly bot?: string;
  readonly session?: string;
  readonly seq?: number;
  readonly markets?: readonly string[];
  readonly forSeconds?: number;
  readonly waitSeconds?: number;
  readonly level?: LogLevel;
}
export type InputKey = keyof Input;

/** Longest pause, and longest change of the log level: a day. */
const LONGEST_FOR_SECONDS = 86_400;
const LONGEST_WAIT_SECONDS = 60;
const LONGEST_SESSION = 64;

interface Rule {
  readonly allows: string;
  readonly accepts: (value: unknown) => boolean;
}

const RULES: Readonly<Record<InputKey, Rule>> = {
  bot: { allows: "a bot's name", accepts: isText },
  session: {
    allows: `a text of 1 to ${LONGEST_SESSION} printable characters`,
    accepts: (value) =>
      isText(value) && value.length <= LONGEST_SESSION && /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u.test(value),
  },
  seq: {
    allows: `a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`,
    accepts: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  },
  markets: {
    allows: 'a list of at least one market, such as ["BTC_USDT"]; without the key all of them are meant',
    accepts: (value) => Array.isArray(value) && value.length > 0 && value.every(isText),
  },
  forSeconds: between(1, LONGEST_FOR_SECONDS),
  waitSeconds: between(0, LONGEST_WAIT_SECONDS),
  level: {
    allows: LOG_LEVELS.join(', '),
    accepts: (value) => LOG_LEVELS.some((level) => level === value),
  },
};

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function between(least: number, most: number): Rule {
  return {
    allows: `a number from ${least} to ${most}`,
    accepts: (value) => typeof value === 'number' && value >= least && value <= most,
  };
}

/** Reads a body; undefined, which is an empty one, says nothing. Throws `ControlRefusal`. */
export function readInput(body: unknown, keys: readonly InputKey[], needed: readonly InputKey[]): Input {
  if (body !== undefined && (typeof body !== 'object' || body === null || Array.isArray(body))) {
    throw new ControlRefusal(
      'invalid_value',
      `the body: found ${describeFound(body)}; allowed: ${objectOf(keys)}`,
    );
  }
  const given = new Map(Object.entries(body ?? {}));
  for (const [key, value] of given) {
    const known = keys.find((name) => name === key);
    if (known === undefined) throw unknownKey('the body', key, keys);
    if (!RULES[known].accepts(value)) throw invalidValue(known, value);
  }
  const missing = needed.find((key) => !given.has(key));
  if (missing !== undefined) {
    throw new ControlRefusal('invalid_value', `${missing} is missing; allowed: ${RULES[missing].allows}`);
  }
  return Object.fromEntries(given);
}

function invalidValue(key: InputKey, value: unknown): ControlRefusal {
  const meant = key === 'level' && typeof value === 'string' ? didYouMean(value, LOG_LEVELS) : '';
  const text = `${key}: found ${describeFound(value)}; allowed: ${RULES[key].allows}${meant}`;
  return new ControlRefusal('invalid_value', text);
}

function unknownKey(where: string, key: string, keys: readonly string[]): ControlRefusal {
  const text = `${where}: found the unknown key ${describeFound(key)}; allowed: ${listNames(keys) || 'none'}`;
  return new ControlRefusal('unknown_key', text + didYouMean(key, keys));
}

function objectOf(keys: readonly string[]): string {
  return keys.length === 0 ? 'an empty object, or nothing' : `an object with the keys ${keys.join(', ')}`;
}

/** Checks what stands after the `?` of a request; `keys` may stand there, once. Throws `ControlRefusal`. */
export function readQuery<Key extends string>(query: unknown, keys: readonly Key[]): { [K in Key]?: string } {
  const read: { [K in Key]?: string } = {};
  for (const [key, value] of Object.entries(query ?? {})) {
    const known = keys.find((name) => name === key);
    if (known === undefined) throw unknownKey('the query', key, keys);
    if (!isText(value)) {
      throw new ControlRefusal('invalid_value', `the query: ${key} needs one value, as ?${key}=NAME`);
    }
    read[known] = value;
  }
  return read;
}

/**
 * Whose word a request is: as its query or body says, or that of the only bot. Where there are several, a word without a
 * name is refused: it could keep the timers of a dead bot alive.
 */
export function chooseBot(
  query: string | undefined,
  body: string | undefined,
  bots: readonly string[],
): string {
  if (query !== undefined && body !== undefined && query !== body) {
    const found = `${describeFound(query)} in the query and ${describeFound(body)} in the body`;
    throw new ControlRefusal('invalid_value', `bot: found ${found}; name one of them`);
  }
  const name = query ?? body;
  if (name === undefined) {
    const [only, ...others] = bots;
    if (only !== undefined && others.length === 0) return only;
    throw new ControlRefusal(
      'invalid_value',
      `bot is missing: several bots are configured; say which, as ?bot=NAME: ${listNames(bots)}`,
    );
  }
  if (bots.includes(name)) return name;
  throw new ControlRefusal(
    'unknown_bot',
    `bot: found ${describeFound(name)}, which no market of the configuration names; allowed: ${listNames(bots)}${didYouMean(name, bots)}`,
  );
}

/** The markets that a command names, each once, or null for all. Throws `ControlRefusal` where one is not configured. */
export function chooseMarkets(
  named: readonly string[] | undefined,
  configured: readonly string[],
  elsewhere: ControlSources['elsewhere'],
): readonly string[] | null {
  if (named === undefined) return null;
  const known = new Set(configured);
  const stranger = named.find((market) => !known.has(market));
  if (stranger === undefined) return [...new Set(named)];
  const shard = elsewhere(stranger);
  const why =
    shard === null
      ? `which is not configured; configured: ${listNames(configured)}${didYouMean(stranger, configured)}`
      : `which belongs to shard ${shard.index} of ${shard.count}, counted from 0: ask that daemon`;
  throw new ControlRefusal('unknown_market', `markets: found ${describeFound(stranger)}, ${why}`);
}
