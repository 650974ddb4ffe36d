import { describe, expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { sleep } from './program.ts';
import { longestGapMs, ofKind } from './simulated-exchange.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT', 'DDD_USDT', 'EEE_USDT', 'FFF_USDT'];
const HOUR_MS = 3_600_000;
const PERIOD_MS = 1000;
const DELAY_MS = 500;
/** Long enough that the requests that were let through before a step are used up, and new ones must be asked for. */
const WATCH_MS = 5000;

describe.concurrent('the wall clock of the host steps by an hour', { timeout: 60_000 }, () => {
  // A hundredth of the documented limit: bottleneck lets 25 requests through at a time, less than go out in 5 s.
  test.for(['increasing', 'window'])(
    'back and forward, and no renewal is late (nonces %s)',
    async (nonce, context) => {
      const stage = stageFor(context);
      const exchange = await stage.exchange();
      const daemon = await stage.daemon({
        exchange: exchange.url,
        markets: MARKETS.map((market) => ({ market, timeoutSeconds: 5 })),
        config: { exchange: { baseUrls: [exchange.url], nonce, budgetShare: 0.01 } },
        canSabotage: true,
      });
      await daemon.ready();
      await sleep(2000);
      const fromMs = await exchange.nowMs();
      for (const byMs of [-HOUR_MS, HOUR_MS, HOUR_MS]) {
        daemon.sabotage({ kind: 'step-clock', byMs });
        await sleep(WATCH_MS);
      }
      const events = await exchange.events();
      const toMs = await exchange.nowMs();
      expect(daemon.logged('clock-step')).toHaveLength(3);
      const gapsMs = MARKETS.map((market) => longestGapMs(events, market, fromMs, toMs));
      expect(gapsMs.filter((gapMs) => gapMs > PERIOD_MS + DELAY_MS)).toEqual([]);
      expect([...ofKind(events, 'request-refused'), ...ofKind(events, 'timer-fired')]).toEqual([]);
      expect(await daemon.metric('killswitch_lapses_total')).toBe(0);
      await daemon.ready();
    },
  );
});
