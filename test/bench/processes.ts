import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cores } from './machine.ts';
import type { Answer, Ask, ExchangeOptions, Fault, Seen } from './protocol.ts';

/** One process that the bench started. */
export interface Running {
  readonly pid: number;
  readonly child: ChildProcess;
  /** When it was started, in Unix milliseconds. */
  readonly startedAt: number;
  /** Everything that it wrote. */
  readonly log: () => string;
  /** Sends a signal, unless it has ended. */
  readonly signal: (signal: NodeJS.Signals) => void;
  readonly ended: Promise<number | null>;
  readonly on: SpawnOptions['on'];
}

export interface SpawnOptions {
  readonly cores: Cores;
  readonly on: 'subject' | 'others';
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Modules that are loaded first. */
  readonly preload?: readonly string[];
  readonly flags?: readonly string[];
  /** Opens a channel for `process.send`; a subject that is measured has none. */
  readonly channel?: boolean;
  readonly directory?: string;
}

const started = new Set<Running>();
let over = false;

/** Starts Node with these arguments on its core. It ends with the bench. */
export function startNode(args: readonly string[], options: SpawnOptions): Running {
  if (over) throw new Error('the bench is over: nothing is started any more');
  const { cores, on, logFile, env = {}, preload = [], flags = [], channel = false, directory } = options;
  const core = cores[on];
  const node = [process.execPath, ...flags, ...preload.flatMap((module) => ['--import', module]), ...args];
  const [command = '', ...rest] = core === null ? node : ['taskset', '-c', core, ...node];
  const log = openSync(logFile, 'w', 0o600);
  const startedAt = performance.timeOrigin + performance.now();
  const child = spawn(command, rest, {
    stdio: ['ignore', log, log, ...(channel ? (['ipc'] as const) : [])],
    env: { ...baseEnvironment(), ...env },
    ...(directory === undefined ? {} : { cwd: directory }),
  });
  closeSync(log);
  const { pid } = child;
  if (pid === undefined) throw new Error(`${command} could not be started`);
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  const running: Running = {
    pid,
    child,
    startedAt,
    log: () => readFileSync(logFile, 'utf8'),
    signal: (signal) => void (child.exitCode === null && child.signalCode === null && child.kill(signal)),
    ended,
    on,
  };
  started.add(running);
  void ended.then(() => started.delete(running));
  return running;
}

/** What a user's shell would give it, without what belongs to npm and to other daemons. */
function baseEnvironment(): Record<string, string> {
  const { PATH = '', HOME = '/' } = process.env;
  return { PATH, HOME, NODE_ENV: 'production' };
}

/** Ends a process without asking it. */
export async function kill(running: Running): Promise<void> {
  running.signal('SIGKILL');
  await running.ended;
}

/** Ends whatever is being measured. */
export async function killSubjects(): Promise<void> {
  await Promise.all([...started].filter(({ on }) => on === 'subject').map(kill));
}

/** Ends whatever still runs. */
export async function killAll(): Promise<void> {
  await Promise.all([...started].map(kill));
}

/** The same for good: what was being measured fails by that, and the stage after it would start its own. */
export async function endAll(): Promise<void> {
  over = true;
  await killAll();
}

export interface ExchangeProcess {
  readonly url: string;
  readonly running: Running;
  readonly forget: () => Promise<Seen>;
  readonly count: () => Promise<Seen>;
  readonly read: (periodMs?: number) => Promise<Seen>;
  readonly fail: (fault: Fault) => Promise<Seen>;
  readonly work: () => Promise<Seen>;
  readonly setRoundTrip: (roundTripMs: number) => Promise<Seen>;
}

const EXCHANGE = new URL('./exchange.ts', import.meta.url).pathname;

/** Starts the exchange and waits until it listens. */
export async function startExchange(
  options: ExchangeOptions,
  spawning: Omit<SpawnOptions, 'on'>,
): Promise<ExchangeProcess> {
  const running = startNode([EXCHANGE, JSON.stringify(options)], {
    ...spawning,
    on: 'others',
    channel: true,
  });
  const { child } = running;
  const [hello] = (await Promise.race([
    once(child, 'message'),
    running.ended.then(() => {
      throw new Error(`the exchange ended:\n${running.log()}`);
    }),
  ])) as [{ port: number }];
  let asked = 0;
  const waiting = new Map<number, (seen: Seen) => void>();
  child.on('message', ({ id, seen }: Answer) => {
    waiting.get(id)?.(seen);
    waiting.delete(id);
  });
  const ask = (what: Omit<Ask, 'id'>): Promise<Seen> => {
    const { promise, resolve, reject } = Promise.withResolvers<Seen>();
    asked += 1;
    waiting.set(asked, resolve);
    child.send({ id: asked, ...what }, (error) => {
      if (error !== null) reject(error);
    });
    return promise;
  };
  return {
    url: `${options.tls === null ? 'http' : 'https'}://127.0.0.1:${hello.port}`,
    running,
    forget: () => ask({ ask: 'forget' }),
    count: () => ask({ ask: 'count' }),
    read: (periodMs = 0) => ask({ ask: 'read', periodMs }),
    fail: (fault) => ask({ ask: 'fail', fault }),
    work: () => ask({ ask: 'work' }),
    setRoundTrip: (roundTripMs) => ask({ ask: 'read', roundTripMs }),
  };
}

/** Asks again and again until the answer is not null. Throws after `withinMs`. */
export async function eventually<T>(
  what: string,
  withinMs: number,
  look: () => Promise<T | null> | T | null,
): Promise<T> {
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (performance.now() > untilMs) throw new Error(`${what}: not within ${withinMs / 1000} s`);
    await sleep(20);
  }
}

export async function waitForAll(
  exchange: ExchangeProcess,
  markets: number,
  withinMs = 120_000,
): Promise<void> {
  let armed = 0;
  await eventually(`${markets} timers armed`, withinMs, async () => {
    await sleep(markets > 1000 ? 100 : 5);
    ({ armed } = await exchange.read());
    return armed >= markets ? true : null;
  }).catch((error: unknown) => {
    throw new Error(`only ${armed} of ${markets} timers armed within ${withinMs / 1000} s`, { cause: error });
  });
}

export async function waitForFirst(exchange: ExchangeProcess, running: Running): Promise<void> {
  await eventually(`a renewal of ${running.log()}`, 20_000, async () => {
    return (await exchange.read()).armed > 0 ? true : null;
  });
}

/** Until a process that was asked to end has ended. Throws after `withinMs`. */
export async function waitForEnd(running: Running, withinMs = 90_000): Promise<void> {
  const late = new AbortController();
  const overdue = sleep(withinMs, undefined, { signal: late.signal }).then(() => {
    throw new Error(`a subject that was asked to end still runs after ${withinMs / 1000} s`);
  });
  await Promise.race([running.ended, overdue]).finally(() => late.abort());
}
