import { describe, expect, test } from 'vitest';
import type { Fault } from '../../src/simulator/faults.ts';
import { stageFor } from './harness.ts';
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
      expect(
        ofKind(events, 'timer-deleted')
          .map(({ market }) => market)
          .sort(),
      ).toEqual(policy === 'delete' ? markets : []);
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

  test('during a slow attempt waits for it, or outlasts it: nothing is renewed after the delete', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const markets = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];
    const stopDuring = async (...faults: readonly Fault[]) => {
      const daemon = await stage.daemon({
        exchange: exchange.url,
        markets: markets.map((market) => ({ market, timeoutSeconds: 10 })),
        config: { shutdown: { budgetSeconds: 5 } },
      });
      await daemon.ready();
      const before = (await exchange.events()).length;
      await exchange.addFaults(...faults);
      await exchange.event('fault-applied', 5000, ({ seq }) => seq > before);
      daemon.signal('SIGTERM');
      expect(await daemon.exit()).toMatchObject({ code: 0 });
      return before;
    };
    const match = { operation: 'kill-switch' };
    const judge = async (before: number) => {
      const events = (await exchange.events()).filter(({ seq }) => seq > before);
      expect(ofKind(events, 'timer-deleted')).toHaveLength(markets.length);
      expect(markets.filter((market) => renewedAfterDelete(events, market))).toEqual([]);
    };

    const slow = await stopDuring({ kind: 'latency', ms: 1000, match });
    await sleep(2000);
    await judge(slow);
    await exchange.clearFaults();
    const stuck = await stopDuring({ kind: 'latency', ms: 7000, count: 1, match });
    await exchange.event('request-refused', 10_000, ({ seq, status }) => seq > stuck && status === 429);
    await judge(stuck);
  });
});
