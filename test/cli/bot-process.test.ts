import { expect, test } from 'vitest';
import { type BotProcess, endRest } from '../../src/cli/bot-process.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createVirtual } from '../liveness/virtual.ts';

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
