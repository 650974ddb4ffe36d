import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { type Asked, asker, controlsOf } from './control.ts';
import { beginGuard, guard } from './harness.ts';
import { sleep } from './program.ts';
import { longestGapDuring, ofKind } from './simulated-exchange.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];
/** One for each reason of a refusal, and a beat that is good. */
const ASKED: readonly (readonly [status: number, path: string, asked: Asked])[] = [
  [403, '/v1/trip', { headers: { origin: 'https://evil.example' } }],
  [413, '/v1/trip', { body: { markets: ['x'.repeat(70_000)] } }],
  [400, '/v1/trip', { body: '{"markets":' }],
  [404, '/v1/trip', { body: { markets: ['OTHER_USDT'] } }],
  [200, '/v1/beat', { body: {} }],
];

test('a thousand requests at once, and clients that fill every listener and never read, neither change anything nor delay renewals', {
  timeout: 60_000,
}, async (context) => {
  const { exchange, daemon } = await guard(context, {
    markets: MARKETS,
    prefix: ['prlimit', '--nofile=512:512'],
    timeoutSeconds: 5,
    control: true,
    config: { liveness: { mode: 'beat', ttlSeconds: 300 } },
  });
  expect(daemon.logged('few-descriptors')).toHaveLength(1);
  const ask = asker(context, daemon.socket, 50);
  const gapOfFloodMs = await longestGapDuring(exchange, MARKETS, async () => {
    const requests = Array.from({ length: 200 }, () => ASKED).flat();
    const replies = await Promise.all(requests.map(([, path, asked]) => ask(path, asked)));
    expect(replies.map(({ status }) => status)).toEqual(requests.map(([status]) => status));
    // The page of metrics may be a second old.
    await sleep(1100);
    expect(await daemon.metric('killswitch_control_refused_total')).toBe(800);
    expect(daemon.logged('control-refused')).toHaveLength(4);
  });
  expect(gapOfFloodMs).toBeLessThan(3500);

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
  const events = await exchange.events();
  expect([...ofKind(events, 'timer-fired'), ...ofKind(events, 'timer-deleted')]).toEqual([]);
});

test('300 bots that each keep a connection open are all heard, also where a reload has brought most of them', {
  timeout: 60_000,
}, async (context) => {
  const markets = Array.from({ length: 300 }, (_, index) => ({
    market: `M${index}_USDT`,
    bot: `bot${index}`,
    timeoutSeconds: 10,
  }));
  const config = { liveness: { mode: 'beat' } };
  const { daemon } = await beginGuard(context, { markets: markets.slice(0, 10), control: true, config });
  await controlsOf(daemon);
  const bots = markets.map(({ bot }) => ({ ask: asker(context, daemon.socket), bot }));
  daemon.configure({ markets });
  await daemon.reloadBySignal('reload-applied');
  for (let beat = 0; beat < 2; beat += 1) {
    const replies = await Promise.allSettled(bots.map(({ ask, bot }) => ask('/v1/beat', { body: { bot } })));
    expect(replies.filter((reply) => reply.status !== 'fulfilled' || reply.value.status !== 200)).toEqual([]);
  }
});
