import { describe, expect, test } from 'vitest';
import { send, signed } from '../simulator/raw-client.ts';
import { stageFor } from './harness.ts';
import { eventually } from './program.ts';
import { DEMO, ofKind } from './simulated-exchange.ts';

const HOUR_MS = 3_600_000;

/** What a daemon with the same key did while the clock of its host was ahead. */
async function acceptNonce(url: string, aheadMs: number): Promise<void> {
  const nonce = String(Date.now() + aheadMs);
  const { status } = await send(url, signed({ market: 'ZZZ_USDT', timeout: null, types: null, nonce }));
  expect(status).toBe(200);
}

describe.concurrent('a key whose last nonce comes from a clock that was far ahead', {
  timeout: 60_000,
}, () => {
  test('arms its markets, 30 days ahead, and so does a restart', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    await acceptNonce(exchange.url, 30 * 24 * HOUR_MS);
    for (let life = 0; life < 2; life += 1) {
      const daemon = await stage.daemon({ exchange: exchange.url, markets: ['AAA_USDT', 'BBB_USDT'] });
      await daemon.ready();
      expect(daemon.logged('attempt-failed').length).toBeLessThan(20);
      daemon.signal('SIGTERM');
      expect((await daemon.exit()).code).toBe(0);
      const env = { KILLSWITCHD_API_KEY: DEMO.key, KILLSWITCHD_API_SECRET: DEMO.secret };
      const check = await stage.run(['check-config', '--live', '--config', daemon.configFile], { env });
      expect([(await check.exit()).code, check.stderr()]).toEqual([0, '']);
    }
    expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
  });

  test('says what helps where it is further ahead than it looks', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    await acceptNonce(exchange.url, 365 * 24 * HOUR_MS);
    const daemon = await stage.daemon({ exchange: exchange.url, markets: ['AAA_USDT'] });
    const advice = await eventually('the advice', 15_000, async () => {
      const { body } = await daemon.get('/readyz');
      return /^.*make a new API key.*$/m.exec(body)?.[0] ?? null;
    });
    expect(advice).toMatch(/^\[-\]timer\/AAA_USDT failed: .*more than 64 days ahead/);
  });
});
