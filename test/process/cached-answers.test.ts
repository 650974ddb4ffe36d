import { expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { ofKind } from './simulated-exchange.ts';

test('answers out of a cache keep no timer in sight that has fired, and are told from renewals once it is gone', {
  timeout: 60_000,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  const markets = ['FIVE_USDT', 'TEN_USDT'];
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: markets.map((market, index) => ({ market, timeoutSeconds: 5 * (index + 1) })),
  });
  await daemon.ready();
  await exchange.addFaults({ kind: 'cache', match: { operation: 'kill-switch' } });
  await eventually('both timers fired', 20_000, async () =>
    ofKind(await exchange.events(), 'timer-fired').length === 2 ? true : null,
  );
  await sleep(1000);
  for (let look = 0; look < 10; look += 1) {
    const { status, body } = await daemon.get('/readyz?verbose');
    expect(status, body).toBe(503);
    await sleep(500);
  }
  expect(daemon.marketsLogged('overdue')).toEqual(markets);
  expect(daemon.logged('attempt-failed')[0]?.msg).toContain('the exchange repeats an earlier answer');
  await exchange.clearFaults();
  await daemon.ready();
  expect(daemon.marketsLogged('lapsed')).toEqual(markets);
});
