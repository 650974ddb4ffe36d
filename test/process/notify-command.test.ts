import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MARKET, PROCESS } from './exec-play.ts';
import { stageFor } from './harness.ts';

const SLOW = `#!/bin/sh
sleep 0.05
printf '%s\\n' "$@" >>"$0.said"
`;

test('a service manager that is told by a slow program hears everything up to the last word', {
  timeout: 60_000,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  const programs = join(stage.directory, 'programs');
  mkdirSync(programs);
  const program = join(programs, 'systemd-notify');
  writeFileSync(program, SLOW, { mode: 0o755 });
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: [MARKET],
    bot: ['true'],
    config: { liveness: PROCESS },
    env: {
      PATH: `${programs}:${process.env['PATH'] ?? ''}`,
      NOTIFY_SOCKET: join(stage.directory, 'manager'),
    },
  });
  expect(await daemon.exit()).toMatchObject({ code: 0 });
  const lines = readFileSync(`${program}.said`, 'utf8').trimEnd().split('\n');
  expect(lines).toEqual(expect.arrayContaining(['READY=1', 'STOPPING=1']));
  expect(lines.at(-1)).toBe('STATUS=Stopped: no timer is armed');
  expect(daemon.logged('notify-failed')).toEqual([]);
});
