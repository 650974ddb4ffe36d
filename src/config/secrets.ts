import { hash } from 'node:crypto';
import { constants, readFileSync, type Stats, statSync } from 'node:fs';
import { readFile as readFileInThread, stat as statInThread } from 'node:fs/promises';
import { basename, isAbsolute, resolve } from 'node:path';
import { codeOf } from '../util/text.ts';
import { type Checked, listProblems, ok, type Place, type Problem, RANK, wrong } from './problem.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A text that must not be seen. Every way in which it could end up in a log, an error or a page by accident shows
 * `[redacted, 64 chars, from file]`; only `reveal` gives the text.
 */
export interface Secret {
  /** Where it came from; `demo` is the embedded exchange's own. */
  readonly origin: 'environment' | 'file' | 'demo';
  readonly reveal: () => string;
  readonly toString: () => string;
  readonly toJSON: () => string;
}

/** Wraps `value`, which is kept in a closure: no property holds it. */
export function makeSecret(value: string, origin: Secret['origin']): Secret {
  const shown = `[redacted, ${value.length} chars, from ${origin}]`;
  const show = () => shown;
  return Object.freeze({
    origin,
    reveal: () => value,
    toString: show,
    toJSON: show,
    [Symbol.for('nodejs.util.inspect.custom')]: show,
  });
}

export interface Secrets {
  readonly apiKey: Secret;
  readonly apiSecret: Secret;
}

export function revealCredentials({ apiKey, apiSecret }: Secrets) {
  return { key: apiKey.reveal(), secret: apiSecret.reveal() };
}

export type SecretsRead = ReturnType<typeof readSecrets>;

interface FindOptions {
  readonly demo: boolean;
  readonly lookAt?: LookAt;
}

/** Variables that hold a secret or name a file that does. */
export const SECRET_VARIABLES = ['KILLSWITCHD_API_KEY', 'KILLSWITCHD_API_SECRET'].flatMap((name) => [
  name,
  `${name}_FILE`,
  `${name}_SOURCE`,
]);

const MOST_BYTES = 4 * 1024;

/**
 * Reads key and secret from `KILLSWITCHD_API_KEY` or the file that `KILLSWITCHD_API_KEY_FILE` names, likewise
 * `..._API_SECRET`. Files are read anew at every call, so that a changed key is found without a restart. With `demo`
 * what is not given is that of the embedded exchange. Neither a value nor a file name ever stands in a message: a
 * secret that was put into the wrong variable would be the file name.
 */
export function readSecrets(environment: Environment, options: FindOptions) {
  const { apiKey, apiSecret, problems, warnings } = findSecrets(environment, options);
  return apiKey === null || apiSecret === null
    ? { kind: 'invalid' as const, problems: listProblems(problems) }
    : { kind: 'ok' as const, secrets: { apiKey, apiSecret }, warnings };
}

export type FoundSecrets = ReturnType<typeof findSecrets>;

/** As `readSecrets`, with null for what is missing or wrong. */
export function findSecrets(environment: Environment, { demo, lookAt = lookNow }: FindOptions) {
  const problems: Problem[] = [];
  const warnings: string[] = [];
  const refuse = (variable: string, text: string, rank: number = RANK.environment): null => {
    problems.push({ place: placeOf(variable, rank), text });
    return null;
  };
  const find = (variable: 'KILLSWITCHD_API_KEY' | 'KILLSWITCHD_API_SECRET', what: string): Secret | null => {
    const [fileVariable, sourceVariable] = [`${variable}_FILE`, `${variable}_SOURCE`];
    const { [variable]: value, [fileVariable]: file, [sourceVariable]: source } = environment;
    const empty = 'found an empty text; allowed: the name of';
    if (source === '') return refuse(sourceVariable, `${empty} the file that ${fileVariable} is a copy of`);
    if (value !== undefined && file !== undefined)
      return refuse(variable, `found beside ${fileVariable}; allowed: one of the two`);
    if (value !== undefined) {
      const flaw = findFlaw(value, what);
      return flaw === null ? makeSecret(value, 'environment') : refuse(variable, flaw);
    }
    if (file === undefined) {
      const text = `missing; set ${fileVariable} to a file that holds the ${what}, or ${variable} to the ${what} itself`;
      return demo ? makeSecret(`demo-${what}`, 'demo') : refuse(variable, text, RANK.missing);
    }
    if (file === '') return refuse(fileVariable, `${empty} a file that holds the ${what}`);
    if (source !== undefined && isNewer(lookAt(source), lookAt(file))) {
      const unit = basename(environment['CREDENTIALS_DIRECTORY'] ?? 'killswitchd@NAME', '.service');
      const text = `the file that it names has changed since the start of the service, which is when its copy is made; write: systemctl restart ${unit}`;
      return refuse(sourceVariable, text);
    }
    const read = readSecretFile(file, what, lookAt);
    if (read.kind === 'wrong') return refuse(fileVariable, read.text);
    const { secret, warning } = read.value;
    if (warning !== null) warnings.push(`${fileVariable}: ${warning}`);
    return secret;
  };
  const apiKey = find('KILLSWITCHD_API_KEY', 'key');
  let apiSecret = find('KILLSWITCHD_API_SECRET', 'secret');
  if (apiKey !== null && apiKey.reveal() === apiSecret?.reveal()) {
    const where = environment['KILLSWITCHD_API_SECRET_FILE'] === undefined ? '' : '_FILE';
    const text = 'found the key once more; allowed: the secret, which is another text';
    apiSecret = refuse(`KILLSWITCHD_API_SECRET${where}`, text);
  }
  return { apiKey, apiSecret, problems, warnings };
}

