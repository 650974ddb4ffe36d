import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { startProcess } from '../liveness/started.ts';
import type { DaemonProcess } from './daemon.ts';
import { type Scope, stageFor } from './harness.ts';
import { type Heard, serve } from './http-server.ts';
import { eventually, sleep } from './program.ts';
import { everythingSaidBy, shownIn } from './secrets.ts';
import { longestGapMs } from './simulated-exchange.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT'];
const T_SECONDS = 5;
/** A path that would give the receiver away, and must be seen nowhere. */
const SECRET_PATH = '/services/T0TOPSECRET/B1CONFIDENTIAL?token=h1dden-value';

/** Answers with a status, or with nothing at all. */
type Manner = number | 'hangs';

interface Told {
  readonly name: string;
  readonly event: string;
  readonly level: string;
  readonly text: string;
  readonly markets: readonly string[];
  readonly count: number;
}

type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Whoever is told, over real HTTP on the loopback. */
async function startReceiver(scope: Scope, manner: Manner) {
  const posts: Heard[] = [];
  let now = manner;
  const url = await serve(scope, (heard, response) => {
    posts.push(heard);
    if (now !== 'hangs') response.writeHead(now).end('ok');
  });
  return {
    url,
    posts,
    /** The bodies of what was posted about this event, as JSON. */
    told: (event: string) =>
      posts
        .filter(({ body }) => body.startsWith('{"name"'))
        .map(({ body }) => JSON.parse(body) as Told)
        .filter((told) => told.event === event),
    behave(next: Manner): void {
      now = next;
    },
  };
}

interface Setting {
  readonly notify?: object;
  readonly mode?: 'beat' | 'none';
  readonly manner?: Manner;
  readonly timeoutSeconds?: number;
}

async function play(context: TestContext, setting: Setting = {}) {
  const { notify, mode = 'none', manner = 200, timeoutSeconds = T_SECONDS } = setting;
  const stage = stageFor(context);
  const [exchange, receiver] = await Promise.all([stage.exchange(), startReceiver(context, manner)]);
  const fileWith = (name: string, url: string) => {
    writeFileSync(join(stage.directory, name), `${url}\n`, { mode: 0o600 });
    return join(stage.directory, name);
  };
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: MARKETS.map((market) => ({ market, timeoutSeconds })),
    control: true,
    config: {
      liveness: { mode, ttlSeconds: 4 },
      notify: {
        urlFile: fileWith('url', receiver.url + SECRET_PATH),
        pingUrlFile: fileWith('ping', `${receiver.url}/ping/UNGUESSABLE-UUID`),
        pingEverySeconds: 5,
        ...notify,
      },
    },
  });
  return { exchange, receiver, daemon };
}

const told = (receiver: Receiver, event: string, withinMs = 40_000) =>
  eventually(`a message about ${event}`, withinMs, () => receiver.told(event)[0] ?? null);
const pings = ({ posts }: Receiver) => posts.filter(({ path }) => path === '/ping/UNGUESSABLE-UUID');

/** Nothing that the daemon says shows any part of an address beside its host. */
async function expectSecrecy(daemon: DaemonProcess): Promise<void> {
  const parts = ['T0TOPSECRET', 'B1CONFIDENTIAL', 'h1dden-value', 'UNGUESSABLE'];
  expect(shownIn(await everythingSaidBy(daemon), parts)).toEqual([]);
}

test.concurrent('a SIGKILLed bot is told of, then that its orders were cancelled, and the pings of the dead man stop', {
  timeout: 120_000,
}, async (context) => {
  const notify = { name: 'main account' };
  const { receiver, daemon } = await play(context, { mode: 'beat', notify });
  const bot = startProcess(context, 'python3', ['config/clients/bot.py'], {
    KILLSWITCHD_CONTROL: daemon.socket,
    PYTHONDONTWRITEBYTECODE: '1',
  });
  await eventually('a ping while all is well', 40_000, () => pings(receiver)[0] ?? null);
  expect(pings(receiver)[0]).toMatchObject({ method: 'GET', body: '' });
  expect(receiver.posts.filter(({ method }) => method === 'POST')).toEqual([]);
  bot.signal('SIGKILL');
  const dead = await told(receiver, 'bot-stale');
  expect(dead).toMatchObject({ name: 'main account', level: 'error', count: 1 });
  expect(dead.text).toMatch(/The orders of its markets are cancelled by \d\d:\d\d:\d\d UTC/);
  const before = pings(receiver).length;
  const fired = await told(receiver, 'fired');
  expect(fired.text).toContain('its orders were cancelled by');
  await eventually('both markets', 10_000, () => {
    const named = new Set(receiver.told('fired').flatMap(({ markets }) => markets));
    return MARKETS.every((market) => named.has(market)) ? true : null;
  });
  await sleep(6000);
  expect(pings(receiver).length - before).toBeLessThanOrEqual(1);
  expect(receiver.posts.find(({ method }) => method === 'POST')?.path).toBe(SECRET_PATH);
  await expectSecrecy(daemon);
});

