import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { asker, controlsOf, type Reply } from './control.ts';
import type { DaemonProcess } from './daemon.ts';
import { type Scope, scopeOfBlock, stageFor } from './harness.ts';
import { eventually, heldBackMs, MAIN, ROOT, sleep } from './program.ts';
import { everythingSaidBy, shownIn } from './secrets.ts';
import { DEMO, longestGapMs } from './simulated-exchange.ts';

const TOKEN = 'T7-the.token_of+this/test=9876543210';
const SECRET = 'S5-the.secret_of+this/test=0123456789';
const WRONG_TOKEN = 'W1-a.wrong_token_of+this/test=5555';
const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];
const T_SECONDS = 10;
/** At the usual cadence it is a second: this is a renewal that came 3 s late. */
const LONGEST_GAP_MS = 4000;

type Play = Awaited<ReturnType<typeof play>>;

/** A daemon whose bot has beaten, with both kinds of control listener. */
async function play(scope: Scope) {
  const stage = stageFor(scope);
  const exchange = await stage.exchangeProcess(undefined, {
    env: { KILLSWITCHD_API_KEY: DEMO.key, KILLSWITCHD_API_SECRET: SECRET },
  });
  const tokenFile = join(stage.directory, 'token');
  writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 });
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: MARKETS.map((market) => ({ market, timeoutSeconds: T_SECONDS })),
    secret: SECRET,
    config: {
      // One beat lasts for the whole test: no test of the listener is about a bot that falls silent.
      liveness: { mode: 'beat', ttlSeconds: 300 },
      control: { listen: [`unix:${join(stage.directory, 'control.sock')}`, '127.0.0.1:0'], tokenFile },
      log: { level: 'debug' },
    },
  });
  const [unix = '', tcp = ''] = await controlsOf(daemon, 2);
  const ask = asker(scope, unix);
  await daemon.ready();
  expect((await ask('/v1/beat')).status).toBe(200);
  await eventually('the bot alive', 5000, async () =>
    (await statusOf(daemon)).bots[0]?.state === 'alive' ? true : null,
  );
  return { stage, exchange, daemon, unix, tcp, ask, authorised: { authorization: `Bearer ${TOKEN}` } };
}

interface Status {
  readonly phase: string;
  readonly shutdownPolicy: string;
  readonly bots: readonly { readonly bot: string; readonly state: string }[];
  readonly markets: readonly Readonly<Record<string, unknown>>[];
}

const statusOf = async (daemon: DaemonProcess) =>
  JSON.parse((await daemon.get('/api/v1/status')).body) as Status;

/** What of a market moves by itself, with each renewal. */
const MOVING = new Set(
  'guaranteedSeconds expiresAt firesBy serverCancellationTime lastAnswerSeconds lastSlackRatio slackHistory renewals promise survivesSeconds'.split(
    ' ',
  ),
);

/** All that a command could have changed: the status but for what moves by itself, configuration and log level. */
async function settingsOf({ daemon, ask }: Play): Promise<Readonly<Record<string, unknown>>> {
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

/** Returns what shows that since then nothing was changed but what `may` change, and that every renewal came in time. */
async function nothingHappens(stand: Play, ...may: readonly string[]): Promise<() => Promise<void>> {
  const { daemon, exchange } = stand;
  const settled = async () =>
    Object.fromEntries(Object.entries(await settingsOf(stand)).filter(([key]) => !may.includes(key)));
  const before = await settled();
  const heldBefore = heldBackMs(daemon.pid, exchange.pid);
  const fromMs = await exchange.nowMs();
  return async () => {
    expect(await settled()).toEqual(before);
    const toMs = await exchange.nowMs();
    const events = await exchange.events();
    expect(events.filter(({ kind, atMs }) => atMs >= fromMs && kind !== 'timer-updated')).toEqual([]);
    const longestMs = LONGEST_GAP_MS + heldBackMs(daemon.pid, exchange.pid) - heldBefore;
    for (const market of MARKETS)
      expect(longestGapMs(events, market, fromMs, toMs), market).toBeLessThanOrEqual(longestMs);
  };
}

/** How many requests were refused, for one reason where it is given. */
const refusedBy = (daemon: DaemonProcess, reason?: string) =>
  daemon.metric('killswitch_control_refused_total', reason === undefined ? {} : { reason });

/** The page of metrics may be a second old. */
const renewedPage = () => sleep(1100);

async function secretsShownBy(daemon: DaemonProcess, replies: readonly string[]): Promise<string[]> {
  return shownIn([await everythingSaidBy(daemon), ...replies].join('\n'), [TOKEN, SECRET, WRONG_TOKEN]);
}

const THOUSAND = Array.from({ length: 1000 }, (_, index) => index);

/** What of a thousand requests each sends: five of seven are refused, each for another reason. */
function sending(overUnix: Play['ask'], overTcp: Play['ask'], { authorised }: Play) {
  return (index: number): Promise<Reply> => {
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
        return overTcp('/v1/trip', { headers: { authorization: `Bearer ${WRONG_TOKEN}` } });
      default:
        return listener('/v1/beat', { headers, body: {} });
    }
  };
}

