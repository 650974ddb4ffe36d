import { describe, expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { sleep } from './program.ts';
import { ofKind, renewalsOf } from './simulated-exchange.ts';

describe.concurrent('when the daemon dies', { timeout: 60_000 }, () => {
  test('by SIGKILL, the exchange cancels what the timers cover, and nothing else, within T + 1 s', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    await exchange.placeOrders(
      { market: 'AAA_USDT', type: 'spot' },
      { market: 'AAA_USDT', type: 'margin' },
      { market: 'BBB_USDT', type: 'spot' },
      { market: 'BBB_USDT', type: 'margin' },
      { market: 'CCC_USDT', type: 'spot' },
    );
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: [
        { market: 'AAA_USDT', timeoutSeconds: 5, types: ['spot'] },
        { market: 'BBB_USDT', timeoutSeconds: 6 },
      ],
    });
    await daemon.ready();
    await sleep(1000);
    const killedAtMs = await exchange.nowMs();
    daemon.signal('SIGKILL');
    await exchange.event('timer-fired', 8000, ({ market }) => market === 'BBB_USDT');
    const events = await exchange.events();
    const cancelled = ofKind(events, 'order-cancelled');
    expect(cancelled.map(({ market, type }) => `${market} ${type}`).sort()).toEqual([
      'AAA_USDT spot',
      'BBB_USDT margin',
      'BBB_USDT spot',
    ]);
    for (const { market, atMs } of cancelled) {
      expect(atMs - killedAtMs).toBeGreaterThan(0);
      expect(atMs - killedAtMs).toBeLessThanOrEqual(market === 'AAA_USDT' ? 6000 : 7000);
    }
  });

  test('of a fault of its own, it exits 70 and leaves the timers to fire', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const market = 'AAA_USDT';
    await exchange.placeOrders({ market, type: 'spot' });
    for (const kind of ['reject', 'throw'] as const) {
      const daemon = await stage.daemon({
        exchange: exchange.url,
        markets: [{ market, timeoutSeconds: 5 }],
        canSabotage: true,
      });
      await daemon.ready();
      daemon.sabotage({ kind });
      expect(await daemon.exit()).toMatchObject({ code: 70 });
      expect(daemon.logged('crashed')).toMatchObject([{ level: 'fatal' }]);
    }
    const { atMs } = await exchange.event('order-cancelled', 8000);
    const events = await exchange.events();
    expect(ofKind(events, 'timer-deleted')).toEqual([]);
    expect(atMs - (renewalsOf(events, market).at(-1) ?? 0)).toBeLessThanOrEqual(6000);
  });
});
