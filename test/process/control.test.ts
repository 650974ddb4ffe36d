import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import type { StatusDocument } from '../../src/operator/status.ts';
import { type Asked, asker, controlsOf, type Reply } from './control.ts';
import { type DaemonProcess, everythingSaidBy, shownIn } from './daemon.ts';
import { guard, type Scope, scopeOfBlock, stageFor } from './harness.ts';
import { eventually, heldBackMs, MAIN, ROOT, sleep } from './program.ts';
import { DEMO, longestGapDuring, longestGapMs, ofKind } from './simulated-exchange.ts';

const TOKEN = 'T7-the.token_of+this/test=9876543210';
const SECRET = 'S5-the.secret_of+this/test=0123456789';
const AUTHORISED = { authorization: `Bearer ${TOKEN}` };
const WRONG_TOKEN = 'W1-a.wrong_token_of+this/test=5555';
const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];
/** At the usual cadence of a timer of 10 s it is a second: this is a renewal that came 3 s late. */
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
    markets: MARKETS.map((market) => ({ market, timeoutSeconds: 10 })),
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
  const status = async () => JSON.parse((await daemon.get('/api/v1/status')).body) as StatusDocument;
  await eventually('the bot alive', 5000, async () => (await status()).bots[0]?.state === 'alive');

  /** What a command could have changed. */
  const settings = async () => {
    const { phase, shutdownPolicy, bots, markets } = await status();
    const ofBots = bots.map(({ bot, state }) => [bot, state]);
    const ofMarkets = markets.map((one) => [one.market, one.state, one.hold, one.timeoutSeconds]);
    return [phase, shutdownPolicy, (await ask('/v1/log-level')).body, ofBots, ofMarkets];
  };
  /** Returns what shows that since then nothing was changed, and that every renewal came in time. */
  const nothingHappens = async (): Promise<() => Promise<void>> => {
    const before = await settings();
    const heldBefore = heldBackMs(daemon.pid, exchange.pid);
    const fromMs = await exchange.nowMs();
    return async () => {
      // The page of metrics may be a second old.
      await sleep(1100);
      expect(await settings()).toEqual(before);
      const toMs = await exchange.nowMs();
      const events = await exchange.events();
      expect(events.filter(({ kind, atMs }) => atMs >= fromMs && kind !== 'timer-updated')).toEqual([]);
      const longestMs = LONGEST_GAP_MS + heldBackMs(daemon.pid, exchange.pid) - heldBefore;
      for (const market of MARKETS)
        expect(longestGapMs(events, market, fromMs, toMs), market).toBeLessThanOrEqual(longestMs);
    };
  };
  return { stage, daemon, unix, tcp, ask, nothingHappens };
}

/** How many requests were refused, for one reason where it is given. */
const refusedBy = (daemon: DaemonProcess, reason?: string) =>
  daemon.metric('killswitch_control_refused_total', reason === undefined ? {} : { reason });

const secretsShownBy = async (daemon: DaemonProcess, more = '') =>
  shownIn((await everythingSaidBy(daemon)) + more, [TOKEN, SECRET, WRONG_TOKEN]);

/** What of a thousand requests each sends: five of seven are refused, each for another reason. */
function sending(overUnix: Play['ask'], overTcp: Play['ask']) {
  return (_: unknown, index: number): Promise<Reply> => {
    if (index % 7 === 4) return overTcp('/v1/trip', { headers: { authorization: `Bearer ${WRONG_TOKEN}` } });
    const listener = index % 2 === 0 ? overUnix : overTcp;
    const headers: Record<string, string> = index % 2 === 0 ? {} : AUTHORISED;
    const refused: readonly Asked[] = [
      { headers: { ...headers, origin: 'https://evil.example' } },
      { headers, body: { markets: ['x'.repeat(70_000)] } },
      { headers, body: '{"markets":' },
      { headers, body: { markets: [`M${index}_USDT`] } },
    ];
    const asked = refused[index % 7];
    return asked ? listener('/v1/trip', asked) : listener('/v1/beat', { headers, body: {} });
  };
}

/** Two hundred readers of metrics and status page at a time, and forty that never read, for so long; the answers. */
async function readPages(scope: Scope, daemon: DaemonProcess, forMs: number): Promise<Set<number>> {
  const web = new URL(await daemon.web());
  const pathOf = (index: number) => (index % 2 === 0 ? '/metrics' : '/');
  for (let index = 0; index < 40; index += 1) {
    const socket = connect({ host: '127.0.0.1', port: Number(web.port) });
    socket.on('error', () => undefined).pause();
    socket.write(`GET ${pathOf(index)} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`.repeat(20));
    scope.onTestFinished(() => void socket.destroy());
  }
  // With the silent ones fewer than 224: from there on a slow request is let go for whoever comes.
  const ask = asker(scope, web.origin, 180);
  const statuses = new Set<number>();
  const untilMs = performance.now() + forMs;
  const read = async (_: unknown, index: number) => {
    while (performance.now() < untilMs) {
      statuses.add((await ask(pathOf(index), { method: 'GET' })).status);
      await sleep(100);
    }
  };
  await Promise.all(Array.from({ length: 200 }, read));
  return statuses;
}

