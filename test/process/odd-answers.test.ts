import { expect, test } from 'vitest';
import { send, signed } from '../simulator/raw-client.ts';
import { guard, stageFor } from './harness.ts';
import { eventually } from './program.ts';

const marketsOf = (count: number) => Array.from({ length: count }, (_, index) => `M${index}_USDT`);

test.concurrent('answers out of a cache keep no timer in sight that has fired, and are told from renewals once it is gone', {
  timeout: 60_000,
}, async (context) => {
  const markets = marketsOf(2);
  const { exchange, daemon } = await guard(context, { markets, timeoutSeconds: 5 });
  await exchange.addFaults({ kind: 'cache', match: { operation: 'kill-switch' } });
  for (const market of markets)
    await exchange.event('timer-fired', 20_000, (event) => event.market === market);
  await eventually('both overdue', 5000, () => daemon.logged('overdue')[1]);
  expect((await daemon.get('/readyz')).status).toBe(503);
  expect((await daemon.get('/livez')).status).toBe(200);
  expect(daemon.logged('attempt-failed')[0]?.msg).toContain('the exchange repeats an earlier answer');
  await exchange.clearFaults();
  await daemon.ready();
  // The page may be quicker than the log.
  await eventually('two lapses in the log', 5000, () => daemon.logged('lapsed')[1]);
  expect(daemon.marketsLogged('lapsed')).toEqual(markets);
});

test('the bound of an outage and the budget of a stop are said for the answers that are measured, and again when these change', {
  timeout: 90_000,
}, async (context) => {
  const { exchange, daemon } = await guard(context, {
    markets: marketsOf(60),
    timeoutSeconds: 20,
    faults: [{ kind: 'latency', ms: 10 }],
    config: { shutdown: { policy: 'delete', budgetSeconds: 5 } },
  });
  const stopWarnings = () =>
    daemon.logged('config-warning').filter(({ msg }) => msg.includes('5 s leave timers armed'));
  // Sixty markets one after the other, at the 100 ms that are assumed.
  expect(stopWarnings()).toHaveLength(1);
  /** The bound that the log promised last, in seconds, once the status has it as well. */
  const inForce = async () => {
    const said = /^From now on an outage of the exchange shorter than ([\d.]+) s/;
    const bounds = daemon.logged('promise').flatMap(({ msg }) => said.exec(msg)?.[1] ?? []);
    const { markets } = JSON.parse((await daemon.get('/api/v1/status')).body) as {
      readonly markets: readonly { readonly survivesSeconds: number }[];
    };
    const least = Math.min(...markets.map(({ survivesSeconds }) => survivesSeconds));
    return Math.abs(Number(bounds.at(-1)) - least) < 0.01 * least ? least : null;
  };
  const quick = await eventually('the bound of quick answers', 20_000, inForce);
  await exchange.clearFaults();
  await exchange.addFaults({ kind: 'latency', ms: 90 });
  const slow = await eventually('the bound of slow answers', 40_000, async () => {
    const bound = await inForce();
    return bound !== null && bound < quick - 1 ? bound : null;
  });
  expect(slow).toBeGreaterThan(20 * 0.5);
  expect(stopWarnings().length).toBeGreaterThan(1);
});

// That a key whose last nonce is 30 days ahead arms its markets: `test/exchange` and `test/config/check-config.test.ts`.
test.concurrent('where the last nonce of the key comes from a clock that was a year ahead, what helps is said', {
  timeout: 60_000,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  const nonce = String(Date.now() + 365 * 24 * 3_600_000);
  const ahead = signed({ market: 'ZZZ_USDT', timeout: null, types: null, nonce });
  expect((await send(exchange.url, ahead)).status).toBe(200);
  const daemon = await stage.daemon({ exchange: exchange.url, markets: ['AAA_USDT'] });
  const advice = await eventually('the advice', 15_000, async () => {
    const { body } = await daemon.get('/readyz');
    return /^.*make a new API key.*$/m.exec(body)?.[0];
  });
  expect(advice).toMatch(/^\[-\]timer\/AAA_USDT failed: .*more than 64 days ahead/);
});
