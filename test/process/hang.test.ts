import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { writeFiles } from './daemon.ts';
import { BOT, botSays, PROCESS, runs } from './exec-play.ts';
import { beginGuard, guard, type Scope, stageFor } from './harness.ts';
import { endBy, eventually, MAIN, sleep } from './program.ts';
import { deletedIn, firstRenewalsAfter, longestGapDuring } from './simulated-exchange.ts';
import { onTerminal } from './terminal.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT'];

describe.concurrent('renewals go on, and a stop ends the process,', { timeout: 60_000 }, () => {
  test('when every thread hangs in the kernel', async (context) => {
    const guarding = { timeoutSeconds: 5, canSabotage: true, bot: BOT, config: { liveness: PROCESS } };
    const { stage, exchange, daemon } = await guard(context, guarding);
    await botSays(daemon, 'started');
    daemon.sabotage({ kind: 'hang-threads', pipe: join(stage.directory, 'pipe') });
    expect(await longestGapDuring(exchange, MARKETS, () => sleep(3500))).toBeLessThan(2500);
    daemon.signal('SIGTERM');
    expect(await daemon.exit(10_000)).toMatchObject({ code: 0 });
    expect(await deletedIn(exchange)).toEqual(MARKETS);
  });

  test('when the file system of the configuration hangs right after it has answered a reload', async (context) => {
    const { stage, exchange, daemon } = await guard(context, { timeoutSeconds: 5, canSabotage: true });
    daemon.sabotage({ kind: 'hang-waiting', folder: stage.directory });
    await sleep(200);
    const gapMs = await longestGapDuring(exchange, MARKETS, async () => {
      daemon.configure({ markets: MARKETS.map((market) => ({ market, timeoutSeconds: 6 })) });
      daemon.signal('SIGHUP');
      await eventually('the reload', 8000, () => daemon.logged('reload-applied')[0]);
    });
    expect(gapMs).toBeLessThan(2500);
  });

  test('when the terminal that it writes to is stopped', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const { configFile, env } = writeFiles(stage.directory, {
      exchange: exchange.url,
      markets: MARKETS.map((market) => ({ market, timeoutSeconds: 5 })),
      config: { log: { level: 'debug' }, shutdown: { budgetSeconds: 3 } },
    });
    const terminal = onTerminal(context, [process.execPath, MAIN, 'run', '--config', configFile], env);
    await eventually('the timers', 15_000, () => terminal.shown().includes('is armed'));
    const children = readFileSync(`/proc/${terminal.pid}/task/${terminal.pid}/children`, 'utf8').trim();
    expect(children).toMatch(/^\d+$/);
    terminal.type('\u0013');
    const gapMs = await longestGapDuring(exchange, MARKETS, async () => {
      await sleep(3000);
      const { length } = terminal.shown();
      await sleep(1500);
      expect(terminal.shown().length).toBe(length);
    });
    expect(gapMs).toBeLessThan(3000);
    // The exchange goes away: the last words are for standard error, which is the same terminal.
    await exchange.addFaults({ kind: 'hang', mode: 'drop' });
    process.kill(Number(children), 'SIGTERM');
    await eventually('the end of the daemon', 8000, () => !runs(Number(children)));
  });
});

/** A pipe that is open at both ends and that nobody reads, as a descriptor, and whether nothing more goes into it. */
function openUnread(directory: string, scope: Scope) {
  const pipe = join(directory, 'unread');
  execFileSync('mkfifo', [pipe]);
  const descriptor = openSync(pipe, 'r+');
  scope.onTestFinished(() => closeSync(descriptor));
  const isFull = () => {
    const writer = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      // POSIX promises to write as much as a whole or not at all.
      writeSync(writer, Buffer.alloc(4096));
      return false;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'EAGAIN';
    } finally {
      closeSync(writer);
    }
  };
  return { descriptor, isFull };
}

describe('renewals go on, and a stop is clean, when the reader of the log', { timeout: 60_000 }, () => {
  /** Enough of them that their log fills a pipe within a few seconds. */
  const markets = Array.from({ length: 60 }, (_, index) => `M${index}_USDT`);

  test.for(['dies', 'never reads', 'never reads what exec writes to the journal'])(
    '%s',
    async (reader, context) => {
      const isExec = reader.includes('exec');
      const unread = reader === 'never reads' ? openUnread(stageFor(context).directory, context) : null;
      const { exchange, daemon } = await beginGuard(context, {
        markets,
        timeoutSeconds: 5,
        // One after the other, sixty markets would ask more of the round trip than of the log.
        // The stop comes when no request of a life before can arrive any more: else it could not be sure of its deletes.
        config: {
          log: { level: 'debug' },
          liveness: isExec ? PROCESS : { mode: 'none' },
          exchange: { nonce: 'window', requestLifetimeSeconds: 2 },
        },
        ...(isExec ? { bot: BOT, stderr: 'unread' as const } : {}),
        ...(unread && { stdout: unread.descriptor }),
      });
      await firstRenewalsAfter(exchange, markets, 0);
      if (reader === 'dies') daemon.closeStdout();
      if (isExec) await botSays(daemon, 'started');
      expect(await longestGapDuring(exchange, markets, () => sleep(5000))).toBeLessThan(2000);
      expect(await endBy(daemon)).toBe(0);
      expect(await deletedIn(exchange)).toHaveLength(markets.length);
      if (unread !== null) expect(unread.isFull()).toBe(true);
    },
  );
});
