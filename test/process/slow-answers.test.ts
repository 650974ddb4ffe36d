import { describe, expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { eventually, said, sleep } from './program.ts';
import { ofKind } from './simulated-exchange.ts';

const slow = (ms: number) =>
  ({ kind: 'latency', ms, when: 'after', match: { operation: 'kill-switch' } }) as const;

const marketsOf = (count: number, timeoutSeconds: number) =>
  Array.from({ length: count }, (_, index) => ({ market: `M${index}_USDT`, timeoutSeconds }));

describe.concurrent('an exchange that carries everything out and answers late', { timeout: 60_000 }, () => {
  test('after 1.7 s, from the start: no timer of 5 s fires', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    await exchange.addFaults(slow(1700));
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: marketsOf(20, 5),
      config: { exchange: { baseUrls: [exchange.url], nonce: 'window' } },
    });
    await daemon.ready(30_000);
    await sleep(10_000);
    expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
    expect(daemon.logged('lapsed')).toEqual([]);
  });

  test('after 3.5 s, from the start: 200 timers are armed by one request each, or little more', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    await exchange.addFaults(slow(3500));
    const markets = marketsOf(200, 60);
    const config = { exchange: { baseUrls: [exchange.url], nonce: 'window' } };
    await stage.daemon({ exchange: exchange.url, markets, config });
    const events = await eventually('all armed', 60_000, async () => {
      const known = await exchange.events();
      return ofKind(known, 'timer-armed').length === markets.length ? known : null;
    });
    expect(ofKind(events, 'timer-updated').length).toBeLessThan(100);
  });

  test('after 2 s, from the start: armed within three round trips, and a stop deletes', async (context) => {
    const ms = 2000;
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    await exchange.addFaults(slow(ms));
    const markets = marketsOf(2, 30);
    const config = { shutdown: { budgetSeconds: 15 } };
    const daemon = await stage.daemon({ exchange: exchange.url, markets, config });
    const first = await exchange.event('timer-armed', 20_000);
    const armed = await eventually(`both armed\n${said(daemon)}`, 4 * ms, () => {
      const lines = daemon.logged('armed');
      return lines.length === markets.length ? lines : null;
    });
    const lastMs = Math.max(...armed.map(({ time }) => Date.parse(time)));
    expect(lastMs - first.atMs).toBeLessThanOrEqual(3 * ms);
    daemon.signal('SIGTERM');
    expect(await daemon.exit(20_000), said(daemon)).toMatchObject({ code: 0 });
    const events = await exchange.events();
    const deleted = ofKind(events, 'timer-deleted').map(({ market }) => market);
    expect(new Set(deleted)).toEqual(new Set(markets.map(({ market }) => market)));
    expect(ofKind(events, 'timer-fired')).toEqual([]);
  });
});
