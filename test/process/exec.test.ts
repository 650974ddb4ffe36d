import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { run } from '../cli/stage.ts';
import type { BotLine } from './bot.ts';
import { writeFiles } from './daemon.ts';
import { BOT, begin, botLines, botSays, fired, MARKET, PROCESS, play, runs, T_SECONDS } from './exec-play.ts';
import { type Scope, stageFor } from './harness.ts';
import { endBy, eventually, MAIN, sleep } from './program.ts';
import { deletedIn, longestGapDuring, ofKind, renewalsOf } from './simulated-exchange.ts';
import { onTerminal } from './terminal.ts';

const IN_SHELL = BOT.map((word) => `'${word}'`).join(' ');
const said = (daemon: Parameters<typeof botLines>[0]) => botLines(daemon).map(({ bot }) => bot);

const PATH = process.env['PATH'] ?? '';
const OF_TWO_BOTS = [
  { market: 'AAA_USDT', bot: 'maker' },
  { market: 'BBB_USDT', bot: 'taker' },
];

describe.concurrent('exec before its bot runs', { timeout: 60_000 }, () => {
  test('starts the bot once it is protected, tells it where the daemon is and the name that it has by then, and keeps the API key to itself', async (context) => {
    const tokenFile = join(stageFor(context).directory, 'token');
    writeFileSync(tokenFile, 'a-token-of-the-test\n', { mode: 0o600 });
    const of = (bot: string) => OF_TWO_BOTS.map(({ market }) => ({ market, bot, timeoutSeconds: T_SECONDS }));
    const { exchange, daemon } = await play(context, {
      markets: of('maker'),
      secret: 'not-the-secret',
      config: {
        liveness: { mode: 'beat' },
        control: { listen: ['127.0.0.1:0'], tokenFile },
        reload: { pollSeconds: 1 },
      },
      env: { KILLSWITCHD_CONTROL: 'unix:/another/daemon.sock', PATH },
    });
    await eventually('a refused key', 15_000, () => daemon.logged('unauthorised')[0]);
    daemon.configure({ markets: of('taker') });
    await eventually('the reload', 15_000, () => daemon.logged('reload-applied')[0]);
    expect(daemon.stdout()).toBe('');
    writeFileSync(daemon.secretFile, 'demo-secret\n');
    const { env, pid, atMs } = await botSays(daemon, 'started');
    expect(env).toEqual({
      KILLSWITCHD_CONTROL: /http:\/\/(\S+)/.exec(daemon.logged('control-listening')[0]?.msg ?? '')?.[1],
      KILLSWITCHD_CONTROL_TOKEN_FILE: tokenFile,
      KILLSWITCHD_BOT: 'taker',
    });
    const armed = ofKind(await exchange.events(), 'timer-armed').map((event) => event.atMs);
    expect(armed).toHaveLength(2);
    expect(Math.max(...armed)).toBeLessThanOrEqual(atMs);
    const started = await eventually('its line', 5000, () => daemon.logged('process-started')[0]);
    expect(started).toMatchObject({ level: 'info', pid });
    expect(await endBy(daemon)).toBe(0);
    expect(await deletedIn(exchange)).toHaveLength(2);
  });

  test('names no bot to one that trades for several, no daemon where none can be asked, and not its own service manager, without which it runs on', async (context) => {
    const { exchange, daemon } = await play(context, {
      markets: OF_TWO_BOTS,
      bot: ['sh', '-c', 'env'],
      env: {
        PATH,
        KILLSWITCHD_CONTROL: '127.0.0.1:1',
        NOTIFY_SOCKET: '/nobody/listens/here',
        WATCHDOG_USEC: '15000000',
        LISTEN_FDS: '1',
        LISTEN_FDNAMES: 'notify',
        LISTEN_PID: '1',
        A_VARIABLE: 'of the bot',
      },
    });
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    const names = daemon.stdout().match(/^\w+(?==)/gm) ?? [];
    expect(names).toContain('A_VARIABLE');
    expect(names.filter((name) => /^(KILLSWITCHD|NOTIFY|WATCHDOG|LISTEN)_/.test(name))).toEqual([]);
    expect(daemon.logged('notify-failed')).toMatchObject([{ level: 'warn' }]);
    expect(await deletedIn(exchange)).toHaveLength(2);
  });

  test('has one clear sentence, the exit codes of shells and no armed timer for a bot that is not there', async (context) => {
    const stage = stageFor(context);
    const { directory } = stage;
    const exchange = await stage.exchange();
    const config = { liveness: PROCESS };
    const { configFile, env } = writeFiles(directory, { exchange: exchange.url, markets: [MARKET], config });
    const file = (name: string, text: string, mode = 0o755) => {
      writeFileSync(join(directory, name), text, { mode });
      return join(directory, name);
    };
    const there = 'which is not there';
    for (const [program, code, why] of [
      ['no-such-bot', 127, 'there is no no-such-bot in PATH'],
      ['', 127, 'its name is empty'],
      ['killswitchd.yaml', 127, 'a configuration file is named by an option: --config FILE'],
      ['./no-such-bot', 127, 'there is no file ./no-such-bot'],
      [file('plain', 'no program', 0o644), 126, 'plain may not be executed'],
      [file('orphan', '#! /no/such/program -x\n'), 127, `names /no/such/program, ${there}`],
      [file('windows', '#!/bin/sh\r\n'), 127, `names /bin/sh and a carriage return, ${there}`],
      [file('unnamed', '#!/usr/bin/env no-such-python\n'), 127, `names no-such-python, ${there}`],
      [file('copied', '#!/usr/bin/env sh\r\n'), 127, `names sh and a carriage return, ${there}`],
      [directory, 126, `${directory} is not a file`],
    ] as const) {
      const args = ['exec', '--config', configFile, '--', program];
      const ended = await run(args, { env: { ...env, PATH } });
      const says = expect.stringMatching(/^killswitchd exec: cannot start the bot: /);
      expect(ended).toMatchObject({ code, err: [says] });
      expect(ended.err[0]).toContain(why);
    }
    expect(await exchange.events()).toEqual([]);
    const misread = await run(['exec', '--embedded-exchange', 'node', '--check', 'bot.js']);
    expect([misread.code, misread.err.join('\n')]).toEqual([64, expect.stringContaining("'--check'")]);
    expect(misread.err.join('\n')).toContain('killswitchd exec [options] -- COMMAND [ARGUMENT]...');
  });

  test('leaves the timers to fire where the bot turns out to be no program when it is started', async (context) => {
    const script = join(stageFor(context).directory, 'script');
    const interpreter = `${script}-interpreter`;
    writeFileSync(interpreter, '#!/no/such/interpreter\n', { mode: 0o755 });
    writeFileSync(script, `#!${interpreter}\n`, { mode: 0o755 });
    const { daemon, exchange } = await play(context, { bot: [script] });
    expect(await daemon.exit()).toMatchObject({ code: 127 });
    expect(daemon.logged('process-not-started')).toMatchObject([{ level: 'error' }]);
    expect(daemon.stderr()).toContain('the program that its first line names is missing');
    await fired(exchange);
  });

  test('never starts a bot that cannot be protected within the grace, and says which market is missing; nor one whose end is asked for before', async (context) => {
    const [impatient, waiting] = await Promise.all(
      [3, 60].map(async (startupGraceSeconds) => {
        const config = { liveness: { ...PROCESS, startupGraceSeconds } };
        return (await play(context, { secret: 'not-the-secret', config })).daemon;
      }),
    );
    expect(await impatient?.exit()).toMatchObject({ code: 69 });
    expect(impatient?.logged('process-not-started')[0]?.msg).toMatch(
      /^THE BOT WAS NOT STARTED: 1 of 1 markets not armed within 3 s \(liveness\.startupGraceSeconds\): AAA_USDT \(.+\); the exchange refuses the API key\.$/,
    );
    expect(waiting && (await endBy(waiting))).toBe(0);
    expect([impatient?.stdout(), waiting?.stdout()]).toEqual(['', '']);
  });

  test('names the market that an operator took out of guard while the bot waited to be started', async (context) => {
    const config = { liveness: { ...PROCESS, startupGraceSeconds: 10 } };
    const faults = [{ kind: 'reset', when: 'before', match: { market: 'BBB_USDT' } } as const];
    const options = { markets: [MARKET, 'BBB_USDT'], control: true, config, faults };
    const { daemon, exchange } = await play(context, options);
    await eventually('an armed timer', 15_000, () => daemon.logged('armed')[0]);
    await run(['disarm', MARKET, '--yes', '--wait', '0', '--control', daemon.socket]);
    await exchange.clearFaults();
    expect(await daemon.exit()).toMatchObject({ code: 69 });
    const told = /: 1 of 2 markets not armed within 10 s .*: AAA_USDT \(disarmed\)\.$/;
    expect(daemon.logged('process-not-started')[0]?.msg).toMatch(told);
  });

  test.for([
    ['delete', 75],
    ['keep', 0],
  ] as const)(
    'under the policy %s leaves a timer to fire whose bot never ran, and ends with %i',
    async ([policy, code], context) => {
      const { daemon, exchange } = await play(context, {
        markets: [MARKET, 'BBB_USDT'],
        faults: [{ kind: 'forbidden', match: { market: 'BBB_USDT' } }],
        config: { liveness: { ...PROCESS, startupGraceSeconds: 60 }, shutdown: { policy } },
      });
      await eventually('an armed timer', 15_000, () => daemon.logged('armed')[0]);
      expect(await endBy(daemon)).toBe(code);
      expect(daemon.logged('stopped')).toMatchObject([{ msg: expect.stringContaining(MARKET) }]);
      expect(daemon.stdout()).toBe('');
      await fired(exchange);
    },
  );
});

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

  // That a promise which nobody handles is such an error as well: `stop.test.ts`.
  test('that fails by an error which nobody catches leaves the bot running, says so, and deletes nothing', async (context) => {
    const { daemon, exchange, pid } = await begin(context, { canSabotage: true, env: { BOT_OUTLIVES: '1' } });
    daemon.sabotage({ kind: 'throw' });
    await eventually('the end of exec', 10_000, () => daemon.hasExited());
    expect(runs(pid)).toBe(true);
    const msg = expect.stringContaining(`The bot (process ${pid}) goes on without protection: stop it.`);
    expect(daemon.logged('crashed')).toMatchObject([{ level: 'fatal', msg }]);
    process.kill(pid, 'SIGKILL');
    expect(await daemon.exit()).toMatchObject({ code: 70 });
    await fired(exchange);
  });

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
    'ends a bot that its shell has left behind%s, and takes that for no good end, nor the shell for a silent bot',
    async ([, shell, script, itsEnv], context) => {
      const bot = [shell, '-c', script];
      const { daemon, exchange, pid } = await begin(context, { bot, env: itsEnv, config });
      expect(await daemon.exit()).toMatchObject({ code: 75 });
      expect(daemon.logged('process-left-behind')).toMatchObject([{ level: 'error', pids: [pid] }]);
      expect(daemon.logged('evidence-problem')).toEqual([]);
      expect(said(daemon)).toEqual(['started', 'SIGTERM']);
      await eventually(`the end of process ${pid}`, 15_000, () => !runs(pid));
      await fired(exchange);
    },
  );

  test('renews nothing for what a bot that has failed left behind, though it still gives evidence', async (context) => {
    const [node, script] = BOT;
    const { daemon, exchange } = await begin(context, {
      bot: ['sh', '-c', `'${node}' '${script}' beat & sleep 3; exit 1`],
      env: stubborn,
      control: true,
      config: { liveness: { mode: 'beat', ttlSeconds: 2 }, shutdown: { budgetSeconds: 5 } },
    });
    await eventually('what it left', 15_000, () => daemon.logged('process-left-behind')[0]);
    daemon.signal('SIGTERM');
    const told = await eventually('a word', 5000, () => daemon.logged('process-asked-to-end')[0]);
    expect(told.msg).toMatch(/^SIGTERM: the bot \(process \d+\) has ended before\./);
    expect(await daemon.exit()).toMatchObject({ code: 1 });
    const endedMs = Date.parse(daemon.logged('process-left-behind')[0]?.time ?? '');
    expect(Math.max(...renewalsOf(await exchange.events(), MARKET))).toBeLessThan(endedMs);
  });

  test('takes no reload for a bot that has failed: under another name its timers would be renewed for the start-up grace', async (context) => {
    const { daemon, exchange } = await begin(context, {
      bot: ['sh', '-c', `${IN_SHELL} & sleep 2; exit 1`],
      env: stubborn,
      control: true,
      config: { shutdown: { budgetSeconds: 4 } },
    });
    await eventually('what it left', 15_000, () => daemon.logged('process-left-behind')[0]);
    const { seq } = (await exchange.events()).at(-1) ?? { seq: 0 };
    daemon.configure({ markets: [{ market: MARKET, bot: 'another', timeoutSeconds: T_SECONDS }] });
    const reload = await run(['reload', '--control', daemon.socket]);
    expect(reload).toMatchObject({ code: 78 });
    expect(reload.err.join('\n')).toContain('the daemon stops: nothing is reloaded any more');
    expect(await daemon.exit()).toMatchObject({ code: 1 });
    const later = (await exchange.events()).filter((event) => event.seq > seq);
    expect(renewalsOf(later, MARKET)).toEqual([]);
  });

  test('kills what does not end, also behind a script', async (context) => {
    const script = join(stageFor(context).directory, 'start');
    writeFileSync(script, `#!/bin/sh\n${IN_SHELL}\necho ended >&2\n`, { mode: 0o755 });
    const bot = ['timeout', '60', script];
    const { daemon, pid } = await begin(context, { bot, env: stubborn, config });
    expect(await endBy(daemon)).toBe(143);
    expect(daemon.logged('process-behind-wrapper')).toMatchObject([{ wrapper: 'timeout' }]);
    await eventually(`the end of process ${pid}`, 15_000, () => !runs(pid));
  });

  const script = (context: Scope, lines: string) => {
    const file = join(stageFor(context).directory, 'start');
    writeFileSync(file, `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
    return [file];
  };
  test.for([
    ['a pipe', () => ['sh', '-c', `${IN_SHELL} | cat`]],
    ['wait', () => ['sh', '-c', `${IN_SHELL} & wait`]],
    ['a script that goes on', (context: Scope) => script(context, `${IN_SHELL}\necho ended >&2`)],
  ] as const)(
    'leaves the timers of a bot that is killed behind %s, which ends with 0',
    async ([, bot], context) => {
      const { daemon, exchange, pid } = await begin(context, { bot: bot(context) });
      expect(daemon.logged('process-behind-wrapper')[0]?.msg).toContain('is no goodbye');
      process.kill(pid, 'SIGKILL');
      expect(await daemon.exit()).toMatchObject({ code: 75 });
      await fired(exchange);
      expect(await deletedIn(exchange)).toEqual([]);
    },
  );

  test('takes the code 0 of a script that ends with exec for the goodbye of its bot', async (context) => {
    const bot = script(context, `echo begins >&2\nexec \\\n  ${IN_SHELL} 2>&1`);
    const { daemon, exchange } = await begin(context, { bot });
    expect(await endBy(daemon)).toBe(0);
    expect(daemon.logged('process-behind-wrapper')).toEqual([]);
    expect(await deletedIn(exchange)).toEqual([MARKET]);
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
