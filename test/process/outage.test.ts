import { describe, expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { ofKind, renewalsOf } from './simulated-exchange.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];

describe.concurrent('a hang of the exchange at T = 10', { timeout: 120_000 }, () => {
  async function start(context: Parameters<typeof stageFor>[0]) {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    await exchange.placeOrders(...MARKETS.map((market) => ({ market, type: 'spot' as const })));
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: MARKETS.map((market) => ({ market, timeoutSeconds: 10 })),
    });
    await daemon.ready();
    await sleep(1000);
    return { exchange, daemon };
  }

  test.for(['drop', 'hold'] as const)('of 6 s lapses nothing (%s)', async (mode, context) => {
    const { exchange, daemon } = await start(context);
    await exchange.addFaults({ kind: 'hang', mode, forMs: 6000 });
    await sleep(8000);
    await daemon.ready();
    expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
    expect([daemon.logged('overdue'), daemon.logged('lapsed')]).toEqual([[], []]);
    expect(await daemon.metric('killswitch_lapses_total')).toBe(0);
  });

  test.for(['drop', 'hold'] as const)(
    'of 30 s lapses, which is said once per market, and all is armed again within 2 s (%s)',
    async (mode, context) => {
      const { exchange, daemon } = await start(context);
      const hangMs = 30_000;
      await exchange.addFaults({ kind: 'hang', mode, forMs: hangMs });
      const endMs = (await exchange.event('fault-added', 5000)).atMs + hangMs;
      await sleep(hangMs - 3000);
      expect((await daemon.get('/readyz')).status).toBe(503);
      expect((await daemon.get('/livez')).status).toBe(200);
      expect(ofKind(await exchange.events(), 'order-cancelled')).toHaveLength(MARKETS.length);

      const rearmed = await eventually('every market armed again', 15_000, async () => {
        const events = await exchange.events();
        const first = MARKETS.map((market) => renewalsOf(events, market).find((atMs) => atMs >= endMs) ?? 0);
        return first.includes(0) ? null : first;
      });
      for (const atMs of rearmed) expect(atMs - endMs).toBeLessThanOrEqual(2000);
      await daemon.ready();
      await sleep(2000);
      expect(daemon.marketsLogged('lapsed')).toEqual(MARKETS);
      expect(daemon.marketsLogged('overdue')).toEqual(MARKETS);
      for (const market of MARKETS)
        expect(await daemon.metric('killswitch_lapses_total', { market })).toBe(1);
      expect(ofKind(await exchange.events(), 'timer-fired')).toHaveLength(MARKETS.length);
    },
  );
});
