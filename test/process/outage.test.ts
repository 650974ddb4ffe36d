import { expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { ofKind, renewalsOf } from './simulated-exchange.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];

test('a hang of the exchange of 6 s at T = 10 lapses nothing; one of 30 s lapses, is reported once per market, and all is armed again within 2 s', async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  await exchange.placeOrders(...MARKETS.map((market) => ({ market, type: 'spot' as const })));
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: MARKETS.map((market) => ({ market, timeoutSeconds: 10 })),
  });
  await daemon.ready();
  await sleep(1000);

  await exchange.addFaults({ kind: 'hang', mode: 'hold', forMs: 6000 });
  await sleep(9000);
  await daemon.ready();
  expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
  expect([daemon.logged('overdue'), daemon.logged('lapsed')]).toEqual([[], []]);
  expect(await daemon.metric('killswitch_lapses_total')).toBe(0);

  const beganMs = await exchange.nowMs();
  const hangMs = 30_000;
  await exchange.addFaults({ kind: 'hang', mode: 'drop', forMs: hangMs });
  await sleep(hangMs - 1000);
  expect((await daemon.get('/readyz')).status).toBe(503);
  expect((await daemon.get('/livez')).status).toBe(200);
  const rearmed = await eventually('every market armed again', 10_000, async () => {
    const events = await exchange.events();
    const first = MARKETS.map((market) =>
      renewalsOf(events, market).find((atMs) => atMs > beganMs + hangMs - 100),
    );
    return first.includes(undefined) ? null : first;
  });
  for (const atMs of rearmed) expect((atMs ?? 0) - (beganMs + hangMs)).toBeLessThanOrEqual(2000);
  await daemon.ready();

  const events = await exchange.events();
  expect(ofKind(events, 'timer-fired')).toHaveLength(MARKETS.length);
  expect(ofKind(events, 'order-cancelled')).toHaveLength(MARKETS.length);
  expect(
    daemon
      .logged('lapsed')
      .map(({ market }) => market)
      .sort(),
  ).toEqual(MARKETS);
  expect(
    daemon
      .logged('overdue')
      .map(({ market }) => market)
      .sort(),
  ).toEqual(MARKETS);
  for (const market of MARKETS) expect(await daemon.metric('killswitch_lapses_total', { market })).toBe(1);
}, 120_000);
