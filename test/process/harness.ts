import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { Fault } from '../../src/simulator/faults.ts';
import { startSimulatedServer } from '../../src/simulator/server.ts';
import { DEMO_KEY } from '../../src/simulator/state.ts';
import { type DaemonOptions, runDaemon } from './daemon.ts';
import { type Program, type RunOptions, runProgram, startInTurn } from './program.ts';
import { connectTo, DEMO, exchangeAt, type RunningExchange } from './simulated-exchange.ts';

export interface ExchangeOptions {
  /** `host:port`; any free port unless given. */
  readonly listen?: string;
  /** Of the demo key. */
  readonly secret?: string;
  /** Those that it knows; any unless given. */
  readonly markets?: readonly string[];
}

/** What one test starts; it all ends with the test. */
export type Stage = ReturnType<typeof stageFor>;

/** What knows when a test is over. */
export interface Scope {
  readonly onTestFinished: (end: () => void | Promise<void>) => void;
}

/** The scope of a whole block or file, for tests that play on one stage in their order. */
export function scopeOfBlock(): Scope {
  const ends: (() => void | Promise<void>)[] = [];
  afterAll(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  });
  return { onTestFinished: (end) => void ends.push(end) };
}

/** Sets the stage of one test: whatever it starts is killed, by its process id, when the test ends. */
export function stageFor({ onTestFinished }: Scope) {
  const directory = mkdtempSync(join(tmpdir(), 'killswitchd-'));
  const started: Program[] = [];
  const opened: RunningExchange[] = [];
  const start = async <P extends Program>(begin: () => P): Promise<P> => {
    const program = await startInTurn(begin);
    started.push(program);
    return program;
  };
  onTestFinished(async () => {
    for (const program of started) program.signal('SIGKILL');
    await Promise.all(started.map((program) => program.exit()));
    await Promise.all(opened.map((exchange) => exchange.end()));
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    /** A directory of this test alone. */
    directory,
    /** Runs any command of the program. */
    run: (args: readonly string[], options?: RunOptions) => start(() => runProgram(args, options)),
    /** Opens a simulated exchange with no orders in its books, in the process of the test: a start is half a second. */
    async exchange({ listen = '127.0.0.1:0', secret = DEMO.secret, markets }: ExchangeOptions = {}) {
      const { hostname: host, port } = new URL(`http://${listen}`);
      const server = await startSimulatedServer({
        clock: createSystemClock(),
        listen: { host, port: Number(port) },
        exchange: { ...(markets && { markets }), keys: [{ ...DEMO_KEY, secret }] },
      });
      const exchange = exchangeAt(server.url, () => server.close());
      opened.push(exchange);
      return exchange;
    },
    /** Starts one as a process, for a test that keeps its own one busy or needs a flag of the command. */
    async exchangeProcess(flags: readonly string[] = []) {
      const usual = ['exchange', '--orders', 'none', '--listen', '127.0.0.1:0'];
      return connectTo(await start(() => runProgram([...usual, ...flags])));
    },
    /** Starts the daemon and does not wait for more than its process. */
    daemon: (options: DaemonOptions) =>
      start(() => runDaemon(mkdtempSync(join(directory, 'daemon-')), options)),
  };
}

export interface GuardOptions extends Omit<DaemonOptions, 'exchange' | 'markets'> {
  /** By name, or as the configuration has it. */
  readonly markets?: readonly (string | { readonly market: string; readonly [key: string]: unknown })[];
  readonly timeoutSeconds?: number;
  /** Of the exchange, from the start. */
  readonly faults?: readonly Fault[];
  readonly exchange?: ExchangeOptions;
  /** Starts the exchange as a process, with these flags. */
  readonly exchangeFlags?: readonly string[];
}

/** An exchange with an order in each of the markets, and a daemon that begins to guard them. */
export async function beginGuard(scope: Scope, options: GuardOptions = {}) {
  const { markets: asked = ['AAA_USDT', 'BBB_USDT'], timeoutSeconds = 10, faults = [] } = options;
  const markets = asked.map((one) => ({
    timeoutSeconds,
    ...(typeof one === 'string' ? { market: one } : one),
  }));
  const stage = stageFor(scope);
  const { exchangeFlags: flags } = options;
  const exchange = await (flags === undefined
    ? stage.exchange(options.exchange)
    : stage.exchangeProcess(flags));
  await exchange.placeOrders(...markets.map(({ market }) => ({ market, type: 'spot' as const })));
  await exchange.addFaults(...faults);
  const daemon = await stage.daemon({ ...options, exchange: exchange.url, markets });
  return { stage, exchange, daemon };
}

/** The same, once the daemon has armed them all. */
export async function guard(scope: Scope, options: GuardOptions = {}) {
  const begun = await beginGuard(scope, options);
  await begun.daemon.ready(30_000);
  return begun;
}
