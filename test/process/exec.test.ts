import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { BotLine } from './bot.ts';
import { BOT, begin, botLines, botSays, fired, MARKET, PROCESS, runs, T_SECONDS } from './exec-play.ts';
import { stageFor } from './harness.ts';
import { endBy, eventually, MAIN, sleep } from './program.ts';
import { deletedIn, longestGapDuring, ofKind, renewalsOf } from './simulated-exchange.ts';
import { onTerminal } from './terminal.ts';

const IN_SHELL = BOT.map((word) => `'${word}'`).join(' ');
const said = (daemon: Parameters<typeof botLines>[0]) => botLines(daemon).map(({ bot }) => bot);

describe.concurrent('exec', { timeout: 60_000 }, () => {
  test('without --disable-sigusr1 sends the bot every signal but SIGUSR1, writes nothing between its lines, and says nothing of a shell that made way', async (context) => {
    const bot = ['sh', '-c', `exec ${IN_SHELL}`];
    const { daemon, exchange, pid } = await begin(context, { bot, nodeOptions: [] });
    daemon.signal('SIGUSR1');
    for (const signal of ['SIGHUP', 'SIGUSR2'] as const) {
      daemon.signal(signal);
      await botSays(daemon, signal);
    }
    process.kill(pid, 'SIGUSR1');
    await botSays(daemon, 'SIGUSR1');
    expect(await endBy(daemon)).toBe(0);
    expect(said(daemon)).toEqual(['started', 'SIGHUP', 'SIGUSR2', 'SIGUSR1', 'SIGTERM']);
    expect(daemon.stderr()).not.toContain('Debugger listening');
    expect(daemon.logged('process-behind-wrapper')).toEqual([]);
    expect(await deletedIn(exchange)).toEqual([MARKET]);
  });

  test('renews for as long as the bot takes to end, takes a signal that comes twice within a second for one, kills the bot at a later one, and then lets the timers fire', async (context) => {
    const { daemon, exchange } = await begin(context, { env: { BOT_STUBBORN: '1' } });
    daemon.signal('SIGTERM');
    await botSays(daemon, 'SIGTERM');
    daemon.signal('SIGTERM');
    expect(await longestGapDuring(exchange, [MARKET], () => sleep(2500))).toBeLessThan(2000);
    expect(daemon.hasExited()).toBe(false);
    expect(await endBy(daemon)).toBe(137);
    expect(said(daemon)).toEqual(['started', 'SIGTERM']);
    await fired(exchange);
  });

  test('passes the exit code of the bot on and leaves its timers to fire', async (context) => {
    const { daemon, exchange } = await begin(context, { env: { BOT_EXIT_CODE: '3' } });
    expect(await endBy(daemon)).toBe(3);
    const { atMs } = await fired(exchange);
    const lastMs = renewalsOf(await exchange.events(), MARKET).at(-1) ?? 0;
    expect(atMs - lastMs).toBeLessThanOrEqual((T_SECONDS + 1) * 1000);
    expect(daemon.logged('process-ended')).toMatchObject([{ level: 'error', code: 3 }]);
    expect(daemon.logged('stop-means')[0]?.msg).toBe(
      'SIGTERM or Ctrl-C asks the bot to end; its timers are renewed until it has. A second one kills it. ' +
        'Its end with exit code 0 deletes the timers, within 8 s. Any other end leaves the timers to fire.',
    );
  });

  test('has the orders cancelled before it ends where a failed bot trips', async (context) => {
    const { daemon, exchange } = await begin(context, {
      timeoutSeconds: 60,
      env: { BOT_EXIT_CODE: '3' },
      config: { liveness: { ...PROCESS, onStale: 'trip' } },
    });
    expect(await endBy(daemon)).toBe(3);
    const cut = ofKind(await exchange.events(), 'timer-updated', MARKET).at(-1);
    expect(cut?.timeoutSeconds).toBe(5);
    await exchange.event('order-cancelled', 8000);
  });

  test.for([
    ['an error that nobody catches', 'throw'],
    ['a promise that nobody handles', 'reject'],
  ] as const)(
    'that fails itself by %s leaves the bot running, says so, and deletes nothing',
    async ([, kind], context) => {
      const { daemon, exchange, pid } = await begin(context, {
        canSabotage: true,
        env: { BOT_OUTLIVES: '1' },
      });
      daemon.sabotage({ kind });
      await eventually('the end of exec', 10_000, () => daemon.hasExited());
      expect(runs(pid)).toBe(true);
      const msg = expect.stringContaining(`The bot (process ${pid}) goes on without protection: stop it.`);
      expect(daemon.logged('crashed')).toMatchObject([{ level: 'fatal', msg }]);
      process.kill(pid, 'SIGKILL');
      expect(await daemon.exit()).toMatchObject({ code: 70 });
      await fired(exchange);
    },
  );

  test('leaves the Ctrl-C of a terminal to the terminal: the bot gets it once', async (context) => {
    const flags = ['--embedded-exchange', '--markets', MARKET, '--web-listen', '127.0.0.1:0'];
    const terminal = onTerminal(context, [process.execPath, MAIN, 'exec', ...flags, '--', ...BOT]);
    const count = (signal: BotLine['bot']) => terminal.shown().split(`{"bot":"${signal}"`).length - 1;
    const sees = (signal: BotLine['bot']) =>
      eventually(`the bot's ${signal}`, 15_000, () => count(signal) > 0);
    await sees('started');
    terminal.type('\u0003');
    await sees('SIGINT');
    await sleep(1200);
    expect(count('SIGINT')).toBe(1);
    terminal.type('\u0003');
    expect(await terminal.ended).toBe(137);
  });
});

