import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, type TestContext, test } from 'vitest';
import { type Ask, type Asked, asker, controlsOf, type Reply, say } from './control.ts';
import type { DaemonProcess } from './daemon.ts';
import { type Stage, stageFor } from './harness.ts';
import { ROOT, sleep } from './program.ts';
import { DEMO, type Events, type ExchangeProcess, longestGapMs } from './simulated-exchange.ts';

const TOKEN = 'T7-the.token_of+this/test=9876543210';
const SECRET = 'S5-the.secret_of+this/test=0123456789';
const WRONG_TOKEN = 'W1-a.wrong_token_of+this/test=5555';
const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];
const T_SECONDS = 10;
/** How often such a market is renewed. */
const PERIOD_MS = 1000;
/** At the usual cadence it is 0.9: this is a renewal that came 3 s late. */
const LEAST_SLACK = 0.6;
const THOUSAND = Array.from({ length: 1000 }, (_, index) => index);

/** A daemon whose bot beats, with both kinds of control listener. */
interface Play {
  readonly stage: Stage;
  readonly exchange: ExchangeProcess;
  readonly daemon: DaemonProcess;
  readonly unix: string;
  readonly tcp: string;
  readonly authorised: Asked['headers'];
}

async function play(context: TestContext): Promise<Play> {
  const stage = stageFor(context);
  const exchange = await stage.exchange(undefined, {
    env: { KILLSWITCHD_API_KEY: DEMO.key, KILLSWITCHD_API_SECRET: SECRET },
  });
  const tokenFile = join(stage.directory, 'token');
  writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 });
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: MARKETS.map((market) => ({ market, timeoutSeconds: T_SECONDS })),
    secret: SECRET,
    config: {
      liveness: { mode: 'beat' },
      control: { listen: [`unix:${join(stage.directory, 'control.sock')}`, '127.0.0.1:0'], tokenFile },
      log: { level: 'debug' },
    },
  });
  const [unix = '', tcp = ''] = await controlsOf(daemon, 2);
  await daemon.ready();
  expect((await asker(context, unix)('/v1/beat')).status).toBe(200);
  return { stage, exchange, daemon, unix, tcp, authorised: { authorization: `Bearer ${TOKEN}` } };
}

interface Status {
  readonly phase: string;
  readonly shutdownPolicy: string;
  readonly bots: readonly { readonly bot: string; readonly state: string }[];
  readonly markets: readonly {
    readonly market: string;
    readonly state: string;
    readonly failures: number;
    readonly lapses: number;
    readonly slackHistory: readonly number[];
  }[];
}

async function statusOf(daemon: DaemonProcess): Promise<Status> {
  return JSON.parse((await daemon.get('/api/v1/status')).body) as Status;
}

/** What of a market moves by itself, with each renewal. */
const MOVING = new Set(
  'guaranteedSeconds expiresAt firesBy serverCancellationTime lastAnswerSeconds lastSlackRatio slackHistory renewals'.split(
    ' ',
  ),
);

/** All that a command could have changed: the status but for what moves by itself, configuration and log level. */
async function settingsOf({ daemon }: Play, ask: Ask): Promise<unknown> {
  const { phase, shutdownPolicy, bots, markets } = await statusOf(daemon);
  return {
    phase,
    shutdownPolicy,
    bots: bots.map(({ bot, state }) => [bot, state]),
    markets: markets.map((market) =>
      Object.fromEntries(Object.entries(market).filter(([key]) => !MOVING.has(key))),
    ),
    level: (await ask('/v1/log-level', { body: {} })).body,
    config: await daemon.metric('killswitch_config_hash'),
    reloads: await daemon.metric('killswitch_config_reloads_total'),
  };
}

interface Slack {
  /** Cumulated renewals by the upper end of their bucket, as the histogram has them. */
  readonly buckets: ReadonlyMap<string, number>;
  /** Of the last 60 renewals of each market. */
  readonly least: number;
}

