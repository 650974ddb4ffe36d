import { describe, expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { sleep } from './program.ts';
import { type Events, ofKind, renewalsOf, renewedAfterDelete } from './simulated-exchange.ts';

const kindsOf = (events: Events, market: string) =>
  events.filter((event) => 'market' in event && event.market === market).map(({ kind }) => kind);

describe.concurrent('SIGTERM', { timeout: 60_000 }, () => {
  test('deletes exactly the timers that the daemon armed, and exits 0', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    await exchange.placeOrders({ market: 'AAA_USDT', type: 'spot' }, { market: 'BBB_USDT', type: 'spot' });
    await exchange.arm('OTHER_USDT', 600);
    const daemon = await stage.daemon({ exchange: exchange.url, markets: ['AAA_USDT', 'BBB_USDT'] });
    await daemon.ready();
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0, signal: null });
    expect(daemon.stderr()).toBe('');
    const events = await exchange.events();
    expect(
      ofKind(events, 'timer-deleted')
        .map(({ market }) => market)
        .sort(),
    ).toEqual(['AAA_USDT', 'BBB_USDT']);
    expect(kindsOf(events, 'OTHER_USDT')).toEqual(['timer-armed']);
    expect(ofKind(events, 'order-cancelled')).toEqual([]);
    expect(['AAA_USDT', 'BBB_USDT'].filter((market) => renewedAfterDelete(events, market))).toEqual([]);
  });

  test('leaves the timers alone with policy keep, and renews them once more with policy handoff', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    for (const policy of ['keep', 'handoff']) {
      const daemon = await stage.daemon({
        exchange: exchange.url,
        markets: ['AAA_USDT'],
        config: { shutdown: { policy } },
      });
      await daemon.ready();
      const before = renewalsOf(await exchange.events(), 'AAA_USDT').length;
      daemon.signal('SIGTERM');
      expect(await daemon.exit()).toMatchObject({ code: 0 });
      const events = await exchange.events();
      expect(ofKind(events, 'timer-deleted')).toEqual([]);
      expect(renewalsOf(events, 'AAA_USDT').length - before).toBe(policy === 'keep' ? 0 : 1);
    }
  });

  test('while the exchange is silent ends within the budget with 75, and says by when each timer fires', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const markets = ['AAA_USDT', 'BBB_USDT'];
    await exchange.placeOrders(...markets.map((market) => ({ market, type: 'spot' as const })));
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: markets.map((market) => ({ market, timeoutSeconds: 5 })),
      config: { shutdown: { budgetSeconds: 3 } },
    });
    await daemon.ready();
    await exchange.addFaults({ kind: 'hang', mode: 'drop' });
    await sleep(500);
    const askedMs = performance.now();
    daemon.signal('SIGTERM');
    const { code } = await daemon.exit();
    expect(code).toBe(75);
    // The budget, half a second for a slow reader of the log, and what a busy machine adds.
    expect(performance.now() - askedMs).toBeLessThan(5000);
    const lines = daemon.stderr().trim().split('\n');
    expect(lines).toHaveLength(2);
    for (const market of markets) {
      const line = lines.find((one) => one.startsWith(`${market}: `)) ?? '';
      const latestMs = Date.parse(/ at the latest at (\S+Z)$/.exec(line)?.[1] ?? '');
      const fired = await exchange.event('timer-fired', 10_000, (event) => event.market === market);
      expect(fired.cancelledOrders).toBe(1);
      expect(fired.atMs).toBeLessThanOrEqual(latestMs);
    }
  });

  test('during a slow attempt waits for it, and no renewal is applied after the delete', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const markets = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: markets.map((market) => ({ market, timeoutSeconds: 10 })),
    });
    await daemon.ready();
    await exchange.addFaults({ kind: 'latency', ms: 1000, match: { operation: 'kill-switch' } });
    await exchange.event('fault-applied', 5000);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    await sleep(2500);
    const events = await exchange.events();
    expect(ofKind(events, 'timer-deleted')).toHaveLength(markets.length);
    expect(markets.filter((market) => renewedAfterDelete(events, market))).toEqual([]);
  });

  test('during an attempt that outlasts the budget: what arrives after the delete is refused as stale', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const markets = ['AAA_USDT', 'BBB_USDT'];
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: markets.map((market) => ({ market, timeoutSeconds: 10 })),
      config: { shutdown: { budgetSeconds: 4 } },
    });
    await daemon.ready();
    await exchange.addFaults({
      kind: 'latency',
      ms: 6000,
      count: 1,
      match: { operation: 'kill-switch', market: 'AAA_USDT' },
    });
    await exchange.event('fault-applied', 5000);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    await exchange.event('request-refused', 8000, ({ status }) => status === 429);
    const events = await exchange.events();
    expect(ofKind(events, 'timer-deleted')).toHaveLength(2);
    expect(markets.filter((market) => renewedAfterDelete(events, market))).toEqual([]);
  });

  test('twice exits at once with 75', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: ['AAA_USDT'],
      config: { shutdown: { budgetSeconds: 60 } },
    });
    await daemon.ready();
    await exchange.addFaults({ kind: 'hang', mode: 'drop' });
    daemon.signal('SIGTERM');
    await sleep(500);
    expect(daemon.hasExited()).toBe(false);
    daemon.signal('SIGTERM');
    expect(await daemon.exit(5000)).toMatchObject({ code: 75 });
    expect(daemon.stderr()).toContain('timers may still be armed');
  });
});
