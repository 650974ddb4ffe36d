import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { run } from '../cli/stage.ts';
import { writeFiles } from './daemon.ts';
import { botSays, fired, MARKET, PROCESS, play } from './exec-play.ts';
import { stageFor } from './harness.ts';
import { endBy, eventually } from './program.ts';
import { writeConfig } from './reloading.ts';
import { deletedIn, ofKind } from './simulated-exchange.ts';

const PATH = process.env['PATH'] ?? '';
const OF_TWO_BOTS = [
  { market: 'AAA_USDT', bot: 'maker' },
  { market: 'BBB_USDT', bot: 'taker' },
];

describe.concurrent('exec', { timeout: 60_000 }, () => {
  test('starts the bot once it is protected, tells it where the daemon is and the name that it has by then, and keeps the API key to itself', async (context) => {
    const tokenFile = join(stageFor(context).directory, 'token');
    writeFileSync(tokenFile, 'a-token-of-the-test\n', { mode: 0o600 });
    const { exchange, daemon } = await play(context, {
      markets: OF_TWO_BOTS.map(({ market }) => ({ market, bot: 'maker' })),
      secret: 'not-the-secret',
      config: {
        liveness: { mode: 'beat' },
        control: { listen: ['127.0.0.1:0'], tokenFile },
        reload: { pollSeconds: 1 },
      },
      env: { KILLSWITCHD_CONTROL: 'unix:/another/daemon.sock', PATH },
    });
    await eventually('a refused key', 15_000, () => daemon.logged('unauthorised')[0]);
    writeConfig(daemon, readFileSync(daemon.configFile, 'utf8').replaceAll('"maker"', '"taker"'));
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
});