async function slackOf(daemon: DaemonProcess): Promise<Slack> {
  await sleep(1100);
  const { body } = await daemon.get('/metrics');
  const buckets = body.matchAll(/^killswitch_renewal_slack_ratio_bucket\{le="([^"]+)"\} (\d+)$/gm);
  const { markets } = await statusOf(daemon);
  return {
    buckets: new Map([...buckets].map(([, end = '', count]) => [end, Number(count)])),
    least: Math.min(...markets.flatMap(({ slackHistory }) => slackHistory)),
  };
}

/** Shows the histogram, and fails where a renewal came late. */
function judgeSlack(when: string, { buckets, least }: Slack): void {
  let below = 0;
  const counts = [...buckets].flatMap(([end, count]) => {
    const here = count - below;
    below = count;
    return here === 0 ? [] : [end === '+Inf' ? `${here} above` : `${here} up to ${end}`];
  });
  console.log(`slack ratio of the renewals ${when}: ${counts.join(', ')}; the least is ${least}`);
  expect(below).toBeGreaterThan(MARKETS.length);
  expect(buckets.get(String(LEAST_SLACK))).toBe(0);
  expect(least).toBeGreaterThan(LEAST_SLACK);
}

/** Everything since `fromMs` that is not a renewal of a timer that stands. */
function otherThanRenewals(events: Events, fromMs: number): Events {
  return events.filter(({ kind, atMs }) => atMs >= fromMs && kind !== 'timer-updated');
}

async function expectNoGap({ exchange }: Play, fromMs: number): Promise<void> {
  const events = await exchange.events();
  const toMs = await exchange.nowMs();
  expect(otherThanRenewals(events, fromMs)).toEqual([]);
  for (const market of MARKETS) {
    expect(longestGapMs(events, market, fromMs, toMs), market).toBeLessThanOrEqual(PERIOD_MS + 1000);
  }
}

type Case = readonly [what: string, path: string, asked: Asked, status: number, code: string];

/** What is refused on both kinds of listener, to whoever may use them. */
const REFUSED: readonly Case[] = [
  ['a web page', '/v1/trip', { headers: { origin: 'https://evil.example' } }, 403, 'foreign_origin'],
  ['a page of this host', '/v1/trip', { headers: { origin: 'http://localhost' } }, 403, 'foreign_origin'],
  ['an image in a page', '/v1/trip', { headers: { 'sec-fetch-site': 'cross-site' } }, 403, 'foreign_origin'],
  ['more than 64 KiB', '/v1/trip', { body: { markets: ['x'.repeat(65_536)] } }, 413, 'too_large'],
  ['no JSON', '/v1/trip', { body: '{"markets":["AAA_USDT"' }, 400, 'malformed_json'],
  ['JSON of another shape', '/v1/trip', { body: [] }, 400, 'invalid_value'],
  ['an unknown key', '/v1/disarm', { body: { market: 'AAA_USDT' } }, 400, 'unknown_key'],
  ['a pause without an end', '/v1/pause', { body: {} }, 400, 'invalid_value'],
  ['an unknown command', '/v1/disarm-all', {}, 404, 'unknown_path'],
  ['an unknown market', '/v1/trip', { body: { markets: ['AAA_USDT', 'XXX_USDT'] } }, 404, 'unknown_market'],
  ['an unknown bot', '/v1/goodbye?bot=nobody', {}, 404, 'unknown_bot'],
  ['another method', '/v1/trip', { method: 'GET' }, 405, 'wrong_method'],
  [
    'what a form sends',
    '/v1/disarm',
    { body: 'markets=AAA_USDT', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    415,
    'wrong_content_type',
  ],
  ['headers without end', '/v1/trip', { headers: { 'x-long': 'x'.repeat(9000) } }, 431, 'headers_too_large'],
];

/** What is refused over loopback only: at a socket the permissions of the file decide. */
const REFUSED_OVER_LOOPBACK: readonly Case[] = [
  ['a foreign Host', '/v1/trip', { headers: { host: 'evil.example' } }, 421, 'wrong_host'],
  [
    'a name that only begins well',
    '/v1/trip',
    { headers: { host: 'localhost.evil.example' } },
    421,
    'wrong_host',
  ],
  ['no token', '/v1/trip', { headers: { authorization: '' } }, 401, 'unauthorised'],
  ['a wrong token', '/v1/trip', { headers: { authorization: `Bearer ${WRONG_TOKEN}` } }, 401, 'unauthorised'],
  [
    'a part of the token',
    '/v1/trip',
    { headers: { authorization: `Bearer ${TOKEN.slice(0, -1)}` } },
    401,
    'unauthorised',
  ],
  [
    'the token as a password',
    '/v1/trip',
    { headers: { authorization: `Basic ${TOKEN}` } },
    401,
    'unauthorised',
  ],
  [
    'the token in the query',
    `/v1/trip?token=${encodeURIComponent(TOKEN)}`,
    { headers: { authorization: '' } },
    401,
    'unauthorised',
  ],
  ['the token as a key', `/v1/beat?${encodeURIComponent(TOKEN)}=1`, {}, 400, 'unknown_key'],
];

/** How often each code was counted. The page may be a second old. */
async function refusalsCounted(daemon: DaemonProcess): Promise<Record<string, number>> {
  await sleep(1100);
  const { body } = await daemon.get('/metrics');
  const counted = body.matchAll(/^killswitch_control_refused_total\{reason="([^"]+)"\} (\d+)$/gm);
  return Object.fromEntries(
    [...counted]
      .filter(([, , count]) => count !== '0')
      .map(([, reason = '', count]) => [reason, Number(count)]),
  );
}

function tally(codes: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const code of codes) counts[code] = (counts[code] ?? 0) + 1;
  return counts;
}

