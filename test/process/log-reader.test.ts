import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { type ExchangeProcess, longestGapMs, ofKind } from './simulated-exchange.ts';

const PERIOD_MS = 1000;
const WATCH_MS = 5000;

/** Of every POSIX system; Node cannot make one. */
const MAKE_PIPE = 'mkfifo';
const PIPE_BYTES = 64 * 1024;

/** Enough of them that their log fills the 64 KiB of a pipe within a few seconds. */
const MARKETS = Array.from({ length: 60 }, (_, index) => `M${index}_USDT`);

/** The gaps of more than a second over the period, of all markets. */
async function lateRenewals(exchange: ExchangeProcess): Promise<number[]> {
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
    expect(await lateRenewals(exchange)).toEqual([]);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    expect(ofKind(await exchange.events(), 'timer-deleted')).toHaveLength(MARKETS.length);
  });

  test('when the reader of the log never reads', { timeout: 60_000 }, async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const pipe = join(stage.directory, 'unread');
    execFileSync(MAKE_PIPE, [pipe]);
    const stdout = openSync(pipe, 'r+');
    context.onTestFinished(() => closeSync(stdout));
    const daemon = await stage.daemon({ exchange: exchange.url, markets, config, stdout });
    expect(await lateRenewals(exchange)).toEqual([]);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    expect(ofKind(await exchange.events(), 'timer-deleted')).toHaveLength(MARKETS.length);
    // It was full: the daemon could not write any more.
    expect(readSync(stdout, Buffer.alloc(PIPE_BYTES))).toBeGreaterThan(PIPE_BYTES - 4096);
  });
});