// One daemon is asked by one test after the other.
describe('the control listener delays no renewal, changes nothing and', { timeout: 60_000 }, () => {
  const scope = scopeOfBlock();
  let playing: Promise<Play>;

  test('answers a thousand requests at once, good beats among them, again and again', async () => {
    playing = play(scope);
    const stand = await playing;
    const { daemon, unix, tcp } = stand;
    const judgeRest = await nothingHappens(stand);
    const send = sending(asker(scope, unix, 50), asker(scope, tcp, 50), stand);
    const codes: string[] = [];
    let beats = 0;
    for (const untilMs = performance.now() + 1500; performance.now() < untilMs; ) {
      const replies = await Promise.all(THOUSAND.map(send));
      for (const { status, code, text } of replies) {
        if (status === 200) beats += 1;
        else codes.push(String(code));
        if (status !== 200) expect(text).toContain('"message":');
      }
      const counts = [200, 400, 401, 403, 404, 413].map(
        (wanted) => replies.filter(({ status }) => status === wanted).length,
      );
      expect(counts).toEqual([285, 143, 143, 143, 143, 143]);
    }
    await renewedPage();
    for (const [code, all] of Map.groupBy(codes, String))
      expect([code, await refusedBy(daemon, code)]).toEqual([code, all.length]);
    expect(await refusedBy(daemon)).toBe(codes.length);
    // One is from before.
    expect(await daemon.metric('killswitch_bot_beats_total')).toBe(1 + beats);
    await judgeRest();
    expect(daemon.logged('control-refused').length).toBe(new Set(codes).size);
    expect(await secretsShownBy(daemon, [])).toEqual([]);
  });

  test('refuses another user of the host, at the socket and over loopback', async (context) => {
    if (process.getuid?.() !== 0) {
      console.log('not tried: another user of the host (only root can become one)');
      return context.skip('only root can become another user');
    }
    const stand = await playing;
    const { stage, daemon, unix, tcp } = stand;
    const refused = async () => [await refusedBy(daemon), await refusedBy(daemon, 'unauthorised')];
    const before = await refused();
    const judgeRest = await nothingHappens(stand);
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
    const trip = (...args: string[]) => asNobody(context, [MAIN, 'trip', '--yes', '--control', ...args]);
    const command = await trip(unix);
    expect(command.code).toBe(69);
    expect(command.err).toContain(
      `this user may not use ${unix}: the socket belongs to the user with the id 0 and has the mode 0600`,
    );
    const { host } = new URL(tcp);
    const overLoopback = await trip(host);
    expect(overLoopback.code).toBe(77);
    expect(overLoopback.err).toContain('refuses the command: found no Authorization header');
    const withToken = await trip(host, '--token-file', join(stage.directory, 'token'));
    expect(withToken.err).toContain('may not be read by this user');

    await renewedPage();
    expect(await refused()).toEqual(before.map((count) => count + 1));
    await judgeRest();
  });

  test('repeats no secret that a request or a file holds in a place where it has no business', async () => {
    const stand = await playing;
    const { daemon, ask } = stand;
    const judgeRest = await nothingHappens(stand, 'config', 'reloads');
    const replies: Reply[] = [];
    for (const text of [TOKEN, SECRET]) {
      replies.push(
        await ask(`/v1/beat?bot=${encodeURIComponent(text)}`),
        await ask(`/v1/beat?${encodeURIComponent(text)}=1`),
        await ask(`/v1/${encodeURIComponent(text)}`),
        await ask('/v1/trip', { body: { markets: [text] } }),
        await ask('/v1/trip', { body: { [text]: 1 } }),
        await ask('/v1/log-level', { body: { level: text } }),
        await ask('/v1/trip', { headers: { 'content-type': text }, body: '{}' }),
      );
    }
    expect(replies.filter(({ status }) => status < 400)).toEqual([]);

    const { log, markets, ...rest } = JSON.parse(readFileSync(daemon.configFile, 'utf8'));
    const reject = async (config: unknown) => {
      writeFileSync(daemon.configFile, JSON.stringify(config));
      const reply = await ask('/v1/reload');
      expect([reply.status, reply.code]).toEqual([422, 'config_rejected']);
      replies.push(reply);
    };
    await reject({ ...rest, markets, log: { level: SECRET } });
    await reject({ ...rest, log, markets: [TOKEN, SECRET] });
    // What the loader cannot know because the file is gone, the daemon still does.
    writeFileSync(daemon.secretFile, '');
    await reject({ ...rest, markets, log: { level: SECRET } });
    await renewedPage();
    await judgeRest();
    const texts = replies.map(({ text }) => text);
    expect(texts.join()).toContain('[redacted]');
    expect(await secretsShownBy(daemon, texts)).toEqual([]);
  });
});

/** Runs Node as the user that owns nothing, from the folder of the program. */
async function asNobody(scope: Scope, args: readonly string[]) {
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    uid: 65_534,
    gid: 65_534,
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  scope.onTestFinished(() => void child.kill('SIGKILL'));
  const said = { out: '', err: '' };
  child.stdout.on('data', (text) => {
    said.out += text;
  });
  child.stderr.on('data', (text) => {
    said.err += text;
  });
  await once(child, 'close');
  return { ...said, code: child.exitCode };
}
