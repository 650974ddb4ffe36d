import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { writeFiles } from './daemon.ts';
import { BOT, botSays, PROCESS, runs } from './exec-play.ts';
import { beginGuard, guard, stageFor } from './harness.ts';
import { endBy, eventually, MAIN, sleep } from './program.ts';
import { deletedIn, firstRenewalsAfter, longestGapDuring, ofKind } from './simulated-exchange.ts';
import { onTerminal } from './terminal.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];

test.concurrent('renewals go on, and a stop ends the process, when the terminal that it writes to is stopped', {
  timeout: 60_000,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  const { configFile, env } = writeFiles(stage.directory, {
    exchange: exchange.url,
    markets: MARKETS.map((market) => ({ market, timeoutSeconds: 5 })),
    config: { log: { level: 'debug' }, shutdown: { budgetSeconds: 3 } },
  });
  const terminal = onTerminal(context, [process.execPath, MAIN, 'run', '--config', configFile], env);
  await eventually('the timers', 15_000, () => terminal.shown().includes('is armed'));
  const children = readFileSync(`/proc/${terminal.pid}/task/${terminal.pid}/children`, 'utf8').trim();
  expect(children).toMatch(/^\d+$/);
  terminal.type('\u0013');
  const gapMs = await longestGapDuring(exchange, MARKETS, async () => {
    await sleep(3000);
    const { length } = terminal.shown();
    await sleep(1500);
    expect(terminal.shown().length).toBe(length);
  });
  expect(gapMs).toBeLessThan(3000);
  // The exchange goes away: the last words are for standard error, which is the same terminal.
  await exchange.addFaults({ kind: 'hang', mode: 'drop' });
  process.kill(Number(children), 'SIGTERM');
  await eventually('the end of the daemon', 8000, () => !runs(Number(children)));
});

// Other outputs that nobody reads: `test/telemetry/sink.test.ts`.
test('renewals go on, and a stop is clean, when nobody reads what exec writes to the journal', {
  timeout: 60_000,
}, async (context) => {
  /** Enough of them that their log fills a pipe within a few seconds. */
  const markets = Array.from({ length: 60 }, (_, index) => `M${index}_USDT`);
  const { exchange, daemon } = await beginGuard(context, {
    markets,
    timeoutSeconds: 5,
    bot: BOT,
    stderr: 'unread',
    // One after the other, sixty markets would ask more of the round trip than of the log.
    // The stop comes when no request of a life before can arrive any more: else it could not be sure of its deletes.
    config: {
      log: { level: 'debug' },
      liveness: PROCESS,
      exchange: { nonce: 'window', requestLifetimeSeconds: 2 },
    },
  });
  await firstRenewalsAfter(exchange, markets, 0);
  await botSays(daemon, 'started');
  expect(await longestGapDuring(exchange, markets, () => sleep(5000))).toBeLessThan(2000);
  expect(await endBy(daemon)).toBe(0);
  expect(await deletedIn(exchange)).toHaveLength(markets.length);
});

test.concurrent('a daemon that stands still for longer than its timers last says each lapse once, and arms again at once', {
  timeout: 60_000,
}, async (context) => {
  const { exchange, daemon } = await guard(context, { markets: MARKETS, timeoutSeconds: 5 });
  await sleep(1000);
  daemon.signal('SIGSTOP');
  await sleep(6500);
  const continuedMs = await exchange.nowMs();
  daemon.signal('SIGCONT');
  for (const atMs of await firstRenewalsAfter(exchange, MARKETS, continuedMs))
    expect(atMs - continuedMs).toBeLessThan(2000);
  await daemon.ready();
  await eventually('all lapses in the log', 5000, () => daemon.logged('lapsed')[MARKETS.length - 1]);
  await sleep(1500);
  expect(daemon.marketsLogged('lapsed')).toEqual(MARKETS);
  expect(daemon.logged('stall')).not.toEqual([]);
  expect(await daemon.metric('killswitch_lapses_total')).toBe(MARKETS.length);
  expect(ofKind(await exchange.events(), 'timer-fired')).toHaveLength(MARKETS.length);
});
