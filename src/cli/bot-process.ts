import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { basename, delimiter, join, resolve } from 'node:path';
import { botsOf, type Config } from '../config/config.ts';
import type { Daemon } from '../daemon/daemon.ts';
import { GONE, readProc } from '../liveness/process.ts';
import type { Clock } from '../ports.ts';
import type { Log } from '../telemetry/log.ts';
import { NOTIFY_VARIABLES } from '../telemetry/notify-socket.ts';
import { codeOf } from '../util/text.ts';
import { type Edge, type Signal, tryOr, waitUntil } from './edge.ts';

/** What shells exit with for a program that is not there, and for one that cannot be run. */
const NOT_FOUND = 127;
const CANNOT_RUN = 126;

const cannotStart = (code: number, why: string) => ({ code, why });
type Obstacle = ReturnType<typeof cannotStart>;

interface BotEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The bot's own exit code; 128 and the number of the signal that ended it, as shells have it. */
export const exitCodeOf = ({ code, signal }: BotEnd, { signalNumbers }: Edge) =>
  code ?? 128 + (signalNumbers[signal ?? ''] ?? 0);

/** Why the program cannot be started, as far as is seen where the system will look for it; null where nothing is. */
export function findObstacle(program: string, path: string | undefined) {
  if (program === '') return cannotStart(NOT_FOUND, 'its name is empty');
  const isPath = program.includes('/');
  if (path === undefined && !isPath) return null;
  const there = placesOf(program, path);
  const mayRun = (place: string) => tryOr(() => fs.accessSync(place, fs.constants.X_OK) === undefined, false);
  const runnable = there.filter(mayRun);
  const missing = runnable.map((place) => missingInterpreter(place, path));
  // The system goes on to the next place where an interpreter is not there.
  if (missing.includes(null)) return null;
  if (missing.length > 0)
    return cannotStart(NOT_FOUND, `the first line of ${runnable[0]} names ${missing[0]}, which is not there`);
  const [found] = there;
  if (found !== undefined) return cannotStart(CANNOT_RUN, `${found} may not be executed by this user`);
  if (!isPath) return cannotStart(NOT_FOUND, `there is no ${program} in PATH`);
  if (!fs.existsSync(program)) return cannotStart(NOT_FOUND, `there is no file ${program}`);
  return cannotStart(CANNOT_RUN, `${program} is not a file`);
}

/** The files that the system tries for a program, in its order. */
function placesOf(program: string, path = ''): string[] {
  // An empty folder in PATH is the current one, and so does `join` have it.
  const inPath = path.split(delimiter).map((folder) => join(folder, program));
  const places = program.includes('/') ? [program] : inPath;
  return places.filter((place) => tryOr(() => fs.statSync(place).isFile(), false));
}

/** The system reads no more of a first line. */
const FIRST_LINE_BYTES = 256;

/** An interpreter, and what env is to find in PATH: one word, and no option, variable or path. */
const FIRST_LINE = /^#![ \t]*([^ \t\n\0]+)(?:[ \t]+([^ \t\n\0=/-][^ \t\n\0=/]*)[ \t]*(?:\n|$))?/;

/** The missing interpreter of a script, named in its first line, also through env; null where nothing is missing. */
function missingInterpreter(program: string, path: string | undefined): string | null {
  const [, interpreter, name] = FIRST_LINE.exec(tryOr(() => beginningOf(program), '')) ?? [];
  if (interpreter === undefined) return null;
  const show = (missing: string) => missing.replace(/\r$/, ' and a carriage return');
  if (!fs.existsSync(interpreter)) return show(interpreter);
  if (basename(interpreter) !== 'env' || name === undefined || path === undefined) return null;
  return placesOf(name, path).length === 0 ? show(name) : null;
}

function beginningOf(file: string): string {
  const descriptor = fs.openSync(file, 'r');
  try {
    const bytes = Buffer.alloc(FIRST_LINE_BYTES);
    return bytes.toString('utf8', 0, fs.readSync(descriptor, bytes));
  } finally {
    fs.closeSync(descriptor);
  }
}

/**
 * The environment of the bot: this one and where the daemon is, without its key and without what the service manager
 * knows it by: a bot that spoke for the daemon could keep its watchdog quiet.
 */
