import { userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Progress } from '../../src/core/events.ts';
import type { MarketSnapshot } from '../../src/core/view.ts';
import type { ReloadReport } from '../../src/operator/control-sources.ts';
import { asker, clock, createSpy, dial, heardOf, makeFolder, open, start, TCP } from './control-fixture.ts';
import { sampleMarket, sampleSnapshot } from './sample-snapshot.ts';

const STANDING = clock.now();
const standing = { ...clock, now: () => STANDING };
const AT = STANDING.wallMs;

/** What a beat of the bot main is told where the daemon stands so. */
async function beatIn(changes: Parameters<typeof sampleSnapshot>[0]) {
  const { ask } = await open({ snapshot: () => sampleSnapshot(changes) });
  return (await ask('/v1/beat?bot=main')).body as { readonly markets: Readonly<Record<string, object>> };
}

const waiting = { market: 'ETH_USDT', state: 'waiting', says: 'ETH_USDT still has a timer.' } as const;
const impossible = { market: 'ETH_USDT', state: 'impossible', says: 'ETH_USDT is refused.' } as const;
const done = { market: 'BTC_USDT', state: 'done', says: 'BTC_USDT has no timer.' } as const;

describe('a beat', () => {
  test('without a body counts for the only bot, and says until when it is protected, by the time that is left', async () => {
    const { ask, calls } = await open({ clock: standing, bots: () => ['main'] });
    const { status, body } = await ask('/v1/beat');
    const expiresAt = expect.closeTo(AT / 1000 + 54.296, 2);
    const BTC_USDT = { state: 'armed', armed: true, expiresInSeconds: 54.2, expiresAt };
    const told = { armed: true, counted: true, bot: 'main', ttlSeconds: 15, markets: { BTC_USDT } };
    expect([status, body]).toEqual([200, told]);
    expect(calls).toEqual([['hear', 'main', 'beat', { session: null, seq: null }, expect.any(Number)]]);
  });

  test('is as old as the first of its bytes when its body comes later', async () => {
    const { address, ask, calls } = await open({}, TCP);
    const socket = dial(address);
    const heard = heardOf(socket);
    const head = 'Host: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n';
    socket.write(`POST /v1/beat?bot=main HTTP/1.1\r\n${head}Content-Length: 9\r\n\r\n{"seq"`);
    // Over a later connection: what this one wrote has been read when that one is answered.
    expect((await ask('/v1/beat?bot=main')).status).toBe(200);
    expect(calls).toHaveLength(1);
    await new Promise((resolve) => setTimeout(resolve, 400));
    socket.write(':1}');
    expect(await heard).toMatch(/^HTTP\/1\.1 200 /);
    expect(calls[1]?.at(-1)).toBeGreaterThan(250);
  });

  const unsure = ['suspended', 'paused', 'disarmed', 'expired', 'arming', 'rejected', 'deleted'] as const;
  test.each<[MarketSnapshot['state'], number | null, object]>([
    ...unsure.map((state) => [state, 30_000, { state }] as [typeof state, number, object]),
    ['arming', null, { expiresInSeconds: null, expiresAt: null }],
    ['expired', -3000, { expiresInSeconds: 0, expiresAt: null }],
    // It runs out while the reply is on its way.
    ['armed', 5, { expiresInSeconds: 0, expiresAt: null }],
    ['retrying', 10, { expiresInSeconds: 0, expiresAt: null }],
  ])(
    'of a bot with a market that is %s for %d ms says it is not armed',
    async (state, guaranteedMs, told) => {
      const changes = { state, guaranteedMs, expiryWallMs: AT - 3000 };
      const markets = [sampleMarket(), sampleMarket({ market: 'ETH_USDT', ...changes })];
      const ETH_USDT = { ...told, armed: false };
      expect(await beatIn({ markets })).toMatchObject({ armed: false, markets: { ETH_USDT } });
    },
  );

  test('to a daemon that stops, or that guards nothing, is told that nothing is armed', async () => {
    expect(await beatIn({ phase: 'stopping' })).toMatchObject({ armed: false });
    expect(await beatIn({ markets: [] })).toMatchObject({ armed: false, markets: {} });
  });

  test('lists at most 200 markets, those that are not armed first, and counts the others', async () => {
    const markets = Array.from({ length: 1000 }, (_, index) =>
      sampleMarket({ market: `M${index}_USDT`, state: index === 999 ? 'expired' : 'armed' }),
    );
    const told = await beatIn({ markets });
    expect(Object.keys(told.markets)).toHaveLength(200);
    expect(Object.keys(told.markets)[0]).toBe('M999_USDT');
    expect(told).toMatchObject({ armed: false, marketsOmitted: 800 });
  });
});

