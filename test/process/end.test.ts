import { chmodSync, copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { begin, timersDeleted } from './exec-play.ts';
import { guard, type Scope, stageFor } from './harness.ts';
import { type Program, sleep } from './program.ts';

/** Sends the signal every few milliseconds until the process has ended. */
async function storm(program: Program, signal: NodeJS.Signals): Promise<void> {
  while (!program.hasExited()) {
    program.signal(signal);
    await sleep(3);
  }
}

/** A Node of the test's own, and the words before a command that have it run by that one. */
function ownNode(scope: Scope) {
  const node = join(stageFor(scope).directory, 'node');
  copyFileSync(process.execPath, node);
  return { node, prefix: ['sh', '-c', 'shift; exec "$0" "$@"', node] };
}

/** A daemon, all threads of which wait in the kernel. */
async function hung(scope: Scope, prefix: readonly string[] = []) {
  const played = await guard(scope, { markets: ['AAA_USDT'], canSabotage: true, prefix });
  played.daemon.sabotage({ kind: 'hang-threads', pipe: join(played.stage.directory, 'pipe') });
  await sleep(500);
  return played;
}

describe.concurrent('the exit code of a stop is', { timeout: 60_000 }, () => {
  test('0 under a storm of the same signal until the end', async (context) => {
    const { daemon } = await guard(context, { markets: ['AAA_USDT'] });
    await storm(daemon, 'SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0, signal: null });
  });

  test('75 where no delete was confirmed, whatever signal comes after the last line', async (context) => {
    const config = { shutdown: { budgetSeconds: 2 } };
    const { daemon, exchange } = await guard(context, { markets: ['AAA_USDT'], config });
    await exchange.addFaults({ kind: 'hang', mode: 'drop' });
    daemon.signal('SIGTERM');
    while (daemon.logged('stopped').length === 0) await sleep(1);
    await storm(daemon, 'SIGINT');
    expect(await daemon.exit()).toMatchObject({ code: 75, signal: null });
  });

  test("the bot's with exec, under the same storm", async (context) => {
    const { daemon } = await begin(context, { env: { BOT_EXIT_CODE: '3' } });
    await storm(daemon, 'SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 3, signal: null });
  });

  test('0 where the file of Node is gone, also while every thread hangs', async (context) => {
    for (const begun of [(scope: Scope, prefix: readonly string[]) => guard(scope, { prefix }), hung]) {
      const { node, prefix } = ownNode(context);
      const { daemon } = await begun(context, prefix);
      rmSync(node);
      daemon.signal('SIGTERM');
      expect(await daemon.exit()).toMatchObject({ code: 0, signal: null });
      expect(daemon.stderr()).toBe('');
    }
  });

  test('that of SIGKILL where every thread hangs and Node may not be executed any more: no core is written', async (context) => {
    const { node, prefix } = ownNode(context);
    const { daemon, exchange } = await hung(context, prefix);
    chmodSync(node, 0o644);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect(await timersDeleted(exchange)).toBe(1);
  });
});

test('an end while every thread hangs opens no debugger at a SIGUSR1 that came before', async (context) => {
  const { daemon } = await hung(context);
  daemon.signal('SIGUSR1');
  daemon.signal('SIGTERM');
  expect(await daemon.exit()).toMatchObject({ code: 0, signal: null });
  expect(daemon.stderr()).toBe('');
}, 60_000);
