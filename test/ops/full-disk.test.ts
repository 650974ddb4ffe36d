import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stageFor } from '../process/harness.ts';
import { endBy, eventually, sleep } from '../process/program.ts';
import { longestGapDuring } from '../process/simulated-exchange.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT'];

test('a log on a full disk comes back when there is room, whole, and errors go to standard error meanwhile', async (context) => {
  const stage = stageFor(context);
  const disk = join(stage.directory, 'disk');
  mkdirSync(disk);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', disk]);
  const log = join(disk, 'log');
  const descriptor = openSync(log, 'a');
  context.onTestFinished(() => {
    closeSync(descriptor);
    execFileSync('umount', ['-l', disk]);
  });
  const exchange = await stage.exchangeProcess();
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: MARKETS.map((market) => ({ market, timeoutSeconds: 5 })),
    config: { log: { level: 'debug' } },
    stdout: descriptor,
  });
  const lines = () => readFileSync(log, 'utf8').split('\n').slice(0, -1);
  await eventually('a renewal in the log', 15_000, () => lines().length > 20);

  const filler = join(disk, 'filler');
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(filler, Buffer.alloc(bavail * bsize));
  const gapMs = await longestGapDuring(exchange, MARKETS, async () => {
    await sleep(4000);
    const full = lines().length;
    await sleep(1500);
    expect(lines().length).toBe(full);
  });
  expect(gapMs).toBeLessThan(3000);
  await exchange.addFaults({ kind: 'hang', mode: 'drop' });
  await eventually('the outage on standard error', 10_000, () => daemon.stderr().includes('"outage-began"'));
  await exchange.clearFaults();

  rmSync(filler);
  await eventually('the end of the outage in the log', 10_000, () =>
    lines().some((line) => line.includes('"outage-ended"')),
  );
  expect(lines().every((line) => line.startsWith('{') && line.endsWith('}'))).toBe(true);
  expect(lines().some((line) => line.includes('"outage-began"'))).toBe(true);
  expect(await endBy(daemon)).toBe(0);
});
