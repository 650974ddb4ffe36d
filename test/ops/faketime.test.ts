import { globSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stageFor } from '../process/harness.ts';
import { endBy, sleep } from '../process/program.ts';
import { longestGapDuring, ofKind } from '../process/simulated-exchange.ts';

/** Where Debian's package `faketime` puts it. */
const [LIBRARY] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1');

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
      LD_PRELOAD: LIBRARY ?? 'faketime is not installed',
      FAKETIME_TIMESTAMP_FILE: clockFile,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  });
  await daemon.ready();
  const gapMs = await longestGapDuring(exchange, ['AAA_USDT'], async () => {
    for (const seconds of [3600, -3600, 0, 300, -300]) {
      setBy(seconds);
      await sleep(4000);
    }
  });
  await daemon.ready();

  const steps = daemon.logged('clock-step');
  expect(steps.length).toBeGreaterThanOrEqual(5);
  // The cadence at T = 10 is 1 s; a timer would have lapsed after 10.
  expect(gapMs).toBeLessThan(3000);
  expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
  expect([daemon.logged('lapsed'), daemon.logged('overdue')]).toEqual([[], []]);

  expect(await endBy(daemon)).toBe(0);
  expect(ofKind(await exchange.events(), 'timer-deleted')).toHaveLength(1);
});
