import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { run } from '../cli/stage.ts';
import { startProcess } from '../liveness/started.ts';
import { everythingSaidBy, shownIn, writeFiles } from './daemon.ts';
import { BOT, botSays, MARKET, PROCESS } from './exec-play.ts';
import { beginGuard, stageFor } from './harness.ts';
import { type Heard, serve } from './http-server.ts';
import { endBy, eventually, sleep } from './program.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT'];
/** A path that would give the receiver away, and must be seen nowhere. */
const SECRET_PATH = '/services/T0TOPSECRET/B1CONFIDENTIAL?token=h1dden-value';
const PING_PATH = '/ping/UNGUESSABLE-UUID';
const PARTS = ['T0TOPSECRET', 'B1CONFIDENTIAL', 'h1dden-value', 'UNGUESSABLE'];

type Told = Readonly<Record<'event' | 'text', string>> & { readonly markets: readonly string[] };

/** A daemon and whoever it tells, over real HTTP on the loopback. */
async function play(context: TestContext, liveness: object, timeoutSeconds = 5) {
  const { directory } = stageFor(context);
  const posts: Heard[] = [];
  const url = await serve(context, (heard, response) => {
    posts.push(heard);
    response.end('ok');
  });
  const files = { urlFile: join(directory, 'url'), pingUrlFile: join(directory, 'ping') };
  writeFileSync(files.urlFile, `${url}${SECRET_PATH}\n`, { mode: 0o600 });
  writeFileSync(files.pingUrlFile, `${url}${PING_PATH}\n`, { mode: 0o600 });
  const notify = { name: 'main account', ...files, pingEverySeconds: 5 };
  const config = { liveness, notify };
  const played = await beginGuard(context, { markets: MARKETS, timeoutSeconds, control: true, config });
  if (liveness === UNWATCHED) await played.daemon.ready();
  /** The bodies of what was posted about this event. */
  const toldOf = (event: string) =>
    posts
      .filter(({ body }) => body.startsWith('{"name"'))
      .map(({ body }) => JSON.parse(body) as Told)
      .filter((told) => told.event === event);
  return {
    ...played,
    posts,
    toldOf,
    told: (event: string) => eventually(`a message about ${event}`, 40_000, () => toldOf(event)[0]),
    pings: () => posts.filter(({ path }) => path === PING_PATH),
  };
}

const UNWATCHED = { mode: 'none' };

test.concurrent('a SIGKILLed bot is told of, then that its orders were cancelled, and the pings of the dead man stop', {
  timeout: 120_000,
}, async (context) => {
  const liveness = { mode: 'beat', ttlSeconds: 4 };
  const { daemon, posts, told, toldOf, pings } = await play(context, liveness);
  const bot = startProcess(context, 'python3', ['config/clients/bot.py'], {
    KILLSWITCHD_CONTROL: daemon.socket,
    PYTHONDONTWRITEBYTECODE: '1',
  });
  const ping = await eventually('a ping while all is well', 40_000, () => pings()[0]);
  expect(ping).toMatchObject({ method: 'GET', body: '' });
  expect(posts.filter(({ method }) => method === 'POST')).toEqual([]);
  bot.signal('SIGKILL');
  const dead = await told('bot-stale');
  expect(dead).toMatchObject({ name: 'main account', level: 'error', count: 1 });
  expect(dead.text).toMatch(/The orders of its markets are cancelled by \d\d:\d\d:\d\d UTC/);
  const before = pings().length;
  expect((await told('fired')).text).toContain('its orders were cancelled by');
  await eventually('both markets', 10_000, () => {
    const named = toldOf('fired').flatMap(({ markets }) => markets);
    return MARKETS.every((market) => named.includes(market));
  });
  await sleep(6000);
  expect(pings().length - before).toBeLessThanOrEqual(1);
  expect(posts.find(({ method }) => method === 'POST')?.path).toBe(SECRET_PATH);
  expect(shownIn(await everythingSaidBy(daemon), PARTS)).toEqual([]);
});

test.concurrent('an outage is told of at its beginning and its end, and the pings stop for its time, also where timers survive it', {
  timeout: 120_000,
}, async (context) => {
  const { exchange, told, pings } = await play(context, UNWATCHED, 30);
  await exchange.addFaults({ kind: 'maintenance' });
  expect((await told('outage-began')).text).toMatch(
    /if this lasts, orders are cancelled from \d\d:\d\d:\d\d UTC .* on/,
  );
  const { length } = pings();
  await sleep(6000);
  expect(pings()).toHaveLength(length);
  await exchange.clearFaults();
  expect(await told('outage-ended')).toMatchObject({ level: 'info' });
  await eventually('a ping again', 20_000, () => pings()[length]);
});

