import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { BOT, botSays, PROCESS } from './exec-play.ts';
import { type Scope, stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { longestGapMs, ofKind } from './simulated-exchange.ts';

/** Enough of them that their log fills a pipe within a few seconds. */
const MARKETS = Array.from({ length: 60 }, (_, index) => `M${index}_USDT`);
const PERIOD_MS = 1000;

/** Of every POSIX system; Node cannot make one. */
const MAKE_PIPE = 'mkfifo';
const PIPE = 'unread';

/** A pipe that is open at both ends and that nobody reads, as a descriptor. */
function openUnread(directory: string, scope: Scope): number {
  const pipe = join(directory, PIPE);
  execFileSync(MAKE_PIPE, [pipe]);
  const descriptor = openSync(pipe, 'r+');
  scope.onTestFinished(() => closeSync(descriptor));
  return descriptor;
}

/** What POSIX promises to write as a whole or not at all. */
const PIPE_BUF = Buffer.alloc(4096);

/** Whether nothing more goes into the pipe of `openUnread`. */
function isFull(directory: string): boolean {
  const descriptor = openSync(join(directory, PIPE), constants.O_WRONLY | constants.O_NONBLOCK);
  try {
    writeSync(descriptor, PIPE_BUF);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EAGAIN';
  } finally {
    closeSync(descriptor);
  }
}

describe('renewals go on, and a stop is clean, when the reader of the log', {
  timeout: 60_000,
}, () => {
  test.for(['dies', 'never reads', 'never reads what exec writes to the journal'])(
    '%s',
    async (reader, context) => {
      const stage = stageFor(context);
      const exchange = await stage.exchange();
      const unread = reader === 'never reads' ? openUnread(stage.directory, context) : null;
      const ofExec = { bot: BOT, stderr: 'unread' } as const;
      const daemon = await stage.daemon({
        exchange: exchange.url,
        markets: MARKETS.map((market) => ({ market, timeoutSeconds: 5 })),
        // One after the other, sixty markets would ask more of the round trip than of the log.
        // The stop comes when no request of a life before can arrive any more: else it could not be sure of its deletes.
        config: {
          log: { level: 'debug' },
          liveness: reader.includes('exec') ? PROCESS : { mode: 'none' },
          exchange: { nonce: 'window', requestLifetimeSeconds: 2 },
        },
        ...(reader.includes('exec') ? ofExec : {}),
        ...(unread === null ? {} : { stdout: unread }),
      });
      await eventually('every market armed', 20_000, async () =>
        ofKind(await exchange.events(), 'timer-armed').length < MARKETS.length ? null : true,
      );
      if (reader === 'dies') daemon.closeStdout();
      if (reader.includes('exec')) await botSays(daemon, 'started');
      const fromMs = await exchange.nowMs();
      await sleep(5000);
      const toMs = await exchange.nowMs();
      const events = await exchange.events();
      const gapsMs = MARKETS.map((market) => longestGapMs(events, market, fromMs, toMs));
      expect(gapsMs.filter((gapMs) => gapMs > PERIOD_MS + 1000)).toEqual([]);
      daemon.signal('SIGTERM');
      expect(await daemon.exit()).toMatchObject({ code: 0 });
      expect(ofKind(await exchange.events(), 'timer-deleted')).toHaveLength(MARKETS.length);
      if (unread !== null) expect(isFull(stage.directory)).toBe(true);
    },
  );
});
