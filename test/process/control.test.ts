import { readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { StatusDocument } from '../../src/operator/status.ts';
import { type Asked, asker, controlsOf, type Reply } from './control.ts';
import { type DaemonProcess, everythingSaidBy, shownIn } from './daemon.ts';
import { guard, stageFor } from './harness.ts';
import { eventually, heldBackMs, sleep } from './program.ts';
import { DEMO, longestGapDuring, longestGapMs, ofKind } from './simulated-exchange.ts';

const TOKEN = 'T7-the.token_of+this/test=9876543210';
const SECRET = 'S5-the.secret_of+this/test=0123456789';
const AUTHORISED = { authorization: `Bearer ${TOKEN}` };
const WRONG_TOKEN = 'W1-a.wrong_token_of+this/test=5555';
const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];
/** At the usual cadence of a timer of 10 s it is a second: this is a renewal that came 3 s late. */
const LONGEST_GAP_MS = 4000;

type Ask = ReturnType<typeof asker>;

/** What of a thousand requests each sends: five of seven are refused, each for another reason. */
function sending(overUnix: Ask, overTcp: Ask) {
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

/** The replies to requests, and to reloads, that hold a secret in a place where it has no business. */
async function misplaceSecrets(daemon: DaemonProcess, ask: Ask): Promise<string> {
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
  return replies.map(({ text }) => text).join();
}

test('a thousand requests at once, again and again, are answered, delay no renewal, change nothing and bring no secret to light', {
  timeout: 60_000,
}, async (context) => {
  const env = { KILLSWITCHD_API_KEY: DEMO.key, KILLSWITCHD_API_SECRET: SECRET };
  const stage = stageFor(context);
  const exchange = await stage.exchangeProcess(undefined, { env });
  const tokenFile = join(stage.directory, 'token');
  writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 });
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: MARKETS.map((market) => ({ market, timeoutSeconds: 10 })),
    secret: SECRET,
    config: {
      // One beat lasts for the whole test.
      liveness: { mode: 'beat', ttlSeconds: 300 },
      control: { listen: [`unix:${join(stage.directory, 'control.sock')}`, '127.0.0.1:0'], tokenFile },
      log: { level: 'debug' },
    },
  });
  const [unix = '', tcp = ''] = await controlsOf(daemon, 2);
  const ask = asker(context, unix);
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
  const before = await settings();
  const heldBefore = heldBackMs(daemon.pid, exchange.pid);
  const fromMs = await exchange.nowMs();

  const send = sending(asker(context, unix, 50), asker(context, tcp, 50));
  const untilMs = performance.now() + 1500;
  const codes: string[] = [];
  let beats = 1;
  while (performance.now() < untilMs) {
    const replies = await Promise.all(Array.from({ length: 1000 }, send));
    const counts = Map.groupBy(replies, ({ status: one }) => one);
    expect([200, 400, 401, 403, 404, 413].map((one) => counts.get(one)?.length)).toEqual([
      285, 143, 143, 143, 143, 143,
    ]);
    const refused = replies.filter(({ code }) => code !== null);
    expect(refused.filter(({ message }) => message === '')).toEqual([]);
    codes.push(...refused.map(({ code }) => String(code)));
    beats += 285;
  }
  // The page of metrics may be a second old.
  await sleep(1100);
  for (const [reason, all] of Map.groupBy(codes, String))
    expect(await daemon.metric('killswitch_control_refused_total', { reason }), reason).toBe(all.length);
  expect(await daemon.metric('killswitch_control_refused_total')).toBe(codes.length);
  expect(await daemon.metric('killswitch_bot_beats_total')).toBe(beats);
  expect(daemon.logged('control-refused').length).toBe(new Set(codes).size);

  const texts = await misplaceSecrets(daemon, ask);
  expect(texts).toContain('[redacted]');
  expect(shownIn((await everythingSaidBy(daemon)) + texts, [TOKEN, SECRET, WRONG_TOKEN])).toEqual([]);
  await sleep(1100);
  expect(await settings()).toEqual(before);
  const toMs = await exchange.nowMs();
  const events = await exchange.events();
  expect(events.filter(({ kind, atMs }) => atMs >= fromMs && kind !== 'timer-updated')).toEqual([]);
  const longestMs = LONGEST_GAP_MS + heldBackMs(daemon.pid, exchange.pid) - heldBefore;
  for (const market of MARKETS)
    expect(longestGapMs(events, market, fromMs, toMs), market).toBeLessThanOrEqual(longestMs);
});

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
