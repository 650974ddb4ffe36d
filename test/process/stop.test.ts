import { describe, expect, test } from 'vitest';
import { guard, stageFor } from './harness.ts';
import { sleep } from './program.ts';
import { ofKind, renewalsOf, renewedAfterDelete } from './simulated-exchange.ts';

describe.concurrent('SIGTERM', { timeout: 60_000 }, () => {
  test('deletes exactly the timers that the daemon armed; keep leaves them alone, handoff renews them once more', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const markets = ['AAA_USDT', 'BBB_USDT'];
    await exchange.placeOrders(...markets.map((market) => ({ market, type: 'spot' as const })));
    await exchange.arm('OTHER_USDT', 600);
    for (const policy of ['keep', 'handoff', 'delete']) {
      const daemon = await stage.daemon({
        exchange: exchange.url,
        markets,
        config: { shutdown: { policy } },
      });
      await daemon.ready();
      const before = renewalsOf(await exchange.events(), 'AAA_USDT').length;
      daemon.signal('SIGTERM');
      expect(await daemon.exit()).toMatchObject({ code: 0, signal: null });
      expect(daemon.stderr()).toBe('');
      const events = await exchange.events();
      const deleted = ofKind(events, 'timer-deleted').map(({ market }) => market);
      expect(deleted.toSorted()).toEqual(policy === 'delete' ? markets : []);
      const lastOnes = renewalsOf(events, 'AAA_USDT').length - before;
      if (policy === 'keep') expect(lastOnes).toBe(0);
      if (policy === 'handoff') expect(lastOnes).toBe(1);
    }
    const events = await exchange.events();
    expect(events.filter((event) => 'market' in event && event.market === 'OTHER_USDT')).toMatchObject([
      { kind: 'timer-armed' },
    ]);
    expect(ofKind(events, 'order-cancelled')).toEqual([]);
    expect(markets.filter((market) => renewedAfterDelete(events, market))).toEqual([]);
  });

  test('while the exchange is silent ends within the budget with 75 and says by when each timer fires; a second one ends it at once', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const markets = ['AAA_USDT', 'BBB_USDT'];
    await exchange.placeOrders(...markets.map((market) => ({ market, type: 'spot' as const })));
    const silence = async (budgetSeconds: number) => {
      const daemon = await stage.daemon({
        exchange: exchange.url,
        markets: markets.map((market) => ({ market, timeoutSeconds: 5 })),
        config: { shutdown: { budgetSeconds } },
      });
      await daemon.ready();
      const armedBy = (await exchange.events()).length;
      await exchange.addFaults({ kind: 'hang', mode: 'drop' });
      await sleep(500);
      daemon.signal('SIGTERM');
      return { daemon, armedBy };
    };

    const { daemon: impatient } = await silence(60);
    await sleep(1500);
    expect(impatient.hasExited()).toBe(false);
    impatient.signal('SIGTERM');
    const secondMs = performance.now();
    expect(await impatient.exit()).toMatchObject({ code: 75 });
    expect(performance.now() - secondMs).toBeLessThan(2000);
    expect(impatient.stderr()).toContain('timers may still be armed');
    await exchange.clearFaults();

    const { daemon: patient, armedBy } = await silence(3);
    const askedMs = performance.now();
    expect(await patient.exit()).toMatchObject({ code: 75 });
    // The budget, half a second for a slow reader of the log, and what a busy machine adds.
    expect(performance.now() - askedMs).toBeLessThan(5500);
    const lines = patient.stderr().trim().split('\n');
    expect(lines).toHaveLength(2);
    for (const market of markets) {
      const line = lines.find((one) => one.startsWith(`${market}: `)) ?? '';
      const latestMs = Date.parse(/ at the latest at (\S+Z)$/.exec(line)?.[1] ?? '');
      const fired = await exchange.event(
        'timer-fired',
        10_000,
        (event) => event.market === market && event.seq > armedBy,
      );
      expect(fired.atMs).toBeLessThanOrEqual(latestMs);
    }
  });

  test('counts a second signal as one only a second after the first, or as another kind', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const silence = async () => {
      const daemon = await stage.daemon({ exchange: exchange.url, markets: ['AAA_USDT'] });
      await daemon.ready();
      await exchange.addFaults({ kind: 'hang', mode: 'hold', forMs: 3000 });
      daemon.signal('SIGTERM');
      await sleep(300);
      return daemon;
    };

    const doubled = await silence();
    doubled.signal('SIGTERM');
    expect(await doubled.exit()).toMatchObject({ code: 0 });
    expect(ofKind(await exchange.events(), 'timer-deleted')).toMatchObject([{ market: 'AAA_USDT' }]);

    const hurried = await silence();
    hurried.signal('SIGINT');
    expect(await hurried.exit()).toMatchObject({ code: 75 });
    expect(ofKind(await exchange.events(), 'timer-deleted')).toHaveLength(1);
  });

  test('during an attempt that outlasts its budget renews nothing after the delete', async (context) => {
    const markets = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];
    const { exchange, daemon } = await guard(context, {
      markets,
      config: { shutdown: { budgetSeconds: 5 } },
    });
    const match = { operation: 'kill-switch' };
    await exchange.addFaults({ kind: 'latency', ms: 7000, count: 1, match });
    await exchange.event('fault-applied', 5000);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    // The attempt that was given up is carried out only now.
    await exchange.event('request-refused', 10_000, ({ status }) => status === 429);
    const events = await exchange.events();
    expect(ofKind(events, 'timer-deleted')).toHaveLength(markets.length);
    expect(markets.filter((market) => renewedAfterDelete(events, market))).toEqual([]);
  });
});

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
