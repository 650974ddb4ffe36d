import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { DEMO, ofKind } from './simulated-exchange.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];

describe.concurrent('a key that the exchange refuses', { timeout: 60_000 }, () => {
  test('is told from a good one, and from an exchange that is not there, by check-config --live', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const check = async (baseUrl: string, secret: string) => {
      const file = join(stage.directory, 'checked.json');
      writeFileSync(
        file,
        JSON.stringify({ exchange: { baseUrls: [baseUrl] }, markets: MARKETS, liveness: { mode: 'none' } }),
      );
      const env = { KILLSWITCHD_API_KEY: DEMO.key, KILLSWITCHD_API_SECRET: secret };
      const { code } = await (await stage.run(['check-config', '--live', '--config', file], { env })).exit();
      return code;
    };
    expect(await check(exchange.url, 'not-the-secret')).toBe(77);
    expect(await check(exchange.url, DEMO.secret)).toBe(0);
    const events = await exchange.events();
    expect([...ofKind(events, 'timer-armed'), ...ofKind(events, 'timer-deleted')]).toEqual([]);
    exchange.program.signal('SIGKILL');
    expect(await check(exchange.url, DEMO.secret)).toBe(69);
  });

  test.for(['increasing', 'window'])(
    'leaves the daemon up and not ready, and is shown once a minute at most (nonces %s)',
    async (nonce, context) => {
      const stage = stageFor(context);
      const exchange = await stage.exchange();
      const daemon = await stage.daemon({
        exchange: exchange.url,
        markets: MARKETS,
        config: { exchange: { baseUrls: [exchange.url], nonce } },
        secret: 'not-the-secret',
      });
      await exchange.event('request-refused', 15_000);
      await sleep(9000);
      expect(ofKind(await exchange.events(), 'request-refused')).toMatchObject([{ status: 401 }]);
      expect((await daemon.get('/readyz')).status).toBe(503);
      expect((await daemon.get('/livez')).status).toBe(200);
      expect(await daemon.metric('killswitch_authorised')).toBe(0);
      expect(daemon.logged('unauthorised')).toMatchObject([{ level: 'error' }]);
      daemon.signal('SIGTERM');
      expect(await daemon.exit()).toMatchObject({ code: 0 });
    },
  );

  test('because it was changed is read again from its file, and everything is armed without a restart', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const daemon = await stage.daemon({ exchange: exchange.url, markets: MARKETS });
    await daemon.ready();
    writeFileSync(daemon.secretFile, 'the-next-secret\n');
    exchange.program.signal('SIGKILL');
    await exchange.program.exit();
    const changed = await stage.exchange(['--listen', new URL(exchange.url).host], {
      env: { KILLSWITCHD_API_KEY: DEMO.key, KILLSWITCHD_API_SECRET: 'the-next-secret' },
    });
    const events = await eventually('every market armed again', 15_000, async () => {
      const found = await changed.events();
      return ofKind(found, 'timer-armed').length < MARKETS.length ? null : found;
    });
    expect(ofKind(events, 'request-refused').length).toBeLessThanOrEqual(1);
    expect(daemon.logged('secrets-changed')).toHaveLength(1);
    expect(daemon.stdout()).not.toContain('the-next-secret');
  });
});