const all = { done: true, markets: [{ market: 'BTC_USDT' }, { market: 'ETH_USDT' }] };
const two = { markets: ['ETH_USDT', 'ETH_USDT'], waitSeconds: 0 };
const inForce = { level: 'info', before: 'info' };
const says = (does: string, markets: readonly string[] | null, forMs = 0) => ({ does, markets, forMs });
const word = (kind: string, seq: number | null) => [
  'hear',
  'main',
  kind,
  { session: null, seq },
  expect.any(Number),
];

test.each<[string, object, unknown[][], object]>([
  ['fail', {}, [word('fail', null)], { counted: true, bot: 'main' }],
  [
    'goodbye',
    { seq: 9, waitSeconds: 2.5 },
    [word('goodbye', 9), ['afterGoodbye', 'main', 2500]],
    { done: true },
  ],
  ...['arm', 'disarm', 'resume', 'trip'].flatMap((does): [string, object, unknown[][], object][] => [
    [does, {}, [['operate', says(does, null), 15_000]], all],
    [does, two, [['operate', says(does, ['ETH_USDT']), 0]], { done: true }],
  ]),
  ['pause', { forSeconds: 600, waitSeconds: 60 }, [['operate', says('pause', null, 600_000), 60_000]], all],
  ['ack', {}, [['acknowledge', null]], { acknowledged: ['BTC_USDT'], notYet: [] }],
  // One that a reload took out as well.
  [
    'ack',
    { markets: ['GONE_USDT'] },
    [['acknowledge', ['GONE_USDT']]],
    { acknowledged: ['GONE_USDT'], notYet: [] },
  ],
  ['reload', { waitSeconds: 5 }, [['reload', 5000]], { result: 'unchanged' }],
  ['log-level', {}, [], { ...inForce, forSeconds: null }],
  ['log-level', { level: 'debug', forSeconds: 60 }, [['setLogLevel', 'debug', 60_000]], { forSeconds: 60 }],
  ['log-level', { level: 'warn' }, [['setLogLevel', 'warn', null]], { ...inForce, forSeconds: null }],
])('%s of %j asks the daemon for just that', async (name, body, asked, reply) => {
  const { ask, calls } = await open({ bots: () => ['main'] });
  expect(await ask(`/v1/${name}`, { body })).toMatchObject({ status: 200, body: reply });
  expect(calls).toEqual(asked);
});

const left = (progress: readonly Progress[]) => ({ afterGoodbye: async () => progress });
const become = (progress: readonly Progress[]) => ({ operate: async () => progress });
const read = (report: ReloadReport) => ({ reload: async () => report });
const applied = { added: ['A_B'], removed: [], moved: [], changed: ['BTC_USDT'] };
const problems = ['markets: one', 'defaults: two'];
const taken = { kind: 'applied', ...applied } as const;
const rejected = { code: 'config_rejected', message: 'nothing was changed, because of 2 problems' };
const copy = { counted: false, why: 'replayed: seq is 3' } as const;
const dying = sampleMarket({ state: 'suspended', firesByWallMs: AT + 48_000 });
const fires = { state: 'suspended', firesBy: Math.round(AT + 48_000) / 1000, firesInSeconds: 48 };
const old = [sampleMarket(), sampleMarket({ market: 'OLD_USDT', state: 'rejected' })];
const standsIn = (changes: Parameters<typeof sampleSnapshot>[0]) => ({
  snapshot: () => sampleSnapshot(changes),
});

