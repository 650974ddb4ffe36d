import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, type TestContext, test } from 'vitest';
import { sleep } from '../process/program.ts';
import { type BeatServer, serveBeats } from './beat-server.ts';
import { folderFor, type Started, startProcess, until } from './started.ts';

const DRIVERS = fileURLToPath(new URL('./drivers', import.meta.url));
const PYTHON = fileURLToPath(new URL('../../clients/python', import.meta.url));
/** A warning, such as of a connection that is left open, is an error. */
const STRICT_PYTHON = ['python3', '-X', 'dev', '-W', 'error'];
const CLIENTS = {
  'Python client': [...STRICT_PYTHON, join(DRIVERS, 'driver.py'), 'loop'],
  'asyncio client': [...STRICT_PYTHON, join(DRIVERS, 'driver.py'), 'asyncio'],
  'Node client': [process.execPath, join(DRIVERS, 'driver.ts'), 'loop'],
} as const;

function drive(
  { onTestFinished }: TestContext,
  [program, ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
  { waitSeconds = 15, raises = false }: { waitSeconds?: number | 'none'; raises?: boolean } = {},
) {
  const child = spawn(program ?? '', [...args, String(waitSeconds), raises ? 'raises' : ''], {
    env: { PATH: process.env['PATH'], PYTHONPATH: PYTHON, PYTHONDONTWRITEBYTECODE: '1', ...env },
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
    expect(said).not.toMatch(/Warning|Traceback|ignored/);
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    /** Does one thing and resolves with what came of it. */
    async does(line: string): Promise<unknown> {
      child.stdin.write(`${line}\n`);
      const { value, done } = await answers.next();
      if (done === true) throw new Error(`the driver ended: ${said}`);
      return JSON.parse(value);
    },
    said: () => said,
  };
}

const pathFor = (context: TestContext) => join(folderFor(context), 'control.sock');

/** A daemon at a socket, and a client of it. */
async function together(
  context: TestContext,
  command: readonly string[],
  how: Parameters<typeof drive>[3] = {},
) {
  const path = pathFor(context);
  const server = await serveBeats(context, path);
  return { path, server, client: drive(context, command, { KILLSWITCHD_CONTROL: server.control }, how) };
}

/** A client of a daemon that does this with each connection. */
function besideRaw(context: TestContext, command: readonly string[], act: (connection: Socket) => void) {
  const path = pathFor(context);
  const server = createServer((connection) => act(connection.on('error', () => {}))).listen(path);
  context.onTestFinished(() => void server.close());
  return drive(context, command, { KILLSWITCHD_CONTROL: `unix:${path}` }, { waitSeconds: 2 });
}

/** An answer to a beat whose markets are armed for so many seconds. */
const armedFor = (seconds: Readonly<Record<string, number | null>>, more: object = {}) => {
  const markets = Object.entries(seconds).map(([market, left]) => [
    market,
    { state: 'armed', armed: left !== null, expiresInSeconds: left, expiresAt: left },
  ]);
  const armed = Object.values(seconds).every((left) => left !== null);
  return { body: JSON.stringify({ armed, counted: true, markets: Object.fromEntries(markets), ...more }) };
};

describe.concurrent.each(Object.entries(CLIENTS))('the %s', (_, command) => {
  test('tells by the answers whether all markets are armed, and each one', async (context) => {
    const { server, client } = await together(context, command);
    expect(await client.does('armed')).toBe(false);
    server.answer(armedFor({ BTC_USDT: 50, ETH_USDT: null }));
    expect(await client.does('beat')).toBe(false);
    expect(await client.does('armed BTC_USDT')).toBe(true);
    for (const asked of ['armed', 'armed ETH_USDT', 'armed SOL_USDT', 'armed toString'])
      expect(await client.does(asked), asked).toBe(false);
    server.answer(armedFor({ BTC_USDT: 50, ETH_USDT: 50 }, { marketsOmitted: 1 }));
    for (const asked of ['beat', 'armed', 'armed SOL_USDT'])
      expect(await client.does(asked), asked).toBe(true);
    expect(await client.does('problem')).toBe(null);
  });

  test('believes an answer no longer than it promised, also while the next beat waits for its own', async (context) => {
    const { server, client } = await together(context, command, { waitSeconds: 2 });
    server.answer(armedFor({ BTC_USDT: 50, ETH_USDT: 1.5 }));
    expect(await client.does('beat')).toBe(true);
    server.answer('never');
    await sleep(1000);
    expect(await client.does('during 0.7')).toEqual({ armed: false, done: false, counted: false });
    expect(await client.does('armed ETH_USDT')).toBe(false);
  });

  test('holds orders back and raises nothing while the daemon refuses, rambles or is away', async (context) => {
    const { path, server, client } = await together(context, command);
    const endless = { body: `{"armed":true,"counted":true,"more":"${'x'.repeat(3 << 20)}"}` };
    for (const how of [503, { body: '' }, { body: '[]' }, { body: '7' }, endless] as const) {
      server.answer(armedFor({ BTC_USDT: 50 }));
      expect(await client.does('beat')).toBe(true);
      server.answer(how);
      expect(await client.does('beat')).toBe(false);
      expect(await client.does('armed')).toBe(false);
      expect(await client.does('problem')).toEqual(expect.any(String));
    }
    const odd = ['{"BTC_USDT":null}', '{"BTC_USDT":5}', 'null', '"x"', '{"BTC_USDT":{"armed":true}}'];
    for (const markets of odd) {
      server.answer({ body: `{"armed":true,"counted":true,"markets":${markets}}` });
      expect(await client.does('beat')).toBe(false);
    }
    await server.close();
    expect(await client.does('beat')).toBe(false);
    expect(await client.does('goodbye')).toBe(false);
    expect(await client.does('problem')).toMatch(/^no answer from unix:\//);
    expect(client.said()).toContain('no answer from unix:');
    const again = await serveBeats(context, path);
    again.answer(armedFor({ BTC_USDT: 50 }));
    expect(await client.does('beat')).toBe(true);
  });

  test.for([0.5, 'none'] as const)(
    'gives a beat up in time where the daemon hangs, told to wait %s s',
    async (waitSeconds, context) => {
      const { server, client } = await together(context, command, { waitSeconds });
      server.answer('never');
      const startMs = performance.now();
      expect(await client.does('beat')).toBe(false);
      // The machine may be busy.
      expect(performance.now() - startMs).toBeLessThan(6500);
      expect(await client.does('problem')).toMatch(/timed out$/);
    },
  );

  test('gives a beat up in time where the answer comes byte by byte', async (context) => {
    const client = besideRaw(context, command, (connection) => {
      const drip = setInterval(() => connection.write('x'), 100);
      connection.on('close', () => clearInterval(drip));
    });
    await client.does('armed');
    const startMs = performance.now();
    expect(await client.does('beat')).toBe(false);
    expect(performance.now() - startMs).toBeLessThan(5000);
  });

  test('holds orders back where a gateway answers with another status or another protocol', async (context) => {
    const { body } = armedFor({ BTC_USDT: 50 });
    const heads = [
      `500 Internal Server Error\r\ncontent-length: ${body.length}`,
      '101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket',
    ];
    const client = besideRaw(context, command, (connection) => {
      const head = `HTTP/1.1 ${heads.shift()}\r\n\r\n`;
      connection.once('data', () => connection.end(head + body));
    });
    expect(await client.does('beat')).toBe(false);
    expect(await client.does('beat')).toBe(false);
    expect(heads).toEqual([]);
    expect(await client.does('problem')).toMatch(/^no answer from unix:/);
  });

  test('takes no address that is none', async (context) => {
    const client = drive(context, command, { KILLSWITCHD_CONTROL: 'unix:/nowhere' });
    expect(await client.does('at 127.0.0.1:1')).toBe(false);
    for (const control of [
      'http://127.0.0.1:1',
      '127.0.0.1',
      'a b:1',
      'unix:control.sock',
      '::1:17478',
      '127.0.0.1:99999',
    ])
      expect(await client.does(`at ${control}`), control).toContain(
        `control, or KILLSWITCHD_CONTROL: found ${command[0] === 'python3' ? `'${control}'` : `"${control}"`}; allowed: unix:/PATH or HOST:PORT`,
      );
  });

  test('says that it is no daemon that answers, and that the file of the token cannot be read', async (context) => {
    const { server, client } = await together(context, command);
    server.answer({ body: '{"code":0,"message":"Not found.","errors":{}}' });
    expect(await client.does('beat')).toBe(false);
    expect(await client.does('problem')).toMatch(/^no answer from unix:.* is no answer of killswitchd$/);
    const env = { KILLSWITCHD_CONTROL: '127.0.0.1:1', KILLSWITCHD_CONTROL_TOKEN_FILE: '/no/such/file' };
    const other = drive(context, command, env);
    expect(await other.does('beat')).toBe(false);
    const says = /^127\.0\.0\.1:1 was not asked: the file of the token, .* cannot be read: .*ENOENT|Errno 2/;
    expect(await other.does('problem')).toMatch(says);
  });

  test('says once why a beat does not count', async (context) => {
    const { server, client } = await together(context, command, { raises: true });
    server.answer({ body: '{"armed":false,"counted":false,"why":"the mode is file","markets":{}}' });
    expect(await client.does('beat')).toBe(false);
    expect(await client.does('beat')).toBe(false);
    expect(await client.does('problem')).toBe('the beat did not count: the mode is file');
    expect(client.said().split('the mode is file')).toHaveLength(2);
  });

  test('raises where it is asked to, without the token', async (context) => {
    const tokenFile = pathFor(context);
    writeFileSync(tokenFile, 'T7-the.token_of+this/test=9876543210\r\n');
    const server = await serveBeats(context, null);
    const env = { KILLSWITCHD_CONTROL: server.control, KILLSWITCHD_CONTROL_TOKEN_FILE: tokenFile };
    const client = drive(context, command, { ...env, KILLSWITCHD_BOT: 'maker' }, { raises: true });
    server.answer(401);
    expect(await client.does('beat')).toBe('KillSwitchError: the token is not the right one');
    expect(server.received[0]).toMatchObject({
      bot: 'maker',
      authorization: 'Bearer T7-the.token_of+this/test=9876543210',
    });
    expect(await client.does('wait_armed 0.1')).toBe('KillSwitchError: the token is not the right one');
    await server.close();
    expect(await client.does('fail')).toMatch(/^KillSwitchError: no answer from 127.0.0.1:/);
    expect(client.said()).not.toContain('T7-');
  });

  test('waits until all markets are armed, and no longer than it was told', async (context) => {
    const { server, client } = await together(context, command);
    expect(await client.does('wait_armed 0.2')).toBe(false);
    const waiting = client.does('wait_armed');
    server.answer(armedFor({ BTC_USDT: 50 }));
    expect(await waiting).toBe(true);
    expect(await client.does('armed')).toBe(true);
    server.answer('never');
    const startMs = performance.now();
    expect(await client.does('wait_armed 0.2')).toBe(false);
    expect(performance.now() - startMs).toBeLessThan(5000);
  });

  test('does not beat for ever for a bot that waits for a market which is never armed', async (context) => {
    const { server, client } = await together(context, command, { waitSeconds: 2 });
    server.answer(armedFor({ BTC_USDT: 50, ETH_USDT: null }));
    const told = await client.does('wait_through 50 20');
    expect(told).toEqual({ ended: [false, true], armed: false });
  });

  test('says goodbye at the end and fail where the bot breaks, and then believes nothing', async (context) => {
    const { server, client } = await together(context, command);
    server.answer(true);
    expect(await client.does('beat')).toBe(true);
    expect(await client.does('leave broken')).toBe('raised: broken');
    expect(await client.does('armed')).toBe(false);
    expect(await client.does('leave')).toBe(null);
    expect(await client.does('goodbye 5')).toBe(true);
    expect(await client.does('fail')).toBe(true);
    const heard = ['/v1/beat 1', '/v1/fail 2', '/v1/goodbye 3', '/v1/goodbye 4', '/v1/fail 5'];
    expect(server.received.map(({ word, seq }) => `${word} ${seq}`)).toEqual(heard);
    server.answer({ body: '{"counted":true,"done":false,"markets":[{"says":"the exchange is away"}]}' });
    expect(await client.does('goodbye 5')).toBe(false);
    expect(await client.does('problem')).toContain('the exchange is away');
  });
});

const UNTYPED = `
import ast, json, sys
tree = ast.parse(open(sys.argv[1]).read(), feature_version=(3, 9))
functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
given = lambda args: [*args.args, *args.kwonlyargs, *filter(None, [args.vararg, args.kwarg])]
typed = lambda one: one.returns and all(arg.annotation for arg in given(one.args) if arg.arg != "self")
print(json.dumps([len(functions) > 20, [one.name for one in functions if not typed(one)]]))
`;

test('the Python client is one file that Python 3.9 can read, with the types of all that it takes and gives', async (context) => {
  const file = join(PYTHON, 'killswitchd.py');
  expect(await drive(context, ['python3', '-c', UNTYPED, file], {}).does('')).toEqual([true, []]);
});

const FORKS = `
import asyncio, os, sys
from killswitchd import AsyncKillSwitch, KillSwitch
kind, does = sys.argv[1:]
bot = KillSwitch() if kind == "loop" else AsyncKillSwitch()
run = asyncio.run if kind == "asyncio" else lambda result: result
leave = bot.__aexit__ if kind == "asyncio" else bot.__exit__
run(bot.beat())
child = os.fork()
if child:
    os.waitpid(child, 0)
if child or does == "beats":
    run(bot.beat())
run(leave(SystemExit(0) if does == "exits" and not child else None))
`;
const FORKED = [
  ['leaves', []],
  ['exits', []],
  ['beats', ['/v1/beat 1', '/v1/goodbye 2']],
] as const;

describe.each(['loop', 'asyncio'])(
  'a process that a Python bot forks off, with the client for %s,',
  (kind) => {
    test.for(FORKED)('%s, and speaks for nobody but itself', async ([does, childs], context) => {
      const server = await serveBeats(context, pathFor(context));
      server.answer(true);
      const [python, ...args] = [...STRICT_PYTHON, '-c', FORKS, kind, does];
      const env = { PYTHONPATH: PYTHON, PYTHONDONTWRITEBYTECODE: '1', KILLSWITCHD_CONTROL: server.control };
      const bot = startProcess(context, python, args, env);
      expect(await bot.ended).toEqual([0, null]);
      expect(bot.output()).toBe('');
      const { received } = server;
      const saidBy = (isParent: boolean) =>
        received
          .filter(({ session }) => (session === received[0]?.session) === isParent)
          .map(({ word, seq }) => `${word} ${seq}`);
      expect(saidBy(true)).toEqual(['/v1/beat 1', '/v1/beat 2', '/v1/goodbye 3']);
      expect(saidBy(false)).toEqual(childs);
    });
  },
);

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

// `bot.py` and `bot.js` use the clients above, and are the bots of ../process.
test('beat.sh holds its orders back until it is armed and while the daemon is away, and says goodbye at a clean end', async (context) => {
  const path = pathFor(context);
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
  writeFileSync(tokenFile, 'very"secret\\token\n', { mode: 0o400 });
  const server = await serveBeats(context, null);
  server.answer(true);
  const bot = run(context, server, {
    KILLSWITCHD_BOT: 'maker',
    KILLSWITCHD_CONTROL_TOKEN_FILE: tokenFile,
    http_proxy: 'http://127.0.0.1:9',
  });
  await prints(bot, TRADES);
  expect(server.received[0]).toMatchObject({ bot: 'maker', authorization: 'Bearer very"secret\\token' });
  expect(bot.output()).not.toContain('very');
});

test('beat.sh holds its orders back when it is refused, and says why, and when the daemon hangs', async (context) => {
  const server = await serveBeats(context, pathFor(context));
  server.answer(401);
  const bot = run(context, server);
  await prints(bot, 'the token is not the right one');
  await prints(bot, HELD_BACK);
  server.answer('never');
  await beats(server, server.received.length + 2);
  expect(bot.output()).not.toContain(TRADES);
});

test('beat.sh says that its beats do not count, and trades while it is armed', async (context) => {
  const server = await serveBeats(context, pathFor(context));
  server.answer({ body: '{"armed":true,"counted":false,"why":"the mode is file","markets":{}}' });
  const bot = run(context, server);
  await prints(bot, 'the beat did not count: {"armed":true,"counted":false,"why":"the mode is file"');
  await prints(bot, TRADES);
  expect(new Set(words(server))).toEqual(new Set(['/v1/beat']));
});

test('beat.sh waits for the answer to its goodbye for longer than the daemon may take', async (context) => {
  const folder = folderFor(context);
  // In the place of curl, which would have to wait for as long.
  writeFileSync(join(folder, 'curl'), '#!/bin/sh\necho "$*" >&2\necho {\\"armed\\":true,\n', { mode: 0o755 });
  const server = await serveBeats(context, pathFor(context));
  const bot = run(context, server, { PATH: `${folder}:${process.env['PATH']}` });
  await prints(bot, TRADES);
  bot.signal('SIGTERM');
  expect(await bot.ended).toEqual([0, null]);
  const [, seconds] = /-m (\d+) .*\/v1\/goodbye/.exec(bot.output()) ?? [];
  expect(Number(seconds)).toBeGreaterThan(15);
});

/** What a round of the bot does, and what is said of it. Some stop their whole process group, as Ctrl-C and systemd do. */
const ROUNDS = [
  ['fails', 'false', 1, '/v1/fail'],
  ['is ended by a signal, and nobody asked for a stop', 'kill -TERM $$', 1, '/v1/fail'],
  ['is stopped with it by Ctrl-C', 'kill -INT 0; sleep 9', 0, '/v1/goodbye'],
  ['is stopped with it by systemd', 'kill -TERM 0; sleep 9', 0, '/v1/goodbye'],
  ['fails in a stop', 'trap "exit 1" TERM; kill -TERM 0', 1, '/v1/fail'],
] as const;

test.for(ROUNDS)(
  'beat.sh, where a round of the bot %s (%s), ends with %i and %s',
  async ([, round, code, word], context) => {
    const server = await serveBeats(context, pathFor(context));
    server.answer(true);
    const args = ['-c', 'exec setsid sh config/clients/beat.sh sh -c "$1"', 'sh', round];
    expect(await run(context, server, {}, args).ended).toEqual([code, null]);
    expect(words(server)).toEqual(['/v1/beat', word]);
  },
);
