import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, type TestContext, test } from 'vitest';
import { stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { ofKind } from './simulated-exchange.ts';

const WRONG_SECRET = 'not-the-secret';

/** An address for one exchange after the other: nobody gets its port by chance while it is in use elsewhere. */
async function keptAddress({ onTestFinished }: TestContext): Promise<string> {
  const holder = createServer();
  await new Promise<void>((resolve) => {
    holder.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void holder.close());
  return `127.0.0.2:${(holder.address() as AddressInfo).port}`;
}

describe.concurrent('a key that the exchange refuses', { timeout: 60_000 }, () => {
  test('leaves the daemon up and not ready, and is shown once a minute at most, with either kind of nonce', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const start = async (nonce: 'increasing' | 'window') => {
      const markets = ['AAA', 'BBB', 'CCC'].map((base) => `${base}_${nonce.toUpperCase()}`);
      const config = { exchange: { baseUrls: [exchange.url], nonce } };
      const daemon = await stage.daemon({ exchange: exchange.url, markets, config, secret: WRONG_SECRET });
      return { daemon, markets };
    };
    const started = [await start('increasing'), await start('window')];
    for (const { daemon } of started) {
      await eventually('a refused key', 15_000, () => daemon.logged('unauthorised')[0] ?? null);
    }
    await sleep(8000);
    const events = await exchange.events();
    const shownTimes = started.map(({ markets }) =>
      markets.reduce((times, market) => times + ofKind(events, 'request-refused', market).length, 0),
    );
    for (const { daemon } of started) {
      expect((await daemon.get('/readyz')).status).toBe(503);
      expect((await daemon.get('/livez')).status).toBe(200);
      expect(await daemon.metric('killswitch_authorised')).toBe(0);
      expect(daemon.logged('unauthorised')).toMatchObject([{ level: 'error' }]);
      daemon.signal('SIGTERM');
      expect(await daemon.exit()).toMatchObject({ code: 0 });
    }
    expect(shownTimes).toEqual([1, 1]);
  });

  test('because it was changed is read again from its file, and everything is armed without a restart', async (context) => {
    const stage = stageFor(context);
    const listen = await keptAddress(context);
    const exchange = await stage.exchange({ listen });
    const markets = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];
    const daemon = await stage.daemon({ exchange: exchange.url, markets });
    await daemon.ready();
    writeFileSync(daemon.secretFile, 'the-next-secret\n');
    await exchange.end();
    const changed = await stage.exchange({ listen, secret: 'the-next-secret' });
    await eventually('every market armed again', 20_000, async () =>
      ofKind(await changed.events(), 'timer-armed').length < markets.length ? null : true,
    );
    expect(daemon.logged('secrets-changed')).toHaveLength(1);
    expect(daemon.stdout()).not.toContain('the-next-secret');
  });
});