// What the Bot API, an incoming webhook and healthchecks.io answer, which takes no ping of another check with a 200.
test.for([
  ['telegram', 'R&D <main>', 200, 'OK'],
  // There `&`, `<` and `>` are commands.
  ['slack', 'R&amp;D &lt;main&gt;', 200, 'OK'],
  ['telegram', 'R&D <main>', 400, 'OK (not found)'],
] as const)(
  'notify --test posts a text and nothing else to %s, which is shown %s and answers %i, and pings',
  async (row, context) => {
    const [format, name, status, pong] = row;
    const path = format === 'slack' ? '/services/T0/B0/XX' : '/bot12:AB-c/sendMessage?chat_id=-100';
    const { directory } = stageFor(context);
    const heard: Heard[] = [];
    const base = await serve(context, (one, response) => {
      heard.push(one);
      if (one.path === PING_PATH) response.end(pong);
      else response.writeHead(status).end();
    });
    const files = { urlFile: join(directory, 'url'), pingUrlFile: join(directory, 'ping') };
    writeFileSync(files.urlFile, base + path);
    writeFileSync(files.pingUrlFile, base + PING_PATH);
    const config = { liveness: UNWATCHED, notify: { name: 'R&D <main>', format, ...files } };
    const options = { exchange: 'http://127.0.0.1:9', markets: ['BTC_USDT'], config };
    const { configFile, env } = writeFiles(directory, options);
    expect(await run(['notify', '--test', '--config', configFile], { env })).toMatchObject(
      status === 200
        ? { code: 0, out: ['Message: delivered, HTTP 200.', 'Ping: delivered, HTTP 200.'] }
        : { code: 69, err: ['Message: not delivered, HTTP 400.', `Ping: not delivered, HTTP 200 ${pong}.`] },
    );
    const [message, ping] = heard;
    const headers = expect.objectContaining({ 'content-type': 'application/json' });
    expect(message).toEqual({ method: 'POST', path, headers, body: expect.any(String) });
    const text = expect.stringMatching(
      new RegExp(`^🟢 ${name}: This is a test\\. [^&<>]* \\(\\d{4}-.*Z\\)$`),
    );
    expect(JSON.parse(message?.body ?? '')).toEqual({ text });
    expect(ping).toMatchObject({ method: 'GET', path: PING_PATH, body: '' });
  },
);

/** An exchange, and a program `systemd-notify` that takes so long for each message. */
async function playManager(context: TestContext, seconds: number) {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  const programs = join(stage.directory, 'programs');
  mkdirSync(programs);
  const script = `#!/bin/sh\nsleep ${seconds}\nprintf '%s\\n' "$@" >>"$0.said"\n`;
  writeFileSync(join(programs, 'systemd-notify'), script, { mode: 0o755 });
  const env = { PATH: `${programs}:${process.env['PATH'] ?? ''}`, NOTIFY_SOCKET: '/nobody/listens/here' };
  const start = (bot?: readonly string[]) => {
    const exec = bot === undefined ? {} : { bot, config: { liveness: PROCESS } };
    return stage.daemon({ exchange: exchange.url, markets: [MARKET], env, ...exec });
  };
  const lines = () => readFileSync(join(programs, 'systemd-notify.said'), 'utf8').trimEnd().split('\n');
  return { exchange, start, lines };
}

test.concurrent('a service manager that is told by a slow program hears everything up to the last word', {
  timeout: 60_000,
}, async (context) => {
  const { start, lines } = await playManager(context, 0.05);
  const daemon = await start(['true']);
  expect(await daemon.exit()).toMatchObject({ code: 0 });
  expect(lines()).toEqual(expect.arrayContaining(['READY=1', 'STOPPING=1']));
  expect(lines().at(-1)).toBe('STATUS=Stopped: no timer is armed');
  expect(daemon.logged('notify-failed')).toEqual([]);
});

test.concurrent.for(['run', 'exec'] as const)(
  'a second signal to %s, while a slow service manager is told of a stop that is over, calls it no failure',
  { timeout: 60_000 },
  async (command, context) => {
    const { exchange, start } = await playManager(context, 2);
    const daemon = await (command === 'exec' ? start(BOT) : start());
    await (command === 'exec' ? botSays(daemon, 'started') : daemon.ready());
    daemon.signal('SIGTERM');
    await eventually('the end of the stop', 15_000, () => daemon.logged('stopped')[0]);
    expect(await endBy(daemon)).toBe(0);
    expect(daemon.logged('exit-at-once')).toEqual([]);
    expect(await exchange.event('timer-deleted', 1000)).toMatchObject({ market: MARKET });
  },
);