/**
 * Why the key may be that of several shards, whose nonces would make each other stale; nothing where it is surely this
 * one's own. What another shard reads cannot be seen from here: so the file must have the shard's number in its path.
 */
export function findSharedKey(
  { apiKey }: FoundSecrets,
  { index, count }: { readonly index: number; readonly count: number },
  environment: Environment,
): Problem[] {
  if (Math.max(index + 1, count) === 1 || apiKey === null || apiKey.origin === 'demo') return [];
  const file = environment['KILLSWITCHD_API_KEY_FILE'];
  if (file !== undefined && new RegExp(`(?<!\\d)0*${index}(?!\\d)`).test(file)) return [];
  const [variable, found] =
    file === undefined
      ? ['KILLSWITCHD_API_KEY', 'found a key in the environment']
      : ['KILLSWITCHD_API_KEY_FILE', 'found a file without the number of this shard in its path'];
  const text = `${found}; each shard needs a key of its own, since daemons that share one make each other's nonces stale; allowed: KILLSWITCHD_API_KEY_FILE with the number ${index} in the path, such as /run/secrets/killswitchd-${index}.api-key`;
  return [{ place: placeOf(variable, RANK.environment), text }];
}

function placeOf(variable: string, rank: number): Place {
  return { label: variable, rank, offset: SECRET_VARIABLES.indexOf(variable) - 10 };
}

/** Whether a file was changed, or put in its place, after its copy was made. False where one of them is not to be seen. */
const isNewer = ({ changedMs }: Look, copy: Look) =>
  changedMs !== null && copy.changedMs !== null && changedMs > copy.changedMs;

export type SecretFile = Checked<{ readonly secret: Secret; readonly warning: string | null }>;

/** What is wrong with a secret, without showing any of it; null where nothing is. */
export type FindFlaw = (text: string) => string | null;

/** Reads a secret from a file of its own, anew at every call. `what` names it in messages, which never show it. */
export function readSecretFile(
  file: string,
  what: string,
  lookAt: LookAt,
  findMore: FindFlaw = () => null,
): SecretFile {
  const { content } = lookAt(file);
  const isBig = content.kind === 'ok' && content.value.bytes.length > MOST_BYTES;
  const read = isBig ? wrong(`is bigger than ${MOST_BYTES / 1024} KiB`) : content;
  const allowed = `allowed: a file that holds the ${what} and nothing else`;
  // Its name may be the secret, in the wrong variable.
  const where = isAbsolute(file) ? '' : `, looked for in ${resolve()}`;
  if (read.kind === 'wrong') return wrong(`the file that it names ${read.text}${where}; ${allowed}`);
  const text = read.value.bytes.toString('utf8').replace(/\r?\n$/, '');
  const flaw = findFlaw(text, what) ?? findMore(text);
  if (flaw !== null) return wrong(`in the file that it names: ${flaw}`);
  const mode = read.value.mode.toString(8).padStart(4, '0');
  const open = `every user of this host may read the file that it names (mode ${mode}); allow its owner only: mode 0400`;
  const isOpen = (read.value.mode & 0o004) !== 0;
  return ok({ secret: makeSecret(text, 'file'), warning: isOpen ? open : null });
}