function environmentFor(env: Edge['env'], config: Config, controls: readonly string[]): Edge['env'] {
  const [bot, ...others] = botsOf(config.markets);
  const [control] = controls;
  const { tokenFile } = config.control;
  const isKept = (name: string) => !name.startsWith('KILLSWITCHD_API_') && !NOTIFY_VARIABLES.includes(name);
  return {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => isKept(name))),
    // Listeners name themselves as URLs, clients take HOST:PORT.
    KILLSWITCHD_CONTROL: control?.replace(/^http:\/\//, ''),
    ...(tokenFile !== null && { KILLSWITCHD_CONTROL_TOKEN_FILE: resolve(tokenFile) }),
    ...(others.length === 0 && bot !== undefined && { KILLSWITCHD_BOT: bot }),
  };
}

export type BotProcess = Exclude<Awaited<ReturnType<typeof startBot>>, Obstacle>;

/**
 * Starts the bot with the standard streams of this process, without a shell between, and in a session of its own, as
 * setsid(2) makes it: only what it starts is in there. A terminal is shared: its signals are for both. Never rejects.
 */
export async function startBot(command: readonly string[], { config, controls }: Daemon, edge: Edge) {
  const [program = '', ...args] = command;
  const { sharesTerminal, signalGroup } = edge;
  const env = environmentFor(edge.env, config(), controls);
  type Sent = Signal | 'SIGKILL';
  try {
    const child = spawn(program, args, { stdio: 'inherit', env, detached: !sharesTerminal });
    // Such as a signal that cannot be sent.
    child.on('error', () => {});
    const ended = new Promise<BotEnd>((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    await once(child, 'spawn');
    const { pid = 0 } = child;
    const members = () => (sharesTerminal ? [] : membersOf(pid));
    const signalAll = (signal: Sent) => {
      if (sharesTerminal) child.kill(signal);
      else
        for (const group of new Set([pid, ...members().map((one) => one.group)])) signalGroup(group, signal);
    };
    return {
      pid,
      /** To the process; SIGKILL, and any signal for a shell, which would keep it to itself, to its whole session. */
      signal: (signal: Sent) =>
        void (signal === 'SIGKILL' || isShell(command) ? signalAll(signal) : child.kill(signal)),
      signalAll,
      exists: () => child.kill(0),
      ended,
      /** The running processes of its session; none where it shares the session of this process. */
      members,
    };
  } catch (error) {
    const code = codeOf(error) || String(error);
    const known: Readonly<Record<string, string>> = {
      ENOENT: `there is no ${program}, or the program that its first line names is missing`,
      EACCES: `${program} may not be executed by this user`,
      ENOEXEC: `${program} is no program: a script needs a first line such as #!/bin/sh`,
      E2BIG: 'its arguments and environment are too long',
    };
    return cannotStart(code === 'ENOENT' ? NOT_FOUND : CANNOT_RUN, known[code] ?? `${program}: ${code}`);
  }
}

/** What a bot has started, such as the reader of its pipe, often ends a moment after it. */
const MOMENT_MS = 1000;
const LOOK_EVERY_MS = 100;
/** One look reads /proc bit by bit: a process that ends while it starts another one, as in a double fork, shows neither. */
const LOOKS_WITHOUT = 3;

/**
 * Ends the processes that a bot has left in its session: one may be the bot itself, behind a shell that is gone. They have
 * a moment to end by themselves, and `budgetMs` once they are asked. Resolves with whether there were any.
 */
export async function endRest(bot: BotProcess, clock: Clock, logger: Log['logger'], budgetMs: number) {
  const isGone = (withinMs: number) => {
    let looks = 0;
    return waitUntil({ clock, withinMs, everyMs: LOOK_EVERY_MS }, () => {
      looks = bot.members().length === 0 ? looks + 1 : 0;
      return looks === LOOKS_WITHOUT;
    });
  };
  if (await isGone(MOMENT_MS)) return false;
  const pids = bot.members().map(({ pid }) => pid);
  if (pids.length === 0) return false;
  const left = `${pids.length === 1 ? 'A PROCESS' : 'PROCESSES'} BEHIND (${pids.join(', ')})`;
  const end = `asked to end, and killed after ${budgetMs / 1000} s. The timers are not deleted`;
  const text = `THE BOT HAS ENDED AND LEFT ${left}, which may be the bot itself: ${end}.`;
  logger.error({ event: 'process-left-behind', pids }, text);
  bot.signalAll('SIGTERM');
  if (!(await isGone(budgetMs))) bot.signalAll('SIGKILL');
  return true;
}

/** The processes that run in this session, each with its group; none where there is no /proc to tell. */
function membersOf(session: number): { readonly pid: number; readonly group: number }[] {
  return tryOr(() => fs.readdirSync('/proc'), []).flatMap((name) => {
    const pid = Number(name);
    const seen = pid > 0 ? readProc(pid) : null;
    return seen?.session === session && !GONE.has(seen.state) ? [{ pid, group: seen.group }] : [];
  });
}

const SHELLS: readonly string[] = ['sh', 'ash', 'bash', 'busybox', 'dash', 'ksh', 'zsh'];
/** They start the bot by a process of their own, and pass signals on to it. */
const RUNNERS = 'npm npx pnpm yarn nodemon uv conda timeout flock sudo su runuser tini dumb-init'.split(' ');

/** A signal ends a shell, and not what the shell has started. */
const isShell = ([program = '']: readonly string[]) => SHELLS.includes(basename(program));

/** Its last command makes way for the bot; where what stands before fails, it does not end with 0. */
const ENDS_WITH_EXEC = /(?:^|;|&&|\n)[ \t]*exec[ \t][^;&|\n)]*$/;

/** As pip and uv begin a program whose Python has a long path, or one with spaces: the rest is Python. */
const PYTHON_LAUNCHER = /^#!.*\n'''exec' /;

/** A script without what only looks like the end of a command: quotes, redirections such as 2>&1, continued lines. */
const plainly = (script: string) =>
  script.replace(/\\\n/g, ' ').replace(/\\.|'[^']*'|"(?:\\.|[^"\\])*"|[<>]&/gs, '_');

/** They make way for the program that stands after their options, numbers and variables. */
const PREFIXES = 'env nice nohup ionice chrt taskset stdbuf'.split(' ');
/** Options of a shell whose value is the next word. */
const WITH_VALUE = /^(?:[-+]\w*[oO]|--rcfile|--init-file)$/;

interface Wrapper {
  readonly name: string;
  readonly hidesEnd: boolean;
}

/**
 * A program that stays between this process and the bot; null for none, and for a shell that makes way by `exec bot`.
 * `hidesEnd`: a shell may end with 0 where its bot was killed, as of `bot | tee` and `bot & wait`.
 */
export function findWrapper(command: readonly string[], path: string | undefined): Wrapper | null {
  const [program = '', ...args] = command;
  const name = basename(program);
  if (RUNNERS.includes(name)) return { name, hidesEnd: false };
  const afterPrefix = PREFIXES.includes(name) ? args.findIndex((word) => !/^(?:[-\d]|\w+=)/.test(word)) : -1;
  if (afterPrefix >= 0) return findWrapper(args.slice(afterPrefix), path);
  const words = name === 'busybox' ? args.slice(1) : args;
  const place = words.findIndex((word, at) => !/^[-+]/.test(word) && !WITH_VALUE.test(words[at - 1] ?? ''));
  const operand = words[place];
  const isText = words.slice(0, place).some((word) => /^-\w*c/.test(word));
  if (isShell(command) && operand !== undefined && isText) {
    const script = plainly(operand).trim();
    return ENDS_WITH_EXEC.test(script) ? null : { name, hidesEnd: /[;&|\n]/.test(script) };
  }
  const file = isShell(command) ? operand : placesOf(program, path).find((one) => isShellScript(one));
  if (file === undefined) return isShell(command) ? { name, hidesEnd: true } : null;
  const lines = tryOr(() => fs.readFileSync(file, 'utf8'), '')
    .replace(/\\\n/g, ' ')
    .trimEnd();
  // Of the last line alone: an apostrophe in a comment before it is no quote.
  const last = lines.slice(lines.lastIndexOf('\n') + 1);
  const makesWay = PYTHON_LAUNCHER.test(lines) || ENDS_WITH_EXEC.test(plainly(last));
  return makesWay ? null : { name, hidesEnd: true };
}

function isShellScript(file: string): boolean {
  const [, interpreter = '', name = ''] = FIRST_LINE.exec(tryOr(() => beginningOf(file), '')) ?? [];
  return SHELLS.includes(basename(interpreter)) || (basename(interpreter) === 'env' && SHELLS.includes(name));
}
