import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { type ExchangeProcess, longestGapMs, ofKind } from './simulated-exchange.ts';

const PERIOD_MS = 1000;
const WATCH_MS = 5000;

/** Enough of them that their log fills the 64 KiB of a pipe within a few seconds. */
const MARKETS = Array.from({ length: 40 }, (_, index) => `M${index}_USDT`);

async function latestRenewals(exchange: ExchangeProcess): Promise<number[]> {
  await eventually('every market armed', 20_000, async () =>
    ofKind(await exchange.events(), 'timer-armed').length < MARKETS.length ? null : true,
  );
  const fromMs = await exchange.nowMs();
  await sleep(WATCH_MS);
  const events = await exchange.events();
  const toMs = await exchange.nowMs();
  return MARKETS.map((market) => longestGapMs(events, market, fromMs, toMs)).filter(
    (gapMs) => gapMs > PERIOD_MS + 1000,
  );
}

describe('renewals go on, and so does a clean stop', () => {
  const markets = MARKETS.map((market) => ({ market, timeoutSeconds: 5 }));
  const config = { log: { level: 'debug' } };

  test('when the reader of the log dies', { timeout: 60_000 }, async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const daemon = await stage.daemon({ exchange: exchange.url, markets, config });
    await daemon.ready();
    daemon.closeStdout();
    expect(await latestRenewals(exchange)).toEqual([]);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    expect(ofKind(await exchange.events(), 'timer-deleted')).toHaveLength(MARKETS.length);
  });

  test('when the reader of the log never reads', { timeout: 60_000 }, async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const pipe = join(stage.directory, 'unread');
    execFileSync('mkfifo', [pipe]);
    const stdout = openSync(pipe, 'r+');
    context.onTestFinished(() => closeSync(stdout));
    const daemon = await stage.daemon({ exchange: exchange.url, markets, config, stdout });
    expect(await latestRenewals(exchange)).toEqual([]);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    expect(ofKind(await exchange.events(), 'timer-deleted')).toHaveLength(MARKETS.length);
  });
});