const ENOUGH = 'allowed: at least 16, such as those of openssl rand -hex 32';

/** A shorter token can be guessed. */
export const findTokenFlaw: FindFlaw = ({ length }) =>
  length < 16 ? `found ${length} characters; ${ENOUGH}` : null;

export const readTokenFile = (file: string) => readSecretFile(file, 'token', lookNow, findTokenFlaw);

/** Reads an OAuth 2.0 access token, of any length. */
export const readAccessTokenFile = (file: string) => readSecretFile(file, 'access token', lookNow);

/** Things that are put around a secret by mistake. WHAT stands for its name. */
const AROUND: readonly (readonly [RegExp, string])[] = [
  [/^$/, 'an empty text'],
  [/^\ufeff/, 'a byte order mark in front'],
  [/^[{[]/, 'JSON'],
  [/^["'].*["']$/s, 'quotes around the WHAT'],
  [/^(export\s+)?\w*(key|secret|token)\w*=./i, 'NAME= in front of the WHAT'],
];

/** Why a text cannot be a key or secret, without showing any of it: it must be fit for an HTTP header. */
function findFlaw(text: string, what: string): string | null {
  const allowed = `allowed: the ${what} alone, in printable ASCII without spaces`;
  const [, around] = AROUND.find(([form]) => form.test(text)) ?? [];
  if (around !== undefined) return `found ${around.replace('WHAT', what)}; ${allowed}`;
  const at = text.search(/[^\x21-\x7e]/);
  if (at === -1) return null;
  const character = text[at] ?? '';
  const space = /[\r\n]/.test(character) ? 'a line break' : 'white space';
  const found = /\s/.test(character) ? space : 'something that is not printable ASCII';
  return `found ${found} at character ${at + 1}; ${allowed}`;
}

const WHY: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  EACCES: 'may not be read by this user',
  EPERM: 'may not be read by this user',
  EISDIR: 'is a directory',
  ELOOP: 'is a symbolic link that leads in a circle',
  ENAMETOOLONG: 'has a name that is too long',
};

/** A file as it was at one look. What is wrong with it ends a sentence: `does not exist`. */
export interface Look {
  readonly content: Checked<{ readonly bytes: Buffer; readonly mode: number }>;
  /** When it was changed, or put in its place, in Unix milliseconds; null where that is not to be seen. */
  readonly changedMs: number | null;
}

export type LookAt = (path: string) => Look;

/** The SHA-256 of each file that was looked at, or why it cannot be read. */
export type Contents = ReadonlyMap<string, string>;

export const contentOf = ({ content }: Look): string =>
  content.kind === 'ok' ? hash('sha256', content.value.bytes) : content.text;

const MOST_READ_BYTES = 1024 * 1024;
/** A pipe without a writer would hold for ever whoever opens it. */
const flag = constants.O_RDONLY | constants.O_NONBLOCK;

/** Looks at a file while the process waits: a file system that hangs holds up everything. */
export const lookNow: LookAt = (path) => {
  let stat: Stats | null = null;
  try {
    stat = statSync(path);
    const unfit = unfitness(stat);
    return lookOf(stat, unfit === null ? ok(readFileSync(path, { flag: flag as never })) : wrong(unfit));
  } catch (error) {
    return lookOf(stat, wrong(whyUnreadable(error)));
  }
};

/** The same in a thread. Never rejects. */
export async function lookInThread(path: string): Promise<Look> {
  let stat: Stats | null = null;
  try {
    stat = await statInThread(path);
    const unfit = unfitness(stat);
    return lookOf(stat, unfit === null ? ok(await readFileInThread(path, { flag })) : wrong(unfit));
  } catch (error) {
    return lookOf(stat, wrong(whyUnreadable(error)));
  }
}

function lookOf(stat: Stats | null, read: Checked<Buffer>): Look {
  const mode = (stat?.mode ?? 0) & 0o777;
  const content = read.kind === 'ok' ? ok({ bytes: read.value, mode }) : read;
  return { content, changedMs: stat?.ctimeMs ?? null };
}

function unfitness(stat: Stats): string | null {
  if (!stat.isFile()) return stat.isDirectory() ? 'is a directory' : 'is not a regular file';
  return stat.size > MOST_READ_BYTES ? 'is bigger than 1 MiB' : null;
}

function whyUnreadable(error: unknown): string {
  const code = codeOf(error);
  return WHY[code] ?? `cannot be read (${code === '' ? 'invalid path' : code})`;
}
