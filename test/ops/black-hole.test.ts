import { expect, type TestContext, test } from 'vitest';
import type { DaemonOptions, DaemonProcess } from '../process/daemon.ts';
import { stageFor } from '../process/harness.ts';
import { eventually, sleep } from '../process/program.ts';
import { longestGapMs, ofKind, type RunningExchange, renewalsOf } from '../process/simulated-exchange.ts';
import { createNetwork, HOSTED, type Manner, OTHER } from './netns.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT'];
const QUICK = { ttlSeconds: 4, startupGraceSeconds: 5, probeEverySeconds: 1 };
/** Enough to keep every thread busy that looks up names. */
const MORE = Array.from({ length: 10 }, (_, index) => `M${index}_USDT`);
/** The kernel sends what was not acknowledged again for about this long. */
const SENT_AGAIN_MS = 15_000;

async function play(
  context: TestContext,
  options: Partial<DaemonOptions> = {},
  manner: Manner = 'answers',
  later = manner,
) {
  const stage = stageFor(context);
  const exchange = await stage.exchangeProcess();
  const network = await createNetwork(context, stage.directory, exchange.url);
  await network.names(manner);
  const daemon = await stage.daemon({
    exchange: network.exchange,
    ...of(60),
    ...network.near,
    ...options,
    config: {
      exchange: { requestLifetimeSeconds: 3 },
      defaults: { renewEverySeconds: 1 },
      shutdown: { budgetSeconds: 3 },
      ...options.config,
    },
  });
  if (later !== manner) {
    await sleep(3000);
    await network.names(later);
  }
  for (const market of MARKETS)
    await exchange.event('timer-armed', 20_000, (event) => event.market === market);
  const renewals = async () => {
    const events = await exchange.events();
    return MARKETS.flatMap((market) => renewalsOf(events, market)).sort((one, other) => one - other);
  };
  return { exchange, network, daemon, renewals };
}

const of = (timeoutSeconds: number, markets: readonly string[] = MARKETS) => ({
  markets: markets.map((market) => ({ market, timeoutSeconds })),
});

/** The longest time without a renewal of each market. */
async function gapsSince(exchange: RunningExchange, fromMs: number): Promise<number[]> {
  const events = await exchange.events();
  const toMs = await exchange.nowMs();
  return MARKETS.map((market) => longestGapMs(events, market, fromMs, toMs));
}

const stop = (daemon: DaemonProcess) => daemon.signal('SIGTERM');
// Sooner it would count as the first one.
const stopTwice = async (daemon: DaemonProcess) => {
  stop(daemon);
  await sleep(1100);
  stop(daemon);
  await daemon.exit(1500);
};
const crash = (daemon: DaemonProcess) => daemon.sabotage({ kind: 'throw' });

test.concurrent.for([
  ['is stopped', 75, stop],
  ['is ended by a second signal', 75, stopTwice],
  ['crashes', 70, crash],
] as const)(
  'a daemon that %s in a black hole leaves nothing behind that arms a timer later',
  async ([_how, code, end], context) => {
    const { network, daemon, exchange, renewals } = await play(context, { canSabotage: true });
    await sleep(2000);
    network.drop(true);
    await sleep(1800);
    const fromMs = await exchange.nowMs();
    await end(daemon);
    expect(await daemon.exit(10_000)).toMatchObject({ code });
    await sleep(2000);
    network.drop(false);
    await sleep(SENT_AGAIN_MS);
    expect((await renewals()).filter((atMs) => atMs > fromMs)).toEqual([]);
    expect(ofKind(await exchange.events(), 'timer-deleted')).toEqual([]);
  },
);

