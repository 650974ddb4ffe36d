import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type BotProcess, endRest, findWrapper } from '../../src/cli/bot-process.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createVirtual } from '../liveness/virtual.ts';
import { stageFor } from '../process/harness.ts';

/** What the looks at the session of a bot that has ended find, one after the other; after that nothing. */
async function rest(...found: readonly number[]) {
  const { clock, timeline } = createVirtual();
  const looks = [...found];
  const signals: string[] = [];
  const bot: Pick<BotProcess, 'members' | 'signalAll'> = {
    members: () => Array.from({ length: looks.shift() ?? 0 }, () => ({ pid: 7, group: 7 })),
    signalAll: (signal) => void signals.push(signal),
  };
  const { logger } = createLog({ level: 'info', format: 'json', clock, write: () => {} });
  const ended = endRest(bot as BotProcess, clock, logger, 3000);
  for (let turn = 0; turn < 60; turn += 1) {
    timeline.runUntil(timeline.nowMs() + 100);
    await Promise.resolve().then(() => undefined);
    await new Promise((next) => setImmediate(next));
  }
  return { leftBehind: await ended, signals };
}

test('a bot that forks twice is found where one look, between its two forks, sees nothing of it', async () => {
  const still = Array.from({ length: 12 }, () => 1);
  expect(await rest(0, ...still)).toEqual({ leftBehind: true, signals: ['SIGTERM'] });
  expect(await rest(1, 0, 0, ...still)).toEqual({ leftBehind: true, signals: ['SIGTERM'] });
  expect(await rest(1, 1)).toEqual({ leftBehind: false, signals: [] });
  expect(await rest(...still.slice(2))).toEqual({ leftBehind: false, signals: [] });
});

describe('a shell', () => {
  test.for([
    ['exec bot', null],
    ['exec bot --flag >> bot.log 2>&1', null],
    ['cd /app && exec bot', null],
    ['set -e; . ./env; exec bot "--url=http://host/?a=1&b=2" \'a;b\'', null],
    ['exec bot \\\n  --flag', null],
    ['bot >> bot.log 2>&1', false],
    ["bot --note 'a; b'", false],
    ['exec bot & wait', true],
    ['exec bot | tee bot.log', true],
    ['test -e /app || exec bot', true],
    ['(cd /app; exec bot) || true', true],
    ['ready || (cd /app; exec bot)', true],
    ['exec bot & > bot.log', true],
  ] as const)(
    'that runs %j makes way for its bot (null), or its code 0 may not be the one of the bot: %j',
    ([script, hidesEnd], context) => {
      const found = hidesEnd === null ? null : expect.objectContaining({ hidesEnd });
      expect(findWrapper(['sh', '-c', script], '')).toEqual(found);
      // In a file, what a last line without exec ends with is not looked at.
      const inFile = hidesEnd === null ? null : expect.objectContaining({ hidesEnd: true });
      const file = join(stageFor(context).directory, 'start');
      writeFileSync(file, `#!/bin/sh\n# It's the start.\n${script}\n`, { mode: 0o755 });
      expect(findWrapper([file], '')).toEqual(inFile);
      expect(findWrapper(['sh', file], '')).toEqual(inFile);
    },
  );

  test.for([
    ['bash -c', null],
    ['bash -euo pipefail -c', null],
    ['busybox sh -c', null],
    ['env A=1 nice -n 5 bash -c', null],
    ['bash start.sh -c', true],
    ['bash --norc start.sh -xc', true],
    ['env A=1 nice -n 5 ./start.sh', true],
    ['nohup bash start.sh', true],
  ] as const)(
    'started by %j is known by its options, and by no argument of its script',
    ([words, hidesEnd], context) => {
      const { directory } = stageFor(context);
      const file = join(directory, 'start.sh');
      writeFileSync(file, '#!/bin/sh\nbot | tee bot.log\n', { mode: 0o755 });
      const command = words.split(' ').map((word) => (word.endsWith('start.sh') ? file : word));
      const found = hidesEnd === null ? null : expect.objectContaining({ hidesEnd });
      expect(findWrapper([...command, 'exec bot'], '')).toEqual(found);
    },
  );

  test('that a Python launcher begins with makes way for Python', (context) => {
    const file = join(stageFor(context).directory, 'bot');
    // As pip and uv write it where the path of Python is long, has spaces, or is looked up.
    const lines = [
      '#!/bin/sh',
      `'''exec' "/a venv/bin/python" "$0" "$@"`,
      "' '''",
      'import sys',
      'sys.exit(main())',
    ];
    writeFileSync(file, lines.join('\n'), { mode: 0o755 });
    expect(findWrapper([file], '')).toBeNull();
  });

  test('that is given to the bot as an argument is no wrapper', () => {
    expect(findWrapper(['env', 'A=1', 'bot', '--with', 'bash'], '')).toBeNull();
    expect(findWrapper(['nice', '-n', '5'], '')).toBeNull();
  });
});
