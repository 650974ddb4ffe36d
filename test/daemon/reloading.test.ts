import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createReloading } from '../../src/daemon/reloading.ts';
import { FILE, SECRETS } from '../config/fixture.ts';

const POLLED = `${FILE}reload: { pollSeconds: 1 }\n`;

/** Watches a file that was read as `read` and holds `found` by the time of the first look; what reloads came to. */
async function firstLooks(read: string, found: string): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'killswitchd-reloading-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'killswitchd.yaml');
  writeFileSync(file, read);
  const load = () => loadConfig({ env: SECRETS, flags: { config: file } });
  const loaded = load();
  if (loaded.kind === 'invalid') throw new Error(loaded.problems.join('\n'));
  writeFileSync(file, found);
  let { config } = loaded;
  const came: string[] = [];
  const second = Promise.withResolvers<void>();
  const clock = createSystemClock();
  let looks = 0;
  const reloading = createReloading({
    clock: {
      now: () => clock.now(),
      // Called after each look: the second look comes at once.
      after(_delayMs, run) {
        looks += 1;
        if (looks > 1) second.resolve();
        return looks > 1 ? () => {} : clock.after(0, run);
      },
    },
    operations: {
      reloadApplied: () => came.push('applied'),
      reloadUnchanged: () => came.push('unchanged'),
      reloadRejected: () => came.push('rejected'),
      controlListening() {},
      controlRefused() {},
      setLogLevel() {},
    },
    supervision: { reloading() {}, reloaded() {} },
    config: () => config,
    fileHash: loaded.fileHash,
    load,
    apply(next) {
      config = next;
      return Promise.resolve();
    },
    settled: () => Promise.resolve([]),
    hide: (text) => text,
  });
  const stop = reloading.watch();
  await second.promise;
  stop();
  return came;
}

test('a file that was replaced between its reading and the first look is read again, and once only', async () => {
  expect(await firstLooks(POLLED, POLLED.replace('BTC_USDT', 'XRP_USDT'))).toEqual(['applied']);
});

test('a file that is as it was read is not read again', async () => {
  expect(await firstLooks(POLLED, POLLED)).toEqual([]);
});
