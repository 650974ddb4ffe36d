import { describe, expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { ofKind, renewalsOf } from './simulated-exchange.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];

describe.concurrent('a daemon that stands still', { timeout: 60_000 }, () => {
  async function start(context: Parameters<typeof stageFor>[0], timeoutSeconds: number) {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: MARKETS.map((market) => ({ market, timeoutSeconds })),
      canSabotage: true,
    });
    await daemon.ready();
    await sleep(1500);
    const firstRenewalsAfter = (momentMs: number) =>
      eventually('every market renewed', 5000, async () => {
        const events = await exchange.events();
        const first = MARKETS.map(
          (market) => renewalsOf(events, market).find((atMs) => atMs > momentMs) ?? 0,
        );
        return first.includes(0) ? null : first;
      });
    return { exchange, daemon, firstRenewalsAfter };
  }

  test('for 3 s at T = 10 lapses nothing and renews everything as soon as it goes on', async (context) => {
    const { exchange, daemon, firstRenewalsAfter } = await start(context, 10);
    daemon.signal('SIGSTOP');
    await sleep(3000);
    const continuedMs = await exchange.nowMs();
    daemon.signal('SIGCONT');
    for (const atMs of await firstRenewalsAfter(continuedMs)) {
      expect(atMs - continuedMs).toBeLessThan(1000);
    }
    await eventually('a line about the stall', 2000, () => daemon.logged('stall')[0] ?? null);
    expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
    expect(daemon.logged('lapsed')).toEqual([]);
    await daemon.ready();
  });

  test('for longer than T reports each lapse once, as certain, and arms again at once', async (context) => {
    const { exchange, daemon, firstRenewalsAfter } = await start(context, 5);
    // Between two renewals: with an answer outstanding nobody could be certain.
    await exchange.nextEvent();
    await sleep(100);
    daemon.signal('SIGSTOP');
    await sleep(8000);
    const continuedMs = await exchange.nowMs();
    daemon.signal('SIGCONT');
    for (const atMs of await firstRenewalsAfter(continuedMs)) {
      expect(atMs - continuedMs).toBeLessThan(2000);
    }
    await daemon.ready();
    expect(ofKind(await exchange.events(), 'timer-fired')).toHaveLength(MARKETS.length);
    expect(daemon.marketsLogged('lapsed')).toEqual(MARKETS);
    for (const market of MARKETS) {
      expect(await daemon.metric('killswitch_lapses_total', { market, certainty: 'certain' })).toBe(1);
      expect(await daemon.metric('killswitch_lapses_total', { market })).toBe(1);
    }
  });

  test('because its event loop is blocked for 2 s at T = 6 lapses nothing', async (context) => {
    const { exchange, daemon, firstRenewalsAfter } = await start(context, 6);
    daemon.sabotage({ kind: 'block', ms: 2000 });
    await eventually('a line about the stall', 8000, () => daemon.logged('stall')[0] ?? null);
    await firstRenewalsAfter(await exchange.nowMs());
    expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
    expect(daemon.logged('lapsed')).toEqual([]);
    await daemon.ready();
  });
});