/** The secret in the forms that a careless program would show it in. */
const formsOf = (text: string) => [
  text,
  encodeURIComponent(text),
  Buffer.from(text).toString('base64'),
  Buffer.from(text).toString('hex'),
];

async function secretsShownBy(daemon: DaemonProcess, replies: readonly string[]): Promise<string[]> {
  const paths = ['/metrics', '/api/v1/status', '/', '/readyz?verbose'];
  const pages = await Promise.all(paths.map(async (path) => (await daemon.get(path)).body));
  const shown = [daemon.stdout(), daemon.stderr(), ...replies, ...pages];
  return [TOKEN, SECRET, WRONG_TOKEN]
    .flatMap(formsOf)
    .filter((form) => shown.some((text) => text.includes(form)));
}

describe.concurrent('the control listener refuses, and changes nothing:', { timeout: 60_000 }, () => {
  test('foreign origins and hosts, no token, too much, nonsense, unknown commands, and the web port', async (context) => {
    const stand = await play(context);
    const { exchange, daemon, unix, tcp, authorised } = stand;
    const askUnix = asker(context, unix);
    const askTcp = asker(context, tcp);
    const before = await settingsOf(stand, askUnix);
    const fromMs = await exchange.nowMs();
    const replies: Reply[] = [];
    const expectRefused = async (ask: Ask, [what, path, asked, status, code]: Case) => {
      const reply = await ask(path, asked);
      expect([what, reply.status, reply.code]).toEqual([what, status, code]);
      replies.push(reply);
    };
    for (const refused of REFUSED) {
      await expectRefused(askUnix, refused);
      const [what, path, asked, ...answer] = refused;
      const headers = { ...authorised, ...asked.headers };
      await expectRefused(askTcp, [what, path, { ...asked, headers }, ...answer]);
    }
    for (const [what, path, asked, ...answer] of REFUSED_OVER_LOOPBACK) {
      const { authorization, ...headers } = { ...authorised, ...asked.headers };
      const sent =
        authorization === '' || authorization === undefined ? headers : { ...headers, authorization };
      await expectRefused(askTcp, [what, path, { ...asked, headers: sent }, ...answer]);
    }
    for (const address of [unix, tcp]) {
      expect(await say(context, address, 'TRIP everything\r\n\r\n')).toMatch(
        /^HTTP\/1\.1 400 [^]*"code":"malformed_request"/,
      );
    }
    const codes = [...replies.map(({ code }) => String(code)), 'malformed_request', 'malformed_request'];
    expect(await refusalsCounted(daemon)).toEqual(tally(codes));

    const web = await daemon.web();
    for (const path of ['/v1/trip', '/v1/beat', '/v1/reload', '/api/v1/status']) {
      const reply = await asker(context, web)(path, { body: {}, headers: authorised ?? {} });
      expect([path, reply.status, reply.text.trim()]).toEqual([path, 405, 'this listener is read-only']);
    }
    expect((await asker(context, web)('/v1/status', { method: 'GET' })).status).toBe(404);

    await sleep(1500);
    expect(await settingsOf(stand, askUnix)).toEqual(before);
    await expectNoGap(stand, fromMs);
    expect(daemon.logged('control-refused').length).toBe(new Set(codes).size);
    expect(
      await secretsShownBy(
        daemon,
        replies.map(({ text }) => text),
      ),
    ).toEqual([]);
  });

  test('another user of the host, at the socket and over loopback', async (context) => {
    if (process.getuid?.() !== 0) {
      console.log('not tried: another user of the host (only root can become one)');
      return context.skip('only root can become another user');
    }
    const stand = await play(context);
    const { stage, exchange, daemon, unix, tcp } = stand;
    const ask = asker(context, unix);
    const before = await settingsOf(stand, ask);
    const fromMs = await exchange.nowMs();
    // So that nothing but the socket itself stands in the way.
    chmodSync(stage.directory, 0o755);
    const path = unix.slice('unix:'.length);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(path))).toContain('control.sock');

    const knock = await asNobody(context, [
      '-e',
      `require('node:http').request({ socketPath: ${JSON.stringify(path)}, path: '/v1/trip', method: 'POST' })
        .on('error', ({ code }) => console.log(code)).on('response', ({ statusCode }) => console.log(statusCode)).end()`,
    ]);
    expect(knock.out).toBe('EACCES\n');
    const command = await asNobody(context, ['src/main.ts', 'trip', '--yes', '--control', unix]);
    expect(command.code).toBe(69);
    expect(command.err).toContain(
      `this user may not use ${unix}: the socket belongs to the user with the id 0 and has the mode 0600`,
    );
    const host = new URL(tcp).host;
    const overLoopback = await asNobody(context, ['src/main.ts', 'trip', '--yes', '--control', host]);
    expect(overLoopback.code).toBe(77);
    expect(overLoopback.err).toContain('refuses the command: found no Authorization header');
    const tokenFile = join(stage.directory, 'token');
    const withToken = await asNobody(context, [
      'src/main.ts',
      'trip',
      '--yes',
      '--control',
      host,
      '--token-file',
      tokenFile,
    ]);
    expect(withToken.err).toContain('may not be read by this user');

    expect(await refusalsCounted(daemon)).toEqual({ unauthorised: 1 });
    expect(await settingsOf(stand, ask)).toEqual(before);
    await expectNoGap(stand, fromMs);
  });

  test('a thousand at once, good beats among them, again and again, while every renewal comes in time', async (context) => {
    const stand = await play(context);
    const { exchange, daemon, unix, tcp, authorised = {} } = stand;
    const ask = asker(context, unix);
    const before = await settingsOf(stand, ask);
    const beatsBefore = await daemon.metric('killswitch_bot_beats_total');
    const fromMs = await exchange.nowMs();
    const overUnix = asker(context, unix, 50);
    const overTcp = asker(context, tcp, 50);
    const send = (index: number): Promise<Reply> => {
      const listener = index % 2 === 0 ? overUnix : overTcp;
      const headers: Record<string, string> = index % 2 === 0 ? {} : authorised;
      switch (index % 7) {
        case 0:
          return listener('/v1/trip', { headers: { ...headers, origin: 'https://evil.example' } });
        case 1:
          return listener('/v1/trip', { headers, body: { markets: ['x'.repeat(70_000)] } });
        case 2:
          return listener('/v1/disarm', { headers, body: '{"markets":' });
        case 3:
          return listener('/v1/trip', { headers, body: { markets: [`M${index}_USDT`] } });
        case 4:
          return overTcp('/v1/trip');
        default:
          return listener('/v1/beat', { headers, body: {} });
      }
    };
    const expected: Record<string, number> = {};
    let beats = 0;
    for (const untilMs = performance.now() + 6000; performance.now() < untilMs; ) {
      const replies = await Promise.all(THOUSAND.map(send));
      for (const { status, code, text } of replies) {
        if (status === 200) beats += 1;
        else expected[String(code)] = (expected[String(code)] ?? 0) + 1;
        if (status !== 200) expect(text).toContain('"message":');
      }
      expect(tally(replies.map(({ status }) => String(status)))).toEqual({
        200: 285,
        400: 143,
        401: 143,
        403: 143,
        404: 143,
        413: 143,
      });
    }
    judgeSlack(
      `while ${beats} beats and ${Object.values(expected).reduce((sum, one) => sum + one, 0)} refused requests came in`,
      await slackOf(daemon),
    );
    expect(await refusalsCounted(daemon)).toEqual(expected);
    expect((await daemon.metric('killswitch_bot_beats_total')) - beatsBefore).toBe(beats);
    expect(await settingsOf(stand, ask)).toEqual(before);
    await expectNoGap(stand, fromMs);
    expect(daemon.logged('control-refused').length).toBe(Object.keys(expected).length);
    expect(await secretsShownBy(daemon, [])).toEqual([]);
  });

  test('a thousand connections at once, and the bot that was there before them goes on beating', async (context) => {
    const stand = await play(context);
    const { exchange, daemon, unix, tcp, authorised = {} } = stand;
    const bot = asker(context, unix);
    await bot('/v1/beat');
    await bot('/v1/beat');
    const before = await settingsOf(stand, bot);
    const fromMs = await exchange.nowMs();
    const overUnix = asker(context, unix, 500);
    const overTcp = asker(context, tcp, 500);
    const ends: string[] = [];
    const beatStatuses: number[] = [];
    for (const untilMs = performance.now() + 4000; performance.now() < untilMs; ) {
      const asked = THOUSAND.map((index) =>
        index % 2 === 0 ? overUnix('/v1/trip', { body: '{' }) : overTcp('/v1/beat', { headers: authorised }),
      );
      beatStatuses.push((await bot('/v1/beat')).status);
      for (const end of await Promise.allSettled(asked)) {
        ends.push(end.status === 'fulfilled' ? `${end.value.status} ${end.value.code}` : 'closed');
      }
    }
    const counts = tally(ends);
    console.log(`a thousand connections at once came to: ${JSON.stringify(counts)}`);
    const allowed = ['200 null', '400 malformed_json', '503 too_many_connections', 'closed'];
    expect(Object.keys(counts).filter((end) => !allowed.includes(end))).toEqual([]);
    expect(beatStatuses.filter((status) => status !== 200)).toEqual([]);
    judgeSlack('while a thousand connections came at once', await slackOf(daemon));
    expect(await settingsOf(stand, bot)).toEqual(before);
    await expectNoGap(stand, fromMs);
  });
});

/** Runs Node as the user that owns nothing, from the folder of the program. */
async function asNobody({ onTestFinished }: TestContext, args: readonly string[]) {
  const child: ChildProcess = spawn(process.execPath, args, {
    cwd: ROOT,
    uid: 65_534,
    gid: 65_534,
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const said = { out: '', err: '' };
  child.stdout?.on('data', (text) => {
    said.out += text;
  });
  child.stderr?.on('data', (text) => {
    said.err += text;
  });
  await once(child, 'close');
  return { ...said, code: child.exitCode };
}