// One daemon is asked by one test after the other.
describe('listeners delay no renewal, change nothing and', { timeout: 60_000 }, () => {
  const scope = scopeOfBlock();
  let playing: Promise<Play>;

  test('answer a thousand requests at once, good beats among them, again and again, and many readers', async (context) => {
    playing = play(scope);
    const { daemon, unix, tcp, nothingHappens } = await playing;
    const judgeRest = await nothingHappens();
    const send = sending(asker(scope, unix, 50), asker(scope, tcp, 50));
    const untilMs = performance.now() + 1500;
    const codes: string[] = [];
    let beats = 0;
    while (performance.now() < untilMs) {
      const replies = await Promise.all(Array.from({ length: 1000 }, send));
      const counts = [200, 400, 401, 403, 404, 413].map(
        (wanted) => replies.filter(({ status }) => status === wanted).length,
      );
      expect(counts).toEqual([285, 143, 143, 143, 143, 143]);
      const refused = replies.filter(({ status }) => status !== 200);
      expect(refused.filter(({ message }) => message === '')).toEqual([]);
      codes.push(...refused.map(({ code }) => String(code)));
      beats += 285;
    }
    // Answered, or told to come back: nothing else, and no broken connection.
    const statuses = await readPages(context, daemon, 2000);
    expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
    expect(statuses).toContain(200);
    await judgeRest();
    for (const [code, all] of Map.groupBy(codes, String))
      expect([code, await refusedBy(daemon, code)]).toEqual([code, all.length]);
    expect(await refusedBy(daemon)).toBe(codes.length);
    // One is from before.
    expect(await daemon.metric('killswitch_bot_beats_total')).toBe(1 + beats);
    expect(daemon.logged('control-refused').length).toBe(new Set(codes).size);
    expect(await secretsShownBy(daemon)).toEqual([]);
  });

  test('refuse another user of the host, at the socket and over loopback', async (context) => {
    if (process.getuid?.() !== 0) {
      console.log('not tried: another user of the host (only root can become one)');
      return context.skip('only root can become another user');
    }
    const { stage, daemon, unix, tcp, nothingHappens } = await playing;
    const refused = async () => [await refusedBy(daemon), await refusedBy(daemon, 'unauthorised')];
    const before = await refused();
    const judgeRest = await nothingHappens();
    // So that nothing but the socket itself stands in the way.
    chmodSync(stage.directory, 0o755);
    expect(statSync(unix.slice('unix:'.length)).mode & 0o777).toBe(0o600);

    const trip = (...args: string[]) => asNobody([MAIN, 'trip', '--yes', '--control', ...args]);
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
    await judgeRest();
    expect(await refused()).toEqual(before.map((count) => count + 1));
  });

  test('repeat no secret that a request or a file holds in a place where it has no business', async () => {
    const { daemon, ask, nothingHappens } = await playing;
    const judgeRest = await nothingHappens();
    const replies: Reply[] = [];
    for (const text of [TOKEN, SECRET]) {
      const encoded = encodeURIComponent(text);
      for (const path of [`beat?bot=${encoded}`, `beat?${encoded}=1`, encoded])
        replies.push(await ask(`/v1/${path}`));
      for (const body of [{ markets: [text] }, { [text]: 1 }]) replies.push(await ask('/v1/trip', { body }));
      replies.push(await ask('/v1/log-level', { body: { level: text } }));
      replies.push(await ask('/v1/trip', { headers: { 'content-type': text }, body: '{}' }));
    }
    expect(replies.filter(({ status }) => status < 400)).toEqual([]);

    const { log, markets, ...rest } = JSON.parse(readFileSync(daemon.configFile, 'utf8'));
    const reject = async (config: unknown) => {
      writeFileSync(daemon.configFile, JSON.stringify(config));
      replies.push(await ask('/v1/reload'));
      expect(replies.at(-1)).toMatchObject({ status: 422, code: 'config_rejected' });
    };
    await reject({ ...rest, markets, log: { level: SECRET } });
    await reject({ ...rest, log, markets: [TOKEN, SECRET] });
    // What the loader cannot know because the file is gone, the daemon still does.
    writeFileSync(daemon.secretFile, '');
    await reject({ ...rest, markets, log: { level: SECRET } });
    await judgeRest();
    const texts = replies.map(({ text }) => text).join();
    expect(texts).toContain('[redacted]');
    expect(await secretsShownBy(daemon, texts)).toEqual([]);
  });
});

/** Runs Node as the user that owns nothing, from the folder of the program. */
async function asNobody(args: readonly string[]) {
  const nobody = { uid: 65_534, gid: 65_534, cwd: ROOT, env: { PATH: process.env['PATH'] } };
  const child = spawn(process.execPath, args, { ...nobody, timeout: 30_000 });
  const [err] = await Promise.all([text(child.stderr), once(child, 'close')]);
  return { err, code: child.exitCode };
}

test.concurrent('clients that fill every listener do not take the descriptors of renewals', {
  timeout: 60_000,
}, async (context) => {
  const { exchange, daemon } = await guard(context, {
    markets: MARKETS,
    prefix: ['prlimit', '--nofile=512:512'],
    timeoutSeconds: 5,
    control: true,
  });
  expect(daemon.logged('few-descriptors')).toHaveLength(1);
  const web = new URL(await daemon.web());
  const sockets: Socket[] = [];
  let over = false;
  context.onTestFinished(() => {
    over = true;
    for (const socket of sockets) socket.destroy();
  });
  const keepOpen = (open: () => Socket): void => {
    if (over) return;
    const socket = open();
    sockets.push(socket);
    socket.on('error', () => undefined);
    // Asks for something and does not read the answer, and comes back whenever it is sent away.
    socket.write('GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n');
    socket.once('close', () => setTimeout(() => keepOpen(open), 200));
  };
  for (let client = 0; client < 600; client += 1) {
    keepOpen(() => connect(Number(web.port), web.hostname));
    keepOpen(() => connect(daemon.socket.replace('unix:', '')));
  }
  const gapMs = await longestGapDuring(exchange, MARKETS, async () => {
    await sleep(2000);
    // New connections are needed.
    await exchange.addFaults({ kind: 'reset', when: 'before', count: 6 });
    await sleep(4500);
  });
  expect(gapMs).toBeLessThan(3500);
  expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
});
