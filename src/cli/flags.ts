import type { Argument, Option } from 'commander';
import { findUnknown } from '../config/environment.ts';
import { type Checked, describe, describeAllowed, listProblems, suggestInstead } from '../config/problem.ts';
import { readSecrets, revealCredentials, type SecretFile } from '../config/secrets.ts';
import { type Edge, misconfigured, misuse } from './edge.ts';

/** What commander read: flags with a value, and switches. */
export type Given<Valued extends string, Switch extends string = never> = {
  readonly [Name in Valued]?: string;
} & { readonly [Name in Switch]?: boolean };

/** Help and completion name these values. The command checks them itself, and says what is wrong in its own words. */
export function offer<T extends Option | Argument>(place: T, values: readonly string[]): T {
  if (values.length > 0) place.argChoices = [...values];
  return place;
}

const UNIT_SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;
const LONGEST_SECONDS = 24 * 3600;
const ALLOWED = 'a number with s, m or h, from 1s to 24h, such as 90s, 10m or 1.5h';

/** What `--for` says, `90s`, `10m` or `1.5h`, in seconds. Throws a `CommandError` otherwise. */
export function readDuration(text: string): number {
  const meant = secondsMeant(text);
  const seconds = Math.min(Math.max(meant ?? 0, 1), LONGEST_SECONDS);
  if (seconds === meant && /^[\d.]+[smh]$/.test(text)) return seconds;
  const unit = (['h', 'm'] as const).find((one) => seconds % UNIT_SECONDS[one] === 0) ?? 's';
  const hint = meant === null ? '' : `; write ${seconds / UNIT_SECONDS[unit]}${unit}`;
  throw misuse(`--for: found ${describe(text)}; allowed: ${ALLOWED}${hint}`);
}

/** The seconds of `1.5h`, and of what probably means as much: `10 min`, `600`, `PT10M`, `2d`, `1h30m`; else null. */
function secondsMeant(text: string): number | null {
  const lower = text.trim().toLowerCase();
  const plain = lower.replace(/^pt/, '').replace(/^[\d.]+$/, '$&s');
  const part =
    /(\d{1,6}(?:\.\d{1,3})?)\s*(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?:\s+|(?=\d)|$)/g;
  if (plain === '' || plain.replace(part, '') !== '') return null;
  const total = [...plain.matchAll(part)].reduce((sum, [, number, unit = '']) => {
    return sum + Number(number) * UNIT_SECONDS[unit[0] as keyof typeof UNIT_SECONDS];
  }, 0);
  return Number(total.toFixed(3));
}

/** What `--wait` says: a whole number of seconds from 0 to `maximum`. Throws a `CommandError` for anything else. */
export function readWait(text: string, maximum = 60): number {
  if (/^\d+$/.test(text) && Number(text) <= maximum) return Number(text);
  const seconds = { type: 'integer', minimum: 0, maximum };
  const allowed = `${describeAllowed(seconds)}${suggestInstead(text, seconds)}`;
  throw misuse(`--wait: found ${describe(text)}; allowed: ${allowed}`);
}

/** The value that was checked; throws a `CommandError` where it is wrong. `label`: the flag, or the variable or key. */
export function valid<T>(label: string, checked: Checked<T>): T {
  if (checked.kind === 'ok') return checked.value;
  throw (/^--[a-z-]+$/.test(label) ? misuse : misconfigured)(`${label}: ${checked.text}`);
}

/** The secret in a file. A secret never stands on the command line: everybody on the host can read that. */
export const revealed = (label: string, read: SecretFile) => valid(label, read).secret.reveal();

/** Key and secret of the environment. Throws a `CommandError` that says what is missing or wrong. */
export function readCredentials(env: Edge['env']) {
  const read = readSecrets(env, { demo: false });
  if (read.kind === 'invalid') throw misconfigured(read.problems.join('\n'));
  return revealCredentials(read.secrets);
}

/** Throws a `CommandError` where the environment names a variable that there is not: it may be meant for what follows. */
export function refuseUnknown(env: Edge['env']): void {
  const problems = findUnknown(env);
  if (problems.length > 0) throw misconfigured(listProblems(problems).join('\n'));
}

/** What a configuration file says, unchecked. Throws a `CommandError`, with `advice`, where it cannot be read. */
export async function readUnchecked(name: string, ...advice: readonly string[]) {
  if (name === '')
    throw misconfigured('--config or KILLSWITCHD_CONFIG: found an empty text; allowed: the name of a file');
  // The parser costs more time than all the rest of a command.
  const { readConfigFile } = await import('../config/file.ts');
  const { values, problems, place } = readConfigFile(name);
  if (values === null) throw misconfigured([...listProblems(problems), ...advice].join('\n'));
  return { values, place };
}
