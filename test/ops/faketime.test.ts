import { globSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stageFor } from '../process/harness.ts';
import { sleep } from '../process/program.ts';
import { ofKind, renewalsOf } from '../process/simulated-exchange.ts';

const HOUR_SECONDS = 3600;

/** Debian's package `faketime` puts it into the library folder of the machine's architecture. */
function libfaketime(): string {
  const [path] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1');
  if (path === undefined) throw new Error('libfaketime is missing: install the Debian package faketime');
  return path;
}

test('the wall clock is set by hours under the running daemon, and no renewal is late', async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchangeProcess();
  await exchange.placeOrders({ market: 'AAA_USDT', type: 'spot' });
  const clockFile = join(stage.directory, 'clock');
  const setBy = (seconds: number) => writeFileSync(clockFile, `${seconds < 0 ? '' : '+'}${seconds}\n`);
  setBy(0);
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: [{ market: 'AAA_USDT', timeoutSeconds: 10 }],
    env: {
      LD_PRELOAD: libfaketime(),
      FAKETIME_TIMESTAMP_FILE: clockFile,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  });
  await daemon.ready();
  for (const seconds of [HOUR_SECONDS, -HOUR_SECONDS, 0, 300, -300]) {
    setBy(seconds);
    await sleep(4000);
  }
  await daemon.ready();

  const steps = daemon.logged('clock-step');
  expect(steps.length).toBeGreaterThanOrEqual(5);
  const moments = renewalsOf(await exchange.events(), 'AAA_USDT');
  const gaps = moments.slice(1).map((atMs, index) => atMs - (moments[index] ?? 0));
  expect(moments.length).toBeGreaterThan(15);
  // The cadence at T = 10 is 1 s; a timer would have lapsed after 10.
  expect(Math.max(...gaps)).toBeLessThan(3000);
  expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
  expect([daemon.logged('lapsed'), daemon.logged('overdue')]).toEqual([[], []]);

  daemon.signal('SIGTERM');
  expect((await daemon.exit()).code).toBe(0);
  expect(ofKind(await exchange.events(), 'timer-deleted')).toHaveLength(1);
});
