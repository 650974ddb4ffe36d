import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, type TestContext, test } from 'vitest';
import { type BeatServer, serveBeats } from './beat-server.ts';
import { type Started, startProcess, until } from './started.ts';

interface Client {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** What it prints when orders may go out. */
  readonly trades: string;
  readonly numbersItsBeats: boolean;
}

const SHELL: Client = {
  name: 'beat.sh',
  command: 'sh',
  args: ['config/clients/beat.sh', 'echo', 'a round of the bot'],
  trades: 'a round of the bot',
  numbersItsBeats: false,
};
const CLIENTS: readonly Client[] = [
  SHELL,
  {
    name: 'bot.py',
    command: 'python3',
    args: ['config/clients/bot.py'],
    trades: 'armed: orders may go out',
    numbersItsBeats: true,
  },
  {
    name: 'bot.js',
    command: process.execPath,
    args: ['config/clients/bot.js'],
    trades: 'armed: orders may go out',
    numbersItsBeats: true,
  },
];

function directory({ onTestFinished }: TestContext): string {
  const made = mkdtempSync(join(tmpdir(), 'killswitchd-clients-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

const HELD_BACK = 'not armed: orders are held back';
const words = ({ received }: BeatServer) => received.map(({ word }) => word);

function run(
  context: TestContext,
  client: Client,
  server: BeatServer,
  env: Readonly<Record<string, string>> = {},
): Started {
  return startProcess(context, client.command, client.args, { KILLSWITCHD_CONTROL: server.control, ...env });
}
const beats = (server: BeatServer, count: number) =>
  until(`${count} beats`, () => server.received.length >= count);

const prints = (bot: Started, text: string) => until(`printing ${text}`, () => bot.output().includes(text));

describe.each(CLIENTS)('the example $name', (client) => {
  test.concurrent('holds its orders back until it is armed, says goodbye at a clean end, and numbers its words or does not', async (context) => {
    const server = await serveBeats(context, join(directory(context), 'control.sock'));
    const bot = run(context, client, server);
    await beats(server, 2);
    await prints(bot, HELD_BACK);
    expect(bot.output()).not.toContain(client.trades);
    server.answer(true);
    await prints(bot, client.trades);
    bot.signal('SIGTERM');
    expect(await bot.ended).toEqual([0, null]);
    expect(
      words(server)
        .slice(0, -1)
        .every((word) => word === '/v1/beat'),
    ).toBe(true);
    expect(words(server).at(-1)).toBe('/v1/goodbye');
    const { received } = server;
    expect(new Set(received.map(({ bot: name }) => name))).toEqual(new Set([null]));
    if (client.numbersItsBeats) {
      expect(received.map(({ seq }) => seq)).toEqual(received.map((_, index) => index + 1));
      expect(new Set(received.map(({ session }) => session)).size).toBe(1);
      expect(received[0]?.session).toMatch(/^[0-9a-f-]{32,36}$/);
    } else {
      expect(received.every(({ seq, session }) => seq === null && session === null)).toBe(true);
    }
  });

  test.concurrent('reaches a loopback address under its own name, with the token from the file', async (context) => {
    const tokenFile = join(directory(context), 'token');
    writeFileSync(tokenFile, 'very-secret-token\n', { mode: 0o400 });
    const server = await serveBeats(context, null);
    server.answer(true);
    const bot = run(context, client, server, {
      KILLSWITCHD_BOT: 'maker',
      KILLSWITCHD_CONTROL_TOKEN_FILE: tokenFile,
      http_proxy: 'http://127.0.0.1:9',
    });
    await prints(bot, client.trades);
    expect(server.received[0]).toMatchObject({ bot: 'maker', authorization: 'Bearer very-secret-token' });
    expect(bot.output()).not.toContain('very-secret-token');
  });

  test.concurrent('holds its orders back when the daemon goes away, and places them again when it is back', async (context) => {
    const path = join(directory(context), 'control.sock');
    const first = await serveBeats(context, path);
    first.answer(true);
    const bot = run(context, client, first);
    await prints(bot, client.trades);
    await first.close();
    await prints(bot, HELD_BACK);
    const rounds = bot.output().split(client.trades).length;
    const second = await serveBeats(context, path);
    second.answer(true);
    await until('trading again', () => bot.output().split(client.trades).length > rounds);
    bot.signal('SIGTERM');
    expect(await bot.ended).toEqual([0, null]);
  });
});

// The other two use clients of which ./bot-clients.test.ts shows the same.
test('beat.sh holds its orders back when it is refused, and says why, and when the daemon hangs', async (context) => {
  const server = await serveBeats(context, join(directory(context), 'control.sock'));
  server.answer(401);
  const bot = run(context, SHELL, server);
  await prints(bot, 'the token is not the right one');
  await prints(bot, HELD_BACK);
  server.answer('never');
  await beats(server, server.received.length + 2);
  expect(bot.output()).not.toContain(SHELL.trades);
});

test('beat.sh says that it failed, and no goodbye, when a round of the bot fails', async (context) => {
  const server = await serveBeats(context, join(directory(context), 'control.sock'));
  server.answer(true);
  const bot = startProcess(context, 'sh', ['config/clients/beat.sh', 'false'], {
    KILLSWITCHD_CONTROL: server.control,
  });
  expect(await bot.ended).toEqual([1, null]);
  expect(words(server)).toEqual(['/v1/beat', '/v1/fail']);
});