test.concurrent('a renewal that was given up in a black hole does not arrive after the bot has died', async (context) => {
  const lifetimeMs = 3000;
  const { network, exchange, daemon, renewals } = await play(context, {
    config: { liveness: { mode: 'file', file: '/dev/null', ttlSeconds: 3, startupGraceSeconds: 6 } },
  });
  await sleep(1000);
  network.drop(true);
  // No file is ever touched: the grace of the start is all the evidence that there is.
  const givenUp = () => daemon.logged('bot-stale')[0] ?? daemon.logged('bot-missing')[0];
  await eventually('the bot to be given up', 20_000, givenUp);
  const deadMs = await exchange.nowMs();
  await sleep(lifetimeMs);
  network.drop(false);
  await sleep(SENT_AGAIN_MS);
  expect((await renewals()).filter((atMs) => atMs > deadMs + lifetimeMs)).toEqual([]);
});

test.concurrent('a black hole that swallows lookups as well costs no longer than itself', async (context) => {
  const { network, exchange } = await play(context, of(12, [...MARKETS, ...MORE]));
  await sleep(3000);
  network.drop(true);
  await sleep(7500);
  network.drop(false);
  await sleep(6000);
  expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
});

test.concurrent('the last good addresses are dialled while the server of names fails in any way', async (context) => {
  const { network, exchange } = await play(context, of(5));
  const fromMs = await exchange.nowMs();
  // Until the first addresses are looked up anew.
  await sleep(10_000);
  for (const manner of ['is silent', 'answers late', 'is truncated', 'fails', 'knows no name'] as const) {
    await network.names(manner);
    await exchange.addFaults({ kind: 'reset', when: 'before', count: 4 });
    await sleep(5000);
    const gaps = await gapsSince(exchange, fromMs);
    expect(Math.max(...gaps), `it ${manner}`).toBeLessThan(3000);
  }
  expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
});

test.concurrent('a name without an address at the start is looked up again', async (context) => {
  const { daemon } = await play(context, of(5), 'names only another name', 'answers');
  expect(daemon.logged('outage-began')).toMatchObject([
    { detail: expect.stringContaining('queryA ENODATA exchange.test') },
  ]);
});

test.concurrent('the address that was reached last is dialled before others that are dead', async (context) => {
  const { network, exchange } = await play(context, of(5));
  await network.names('names dead addresses first');
  // Until the first addresses are looked up anew.
  await sleep(10_000);
  await exchange.addFaults({ kind: 'reset', when: 'before', count: 2 });
  await sleep(2000);
  const fromMs = await exchange.nowMs();
  await exchange.addFaults({ kind: 'reset', when: 'before', count: 8 });
  await sleep(6000);
  // It is 2.8 s, and 3.5 s where the dead are dialled first.
  expect(Math.max(...(await gapsSince(exchange, fromMs)))).toBeLessThan(3250);
});

test.concurrent('an exchange that moves is found, behind an address that takes connections and never answers', async (context) => {
  const { network, exchange } = await play(context, of(10), 'names another address');
  await network.names('names a silent address first');
  network.drop(true, OTHER);
  await sleep(13_000);
  expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
});

test.concurrent('a bot whose name does not resolve takes nothing from bots whose names are found by search and in the hosts file, nor from renewals', async (context) => {
  const silent = Array.from({ length: 6 }, (_, index) => `silent${index}`);
  const { exchange, daemon } = await play(context, {
    markets: [
      // Those come first: they would take every thread before the others ask.
      ...silent.map((bot, index) => ({ market: `S${index}_USDT`, timeoutSeconds: 10, bot })),
      ...MARKETS.map((market) => ({ market, timeoutSeconds: 10, bot: 'alive' })),
      ...HOSTED.map((bot, index) => ({ market: `H${index}_USDT`, timeoutSeconds: 10, bot })),
    ],
    config: {
      liveness: { mode: 'http', url: 'http://{bot}:8080/', ...QUICK },
    },
  });
  await sleep(15_000);
  const events = await exchange.events();
  for (const market of [...MARKETS, ...HOSTED.map((_, index) => `H${index}_USDT`)]) {
    expect(ofKind(events, 'timer-armed', market)).toHaveLength(1);
    expect(ofKind(events, 'timer-fired', market)).toEqual([]);
  }
  expect(ofKind(events, 'timer-fired').length).toBeGreaterThan(0);
  daemon.signal('SIGTERM');
  expect(await daemon.exit()).toMatchObject({ code: expect.any(Number) });
});