test.each<[string, Parameters<typeof createSpy>[0], number, object]>([
  // A copy is told all the same whether its bot is protected.
  ['beat', { hear: () => copy }, 200, { ...copy, armed: true }],
  ['fail', standsIn({ markets: [dying] }), 200, { markets: { BTC_USDT: fires } }],
  ['goodbye', left([done]), 200, { counted: true, bot: 'main', done: true, markets: [done] }],
  ['goodbye', left([done, waiting]), 202, { done: false, markets: [done, waiting] }],
  ['goodbye', left([done, waiting, impossible]), 409, { done: false }],
  // One that does not count is not waited for.
  ['goodbye', { hear: () => copy }, 409, { ...copy, done: false, markets: [] }],
  ['arm', become([done, waiting]), 202, { done: false, markets: [done, waiting] }],
  ['arm', become([done, impossible]), 409, { done: false, markets: [done, impossible] }],
  ['reload', read({ ...taken, progress: [waiting] }), 200, { ...applied, markets: [waiting] }],
  ['reload', read({ kind: 'rejected', problems }), 422, { error: { ...rejected, problems } }],
  // What the exchange refuses is named, changed or not.
  ['reload', standsIn({ markets: old }), 200, { result: 'unchanged', refused: ['OLD_USDT'] }],
])('%s is told what came of it: %j', async (name, changes, status, reply) => {
  const { ask } = await open({ clock: standing, bots: () => ['main'], ...changes });
  expect(await ask(`/v1/${name}`)).toMatchObject({ status, body: reply });
});

test('a reload names no refused market where the exchange refuses the key', async () => {
  const { ask } = await open(standsIn({ markets: old, authorised: false }));
  expect((await ask('/v1/reload')).body).not.toHaveProperty('refused');
});

test('while 256 commands wait for the timers, a trip and a goodbye are carried out, and answered at once', async () => {
  const untilItCounts = (waitMs: number) =>
    waitMs === 0 ? Promise.resolve([waiting]) : new Promise<never>(() => {});
  const { address, ask, calls } = await open({
    operate: (_, waitMs) => untilItCounts(waitMs),
    afterGoodbye: (_, waitMs) => untilItCounts(waitMs),
  });
  for (let connection = 0; connection < 16; connection += 1)
    dial(address).write('POST /v1/arm HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n'.repeat(16));
  // Over later connections: what those wrote has been read when this one is answered.
  await asker(address)('/v1/beat?bot=main');
  expect(await ask('/v1/trip')).toMatchObject({ status: 202, body: { done: false, markets: [waiting] } });
  expect(await ask('/v1/goodbye?bot=main')).toMatchObject({ status: 202, body: { done: false } });
  expect(calls).toContainEqual(['hear', 'main', 'goodbye', expect.anything(), expect.any(Number)]);
});

test('a command changes what the next beat is told at once', async () => {
  let state: 'armed' | 'disarmed' = 'armed';
  const { ask } = await open({
    snapshot: () => sampleSnapshot({ markets: [sampleMarket({ state })] }),
    operate: async () => {
      state = 'disarmed';
      return [done];
    },
  });
  expect((await ask('/v1/beat?bot=main')).body).toMatchObject({ armed: true });
  await ask('/v1/disarm');
  expect((await ask('/v1/beat?bot=main')).body).toMatchObject({ armed: false });
});

