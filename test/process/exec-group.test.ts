import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, type TestContext, test } from 'vitest';
import { BOT, botLines, botSays, play, timersDeleted } from './exec-play.ts';
import { stageFor } from './harness.ts';
import { eventually } from './program.ts';

const IN_SHELL = BOT.map((word) => `'${word}'`).join(' ');

/** Whether the process runs; one that has ended and waits to be asked for is none. */
function runs(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

const ends = (pid: number) =>
  eventually(`the end of process ${pid}`, 15_000, () => (runs(pid) ? null : true));

/** The bot of a test that fails must not be left behind. */
function killAfter(context: TestContext, pid: number): void {
  context.onTestFinished(() => {
    if (runs(pid)) execFileSync('kill', ['-9', `${pid}`]);
  });
}

describe.concurrent('exec with a shell before the bot', { timeout: 60_000 }, () => {
  test('warns, asks the bot itself to end, and deletes no timer', async (context) => {
    const { daemon, exchange } = await play(context, {
      bot: ['sh', '-c', `${IN_SHELL} & wait`],
      env: { BOT_OUTLIVES: '1' },
    });
    const { pid } = await botSays(daemon, 'started');
    killAfter(context, pid);
    const warned = await eventually(
      'its line',
      5000,
      () => daemon.logged('process-behind-wrapper')[0] ?? null,
    );
    expect(warned).toMatchObject({ level: 'warn' });
    daemon.signal('SIGTERM');
    await botSays(daemon, 'SIGTERM').catch(() => null);
    expect((await daemon.exit()).code).not.toBe(0);
    expect(botLines(daemon).map(({ bot }) => bot)).toEqual(['started', 'SIGTERM']);
    expect(runs(pid)).toBe(false);
    await exchange.event('order-cancelled', 10_000);
    expect(await timersDeleted(exchange)).toBe(0);
  });

  test('ends a bot that its shell has left behind, and takes that for no good end', async (context) => {
    const { daemon, exchange } = await play(context, {
      bot: ['sh', '-c', `${IN_SHELL} & sleep 2`],
      env: { BOT_OUTLIVES: '1' },
    });
    const { pid } = await botSays(daemon, 'started');
    killAfter(context, pid);
    expect(await daemon.exit()).toMatchObject({ code: 75 });
    expect(runs(pid)).toBe(false);
    expect(daemon.logged('process-left-behind')).toMatchObject([{ level: 'error' }]);
    await exchange.event('order-cancelled', 10_000);
    expect(await timersDeleted(exchange)).toBe(0);
  });

  test('kills what does not end, also behind a script', async (context) => {
    const script = join(stageFor(context).directory, 'start');
    writeFileSync(script, `#!/bin/sh\n${IN_SHELL}\necho ended >&2\n`, { mode: 0o755 });
    const { daemon } = await play(context, {
      bot: [script],
      env: { BOT_OUTLIVES: '1', BOT_STUBBORN: '1' },
      config: { shutdown: { budgetSeconds: 1 } },
    });
    const { pid } = await botSays(daemon, 'started');
    killAfter(context, pid);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 143 });
    await ends(pid);
  });

  test('kills all of it at a second signal', async (context) => {
    const { daemon } = await play(context, {
      bot: ['sh', '-c', `trap : TERM; ${IN_SHELL} & while :; do wait; done`],
      env: { BOT_OUTLIVES: '1', BOT_STUBBORN: '1' },
    });
    const { pid } = await botSays(daemon, 'started');
    killAfter(context, pid);
    daemon.signal('SIGTERM');
    await botSays(daemon, 'SIGTERM');
    daemon.signal('SIGINT');
    expect(await daemon.exit()).toMatchObject({ code: 137 });
    await ends(pid);
  });

  test('says nothing of a shell that makes way for the bot', async (context) => {
    const { daemon, exchange } = await play(context, { bot: ['sh', '-c', `exec ${IN_SHELL}`] });
    await botSays(daemon, 'started');
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    expect(daemon.logged('process-behind-wrapper')).toEqual([]);
    expect(await timersDeleted(exchange)).toBe(1);
  });
});
