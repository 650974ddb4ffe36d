import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { type BeatServer, serveBeats } from './beat-server.ts';
import { folderFor, type Started, startProcess, until } from './started.ts';

const TRADES = 'a round of the bot';
const SCRIPT = ['config/clients/beat.sh', 'echo', TRADES];
const HELD_BACK = 'not armed: orders are held back';
const words = ({ received }: BeatServer) => received.map(({ word }) => word);

const run = (context: TestContext, { control }: BeatServer, env: object = {}, args = SCRIPT): Started =>
  startProcess(context, 'sh', args, { KILLSWITCHD_CONTROL: control, ...env });
const beats = (server: BeatServer, count: number) =>
  until(`${count} beats`, () => server.received.length >= count);

const rounds = (bot: Started, text: string) => bot.output().split(text).length - 1;
const prints = (bot: Started, text: string, since = 0) =>
  until(`printing ${text}`, () => rounds(bot, text) > since);

// `bot.py` and `bot.js` use clients of which ./bot-clients.test.ts shows the same, and are the bots of ../process.
test('beat.sh holds its orders back until it is armed and while the daemon is away, and says goodbye at a clean end', async (context) => {
  const path = join(folderFor(context), 'control.sock');
  const first = await serveBeats(context, path);
  const bot = run(context, first);
  await beats(first, 2);
  await prints(bot, HELD_BACK);
  expect(rounds(bot, TRADES)).toBe(0);
  first.answer(true);
  await prints(bot, TRADES);
  const heldBack = rounds(bot, HELD_BACK);
  await first.close();
  await prints(bot, HELD_BACK, heldBack);
  const traded = rounds(bot, TRADES);
  const second = await serveBeats(context, path);
  second.answer(true);
  await prints(bot, TRADES, traded);
  bot.signal('SIGTERM');
  expect(await bot.ended).toEqual([0, null]);
  expect(new Set([...words(first), ...words(second).slice(0, -1)])).toEqual(new Set(['/v1/beat']));
  expect(words(second).at(-1)).toBe('/v1/goodbye');
  for (const one of [...first.received, ...second.received])
    expect(one).toMatchObject({ bot: null, seq: null, session: null });
});

test('beat.sh reaches a loopback address under its own name, with the token from the file', async (context) => {
  const tokenFile = join(folderFor(context), 'token');
  writeFileSync(tokenFile, 'very-secret-token\n', { mode: 0o400 });
  const server = await serveBeats(context, null);
  server.answer(true);
  const bot = run(context, server, {
    KILLSWITCHD_BOT: 'maker',
    KILLSWITCHD_CONTROL_TOKEN_FILE: tokenFile,
    http_proxy: 'http://127.0.0.1:9',
  });
  await prints(bot, TRADES);
  expect(server.received[0]).toMatchObject({ bot: 'maker', authorization: 'Bearer very-secret-token' });
  expect(bot.output()).not.toContain('very-secret-token');
});

test('beat.sh holds its orders back when it is refused, and says why, and when the daemon hangs', async (context) => {
  const server = await serveBeats(context, join(folderFor(context), 'control.sock'));
  server.answer(401);
  const bot = run(context, server);
  await prints(bot, 'the token is not the right one');
  await prints(bot, HELD_BACK);
  server.answer('never');
  await beats(server, server.received.length + 2);
  expect(bot.output()).not.toContain(TRADES);
});

test('beat.sh says that it failed, and no goodbye, when a round of the bot fails', async (context) => {
  const server = await serveBeats(context, join(folderFor(context), 'control.sock'));
  server.answer(true);
  const bot = run(context, server, {}, ['config/clients/beat.sh', 'false']);
  expect(await bot.ended).toEqual([1, null]);
  expect(words(server)).toEqual(['/v1/beat', '/v1/fail']);
});