test('what can be read is the status as the web listener has it, and whether the daemon is live and ready', async () => {
  const reasons = Array.from({ length: 150 }, (_, index) => `M${index} is not confirmed armed`);
  const { ask, calls } = await open(standsIn({ ready: false, notReady: reasons }));
  const status = await ask('/v1/status', { method: 'GET' });
  expect(status).toMatchObject({ status: 200, text: '{"schemaVersion":1,"markets":[]}' });
  expect(status.headers['content-type']).toBe('application/json; charset=utf-8');
  const said = { live: true, ready: false, notReady: reasons.slice(0, 100), notReadyOmitted: 50 };
  const withoutBots = { ready: true, notReady: [] };
  const { body } = await ask('/v1/health', { method: 'GET' });
  expect(body).toMatchObject({ ...said, nothingGuarded: null, withoutBots });
  expect(await ask('/v1/health', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
  expect(calls).toEqual([]);
});

test('whether a bot is ready is said by the daemon that guards it, and not by one whose markets are of others', async () => {
  const { ask } = await open({ ...standsIn({}), bots: () => ['main', 'taker'] });
  expect(await ask('/v1/health?bot=main', { method: 'GET' })).toMatchObject({ status: 200 });
  const error = { code: 'unknown_bot', message: expect.stringContaining('no market of this daemon') };
  expect(await ask('/v1/health?bot=taker', { method: 'GET' })).toMatchObject({
    status: 404,
    body: { error },
  });
});

describe('who sent a command and why', () => {
  const agent = { 'user-agent': 'killswitchd (uid 1000, pid 42)' };
  const { uid, gid } = userInfo();

  test('is told of every command before it begins, and of no beat and no question', async () => {
    const { ask, commands } = await open();
    await ask('/v1/beat?bot=main');
    await ask('/v1/status', { method: 'GET' });
    await ask('/v1/log-level');
    expect(commands).toEqual([]);
    await ask('/v1/disarm', { body: { markets: ['BTC_USDT'], reason: 'maintenance' }, headers: agent });
    const bodies = { arm: {}, pause: { forSeconds: 60 }, resume: {}, trip: {}, ack: {}, reload: {} };
    for (const [name, body] of Object.entries(bodies)) await ask(`/v1/${name}`, { body });
    await ask('/v1/log-level', { body: { level: 'debug' } });
    expect(commands.map(({ command }) => command)).toEqual(['disarm', ...Object.keys(bodies), 'log-level']);
    const asked = { command: 'disarm', markets: ['BTC_USDT'], reason: 'maintenance' };
    const via = expect.stringMatching(new RegExp(`^unix:.*, open to uid ${uid}$`));
    expect(commands[0]).toEqual({ ...asked, sender: agent['user-agent'], via });
    expect(commands[1]).toMatchObject({ command: 'arm', markets: null, reason: null });
  });

  test('names the group that may use the socket, and over HTTP the address that it came from', async () => {
    const spy = createSpy();
    const socket = `unix:${join(makeFolder(), 'control.sock')}`;
    const control = await start(spy, [socket, TCP], 'token', 'group');
    await asker(control.addresses[0])('/v1/arm');
    await asker(control.addresses[1])('/v1/arm', { headers: { authorization: 'Bearer token' } });
    expect(spy.commands[0]?.via).toBe(`${socket}, open to uid ${uid} and group ${gid}`);
    expect(spy.commands[1]?.via).toMatch(/^http from 127\.0\.0\.1:\d+, with the token$/);
  });

  test('shows no part of a secret, and is limited to what fits a line of the log', async () => {
    const secret = 'correct-horse-battery-staple';
    const { ask, commands, calls } = await open({ hide: (text) => text.replaceAll(secret, '...') });
    await ask('/v1/arm', { body: { markets: ['NO_SUCH'] } });
    for (const reason of ['', 'x'.repeat(201), 'two\nlines', 7])
      expect((await ask('/v1/arm', { body: { reason } })).code).toBe('invalid_value');
    expect([commands, calls]).toEqual([[], []]);
    const headers = { 'user-agent': `a\tb${'x'.repeat(90)} ${secret}${'x'.repeat(300)}` };
    await ask('/v1/arm', { headers, body: { reason: secret } });
    const sender = `a b${'x'.repeat(90)} ...${'x'.repeat(103)}`;
    expect(commands).toMatchObject([{ reason: '...', sender }]);
  });
});