test.concurrent('an outage is told of at its beginning and its end, and the pings stop for its time, also where timers survive it', {
  timeout: 120_000,
}, async (context) => {
  const { exchange, receiver, daemon } = await play(context, { timeoutSeconds: 600 });
  await daemon.ready();
  await exchange.addFaults({ kind: 'maintenance' });
  expect((await told(receiver, 'outage-began')).text).toMatch(
    /if this lasts, orders are cancelled from \d\d:\d\d:\d\d UTC .* on/,
  );
  const { length } = pings(receiver);
  await sleep(6000);
  expect(pings(receiver)).toHaveLength(length);
  await exchange.clearFaults();
  expect(await told(receiver, 'outage-ended')).toMatchObject({ level: 'info' });
  await eventually('a ping again', 20_000, () => pings(receiver)[length] ?? null);
});

test.concurrent('a refused market and a refused key are told of', { timeout: 60_000 }, async (context) => {
  const { exchange, receiver, daemon } = await play(context);
  await daemon.ready();
  await exchange.addFaults({ kind: 'refusal', status: 422, code: 31, match: { market: 'AAA_USDT' } });
  expect(await told(receiver, 'refused')).toMatchObject({ markets: ['AAA_USDT'] });
  await exchange.clearFaults();
  await exchange.addFaults({ kind: 'unauthorised' });
  expect((await told(receiver, 'unauthorised')).text).toContain('THE API KEY IS REFUSED');
});

test.concurrent('a stop says which timers it left, within its budget, also while messages to the receiver are tried again', {
  timeout: 120_000,
}, async (context) => {
  const { exchange, receiver, daemon } = await play(context, { manner: 503 });
  await daemon.ready();
  await exchange.addFaults({ kind: 'maintenance' });
  await told(receiver, 'outage-began');
  await eventually('another attempt', 20_000, () => receiver.told('outage-began')[1] ?? null);
  const failed = await daemon.metric('killswitch_notify_failures_total', { what: 'message' });
  expect(failed).toBeGreaterThanOrEqual(1);
  receiver.behave(200);
  const before = receiver.posts.length;
  const startMs = performance.now();
  daemon.signal('SIGTERM');
  await daemon.exit(30_000);
  // 8 s for the timers, 3 s for everything else, and a busy machine.
  expect(performance.now() - startMs).toBeLessThan(13_000);
  const [first] = receiver.posts.slice(before).filter(({ body }) => body.includes('"stopped"'));
  expect(JSON.parse(first?.body ?? '{}')).toMatchObject({
    event: 'stopped',
    level: 'error',
    markets: MARKETS,
  });
});

test.concurrent('a receiver that hangs delays no renewal and no stop', {
  timeout: 60_000,
}, async (context) => {
  const { exchange, daemon } = await play(context, { manner: 'hangs' });
  await daemon.ready();
  await exchange.addFaults({ kind: 'maintenance' });
  await eventually('a message to send', 15_000, () => daemon.logged('outage-began')[0] ?? null);
  await exchange.clearFaults();
  await daemon.ready();
  const fromMs = await exchange.nowMs();
  await sleep(4000);
  const events = await exchange.events();
  expect(longestGapMs(events, 'BBB_USDT', fromMs, await exchange.nowMs())).toBeLessThan(3000);
  await expectSecrecy(daemon);
  const startMs = performance.now();
  daemon.signal('SIGTERM');
  expect(await daemon.exit(30_000)).toMatchObject({ code: 0 });
  expect(performance.now() - startMs).toBeLessThan(8000);
  // What the end cuts short has not failed.
  expect(daemon.stdout()).not.toContain('no answer (aborted)');
});
