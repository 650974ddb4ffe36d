import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, type TestContext, test } from 'vitest';
import { type BeatServer, serveBeats } from './beat-server.ts';
import { folderFor, type Started, startProcess, until } from './started.ts';

const OF_LIBRARY = { trades: 'armed: orders may go out', numbersItsBeats: true };
const SHELL = {
  name: 'beat.sh',
  command: 'sh',
  args: ['config/clients/beat.sh', 'echo', 'a round of the bot'],
  /** What it prints when orders may go out. */
  trades: 'a round of the bot',
  numbersItsBeats: false,
};
const CLIENTS = [
  SHELL,
  { name: 'bot.py', command: 'python3', args: ['config/clients/bot.py'], ...OF_LIBRARY },
  { name: 'bot.js', command: process.execPath, args: ['config/clients/bot.js'], ...OF_LIBRARY },
];

const HELD_BACK = 'not armed: orders are held back';
const words = ({ received }: BeatServer) => received.map(({ word }) => word);

function run(
  context: TestContext,
  { command, args }: { readonly command: string; readonly args: readonly string[] },
  { control }: BeatServer,
  env: Readonly<Record<string, string>> = {},
): Started {
  return startProcess(context, command, args, { KILLSWITCHD_CONTROL: control, ...env });
}
const beats = (server: BeatServer, count: number) =>
  until(`${count} beats`, () => server.received.length >= count);

const rounds = (bot: Started, text: string) => bot.output().split(text).length - 1;
const prints = (bot: Started, text: string, since = 0) =>
  until(`printing ${text}`, () => rounds(bot, text) > since);

describe.concurrent.each(CLIENTS)('the example $name', (client) => {
  const { trades, numbersItsBeats } = client;

  test('holds its orders back until it is armed and while the daemon is away, says goodbye at a clean end, and numbers its words or does not', async (context) => {
    const path = join(folderFor(context), 'control.sock');
    const first = await serveBeats(context, path);
    const bot = run(context, client, first);
    await beats(first, 2);
    await prints(bot, HELD_BACK);
    expect(rounds(bot, trades)).toBe(0);
    first.answer(true);
    await prints(bot, trades);
    const heldBack = rounds(bot, HELD_BACK);
    await first.close();
    await prints(bot, HELD_BACK, heldBack);
    const traded = rounds(bot, trades);
    const second = await serveBeats(context, path);
    second.answer(true);
    await prints(bot, trades, traded);
    bot.signal('SIGTERM');
    expect(await bot.ended).toEqual([0, null]);
    expect(new Set([...words(first), ...words(second).slice(0, -1)])).toEqual(new Set(['/v1/beat']));
    expect(words(second).at(-1)).toBe('/v1/goodbye');
    const received = [...first.received, ...second.received];
    expect(new Set(received.map(({ bot: name }) => name))).toEqual(new Set([null]));
    if (numbersItsBeats) {
      expect(first.received.map(({ seq }) => seq)).toEqual(first.received.map((_, index) => index + 1));
      expect(second.received[0]?.seq).toBeGreaterThan(first.received.length);
      expect(new Set(received.map(({ session }) => session)).size).toBe(1);
      expect(received[0]?.session).toMatch(/^[0-9a-f-]{32,36}$/);
    } else {
      expect(received.every(({ seq, session }) => seq === null && session === null)).toBe(true);
    }
  });
});

// The other two use clients of which ./bot-clients.test.ts shows the same.
test('beat.sh reaches a loopback address under its own name, with the token from the file', async (context) => {
  const tokenFile = join(folderFor(context), 'token');
  writeFileSync(tokenFile, 'very-secret-token\n', { mode: 0o400 });
  const server = await serveBeats(context, null);
  server.answer(true);
  const bot = run(context, SHELL, server, {
    KILLSWITCHD_BOT: 'maker',
    KILLSWITCHD_CONTROL_TOKEN_FILE: tokenFile,
    http_proxy: 'http://127.0.0.1:9',
  });
  await prints(bot, SHELL.trades);
  expect(server.received[0]).toMatchObject({ bot: 'maker', authorization: 'Bearer very-secret-token' });
  expect(bot.output()).not.toContain('very-secret-token');
});

test('beat.sh holds its orders back when it is refused, and says why, and when the daemon hangs', async (context) => {
  const server = await serveBeats(context, join(folderFor(context), 'control.sock'));
  server.answer(401);
  const bot = run(context, SHELL, server);
  await prints(bot, 'the token is not the right one');
  await prints(bot, HELD_BACK);
  server.answer('never');
  await beats(server, server.received.length + 2);
  expect(bot.output()).not.toContain(SHELL.trades);
});

test('beat.sh says that it failed, and no goodbye, when a round of the bot fails', async (context) => {
  const server = await serveBeats(context, join(folderFor(context), 'control.sock'));
  server.answer(true);
  const bot = run(context, { command: 'sh', args: ['config/clients/beat.sh', 'false'] }, server);
  expect(await bot.ended).toEqual([1, null]);
  expect(words(server)).toEqual(['/v1/beat', '/v1/fail']);
});
