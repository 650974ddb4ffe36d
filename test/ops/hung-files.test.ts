import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stageFor } from '../process/harness.ts';
import { eventually, sleep } from '../process/program.ts';
import { linesOf } from '../process/reloading.ts';
import { longestGapMs } from '../process/simulated-exchange.ts';

test('a configuration on a file system that hangs holds up no renewal and no stop', async (context) => {
  const stage = stageFor(context);
  const folder = join(stage.directory, 'hung');
  mkdirSync(folder);
  const server = spawn('python3', [join(import.meta.dirname, 'hung-mount.py'), folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  context.onTestFinished(() => {
    // What waits for the file system is freed with it.
    server.kill('SIGKILL');
    execFileSync('umount', ['-l', folder]);
  });
  await once(server.stdout, 'data');
  const exchange = await stage.exchange();
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: [{ market: 'AAA_USDT', timeoutSeconds: 5 }],
    config: { reload: { pollSeconds: 1 } },
  });
  await daemon.ready();
  rmSync(daemon.configFile);
  symlinkSync(join(folder, 'killswitchd.json'), daemon.configFile);
  const fromMs = await exchange.nowMs();
  daemon.signal('SIGHUP');
  await eventually('the refusal of the reload', 20_000, () =>
    linesOf(daemon, 'reload-rejected') > 0 ? true : null,
  );
  await sleep(3000);
  const toMs = await exchange.nowMs();
  expect(longestGapMs(await exchange.events(), 'AAA_USDT', fromMs, toMs)).toBeLessThan(3000);
  daemon.signal('SIGTERM');
  expect((await daemon.exit(10_000)).code).toBe(0);
});
