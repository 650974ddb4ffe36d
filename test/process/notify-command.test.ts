import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { BOT, botSays, MARKET, PROCESS } from './exec-play.ts';
import { stageFor } from './harness.ts';
import { eventually } from './program.ts';

/** An exchange, and a program `systemd-notify` that takes so long for each message. */
async function play(context: TestContext, seconds: number) {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  const programs = join(stage.directory, 'programs');
  mkdirSync(programs);
  const program = join(programs, 'systemd-notify');
  const script = `#!/bin/sh\nsleep ${seconds}\nprintf '%s\\n' "$@" >>"$0.said"\n`;
  writeFileSync(program, script, { mode: 0o755 });
  const env = {
    PATH: `${programs}:${process.env['PATH'] ?? ''}`,
    NOTIFY_SOCKET: join(stage.directory, 'manager'),
  };
  return { stage, exchange, program, env };
}

test.concurrent('a service manager that is told by a slow program hears everything up to the last word', {
  timeout: 60_000,
}, async (context) => {
  const { stage, exchange, program, env } = await play(context, 0.05);
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: [MARKET],
    bot: ['true'],
    config: { liveness: PROCESS },
    env,
  });
  expect(await daemon.exit()).toMatchObject({ code: 0 });
  const lines = readFileSync(`${program}.said`, 'utf8').trimEnd().split('\n');
  expect(lines).toEqual(expect.arrayContaining(['READY=1', 'STOPPING=1']));
  expect(lines.at(-1)).toBe('STATUS=Stopped: no timer is armed');
  expect(daemon.logged('notify-failed')).toEqual([]);
});

test.concurrent.for(['run', 'exec'] as const)(
  'a second signal to %s, while a slow service manager is told of a stop that is over, calls it no failure',
  { timeout: 60_000 },
  async (command, context) => {
    const { stage, exchange, env } = await play(context, 2);
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: [MARKET],
      env,
      ...(command === 'exec' ? { bot: BOT, config: { liveness: PROCESS } } : {}),
    });
    await (command === 'exec' ? botSays(daemon, 'started') : daemon.ready());
    daemon.signal('SIGTERM');
    await eventually('the end of the stop', 15_000, () => daemon.logged('stopped')[0] ?? null);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    expect(daemon.logged('exit-at-once')).toEqual([]);
    expect(await exchange.event('timer-deleted', 1000)).toMatchObject({ market: MARKET });
  },
);