describe.concurrent('exec with another program before the bot', { timeout: 60_000 }, () => {
  const env = { BOT_OUTLIVES: '1' };
  const stubborn = { ...env, BOT_STUBBORN: '1' };
  const config = { shutdown: { budgetSeconds: 1 } };

  test('warns, asks the bot itself to end, and deletes no timer', async (context) => {
    const bot = ['sh', '-c', `${IN_SHELL} & wait`];
    const { daemon, exchange, pid } = await begin(context, { bot, env });
    const warned = () => daemon.logged('process-behind-wrapper')[0];
    expect(await eventually('its line', 5000, warned)).toMatchObject({ level: 'warn' });
    expect(await endBy(daemon)).not.toBe(0);
    expect(said(daemon)).toEqual(['started', 'SIGTERM']);
    expect(runs(pid)).toBe(false);
    await fired(exchange);
  });

  test.for([
    ['', 'sh', `${IN_SHELL} & sleep 2`, env],
    [' in a process group of its own', 'bash', `set -m; ${IN_SHELL} & sleep 2`, stubborn],
  ] as const)(
    'ends a bot that its shell has left behind%s, and takes that for no good end',
    async ([, shell, script, itsEnv], context) => {
      const bot = [shell, '-c', script];
      const { daemon, exchange, pid } = await begin(context, { bot, env: itsEnv, config });
      expect(await daemon.exit()).toMatchObject({ code: 75 });
      expect(daemon.logged('process-left-behind')).toMatchObject([{ level: 'error', pids: [pid] }]);
      expect(said(daemon)).toEqual(['started', 'SIGTERM']);
      await eventually(`the end of process ${pid}`, 15_000, () => !runs(pid));
      await fired(exchange);
    },
  );

  test('kills what does not end, also behind a script', async (context) => {
    const script = join(stageFor(context).directory, 'start');
    writeFileSync(script, `#!/bin/sh\n${IN_SHELL}\necho ended >&2\n`, { mode: 0o755 });
    const bot = ['timeout', '60', script];
    const { daemon, pid } = await begin(context, { bot, env: stubborn, config });
    expect(await endBy(daemon)).toBe(143);
    expect(daemon.logged('process-behind-wrapper')).toMatchObject([{ wrapper: 'timeout' }]);
    await eventually(`the end of process ${pid}`, 15_000, () => !runs(pid));
  });

  test('kills all of it at a second signal', async (context) => {
    const bot = ['sh', '-c', `trap : TERM; ${IN_SHELL} & while :; do wait; done`];
    const { daemon, pid } = await begin(context, { bot, env: stubborn });
    daemon.signal('SIGTERM');
    await botSays(daemon, 'SIGTERM');
    expect(await endBy(daemon, 'SIGINT')).toBe(137);
    await eventually(`the end of process ${pid}`, 15_000, () => !runs(pid));
  });
});
