import { join } from 'node:path';
import { describe, expect, type TestContext, test } from 'vitest';
import { startProcess } from '../liveness/started.ts';
import type { DaemonProcess } from './daemon.ts';
import { type Stage, stageFor } from './harness.ts';
import { eventually, said, sleep } from './program.ts';
import { ofKind, type RunningExchange } from './simulated-exchange.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT'];
const TTL_SECONDS = 15;

interface Guarded {
  readonly exchange: RunningExchange;
  readonly daemon: DaemonProcess;
  readonly bot: { readonly signal: (signal: NodeJS.Signals) => void };
}

/** A bot that lives, and its daemon, which has armed everything. */
async function guarded(context: TestContext, stage: Stage, mode: 'beat' | 'file'): Promise<Guarded> {
  const exchange = await stage.exchange();
  await exchange.placeOrders(...MARKETS.map((market) => ({ market, type: 'spot' as const })));
  const control = `unix:${join(stage.directory, `${mode}.sock`)}`;
  const file = join(stage.directory, 'bot.alive');
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: MARKETS.map((market) => ({ market, timeoutSeconds: 6, bot: 'bot' })),
    config: {
      liveness: { mode, ttlSeconds: TTL_SECONDS, ...(mode === 'file' ? { file } : {}) },
      ...(mode === 'beat' ? { control: { listen: [control] } } : {}),
    },
  });
  const bot =
    mode === 'file'
      ? startProcess(context, process.execPath, ['test/process/bot.ts', 'file', file])
      : startProcess(context, process.execPath, ['config/clients/bot.js'], {
          KILLSWITCHD_CONTROL: control,
          KILLSWITCHD_BOT: 'bot',
        });
  await eventually('signs of life', 20_000, () => daemon.logged('bot-alive')[0] ?? null);
  await daemon.ready();
  return { exchange, daemon, bot };
}

const deletedIn = async (exchange: RunningExchange) =>
  ofKind(await exchange.events(), 'timer-deleted')
    .map(({ market }) => market)
    .toSorted();

describe.concurrent('a stop of the daemon', { timeout: 90_000 }, () => {
  for (const mode of ['beat', 'file'] as const) {
    test(`1 s after its bot was killed deletes nothing: the orders are cancelled, and it ends with 75 (${mode})`, async (context) => {
      const stage = stageFor(context);
      const { exchange, daemon, bot } = await guarded(context, stage, mode);
      bot.signal('SIGKILL');
      await sleep(1000);
      daemon.signal('SIGTERM');
      expect(await daemon.exit(), said(daemon)).toMatchObject({ code: 75 });
      for (const market of MARKETS) {
        expect(daemon.stderr()).toMatch(new RegExp(`^${market}: .*cancelled at the latest at \\S+Z$`, 'm'));
        await exchange.event('order-cancelled', 15_000, (event) => event.market === market);
      }
      expect(await deletedIn(exchange)).toEqual([]);
    });

    test(`while its bot lives waits for a sign of it, deletes every timer, and ends with 0 (${mode})`, async (context) => {
      const stage = stageFor(context);
      const { exchange, daemon } = await guarded(context, stage, mode);
      daemon.signal('SIGTERM');
      expect(await daemon.exit(), said(daemon)).toMatchObject({ code: 0 });
      expect(await deletedIn(exchange)).toEqual(MARKETS);
      expect(ofKind(await exchange.events(), 'order-cancelled')).toEqual([]);
    });
  }

  test('after the goodbye of its bot deletes every timer', async (context) => {
    const stage = stageFor(context);
    const { exchange, daemon, bot } = await guarded(context, stage, 'beat');
    bot.signal('SIGTERM');
    await eventually('the goodbye', 10_000, () => daemon.logged('bot-goodbye')[0] ?? null);
    daemon.signal('SIGTERM');
    expect(await daemon.exit(), said(daemon)).toMatchObject({ code: 0 });
    expect(await deletedIn(exchange)).toEqual(MARKETS);
    expect(ofKind(await exchange.events(), 'order-cancelled')).toEqual([]);
  });
});

describe.concurrent('a stop during a maintenance of the exchange', { timeout: 90_000 }, () => {
  test.for([
    ['that outlasts it', null, 'the delete was not confirmed'],
    ['that outlasts the timers', 6500, 'the timer may have fired before it was deleted'],
  ] as const)('%s names every timer of 5 s, and ends with 75', async ([, forMs, words], context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    await exchange.placeOrders(...MARKETS.map((market) => ({ market, type: 'spot' as const })));
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: MARKETS.map((market) => ({ market, timeoutSeconds: 5 })),
      config: { shutdown: { budgetSeconds: 10 } },
    });
    await daemon.ready();
    await exchange.addFaults({ kind: 'maintenance', ...(forMs === null ? {} : { forMs }) });
    daemon.signal('SIGTERM');
    expect(await daemon.exit(), said(daemon)).toMatchObject({ code: 75 });
    for (const market of MARKETS) expect(daemon.stderr()).toContain(`${market}: ${words}`);
    const [stopped] = daemon.logged('stopped');
    expect(stopped?.level).toBe('error');
    for (const market of MARKETS) expect(stopped?.msg).toContain(market);
    expect(ofKind(await exchange.events(), 'order-cancelled')).toHaveLength(MARKETS.length);
  });
});
