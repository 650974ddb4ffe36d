import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { ExchangeEvent } from '../../src/simulator/event-log.ts';
import type { Fault } from '../../src/simulator/faults.ts';
import { openServer, runServer } from './both-profiles.ts';
import { ping, type Received, send, signed } from './raw-client.ts';

const server = runServer();
afterEach(() => {
  server().clearFaults();
});

let markets = 0;

interface Seen {
  readonly outcome: Received | string;
  readonly isArmed: boolean;
  readonly tookMs: number;
}

/** Arms a timer of a new market under the faults, from a plain client. */
async function arm(...faults: readonly Fault[]): Promise<Seen> {
  server().addFaults(faults);
  markets += 1;
  const market = `F${markets}_USDT`;
  const startedMs = performance.now();
  const outcome = await send(server().url, signed({ market, timeout: '60' })).catch(
    (error: NodeJS.ErrnoException) => error.code ?? 'unknown',
  );
  const tookMs = performance.now() - startedMs;
  return { outcome, isArmed: isArmed(market), tookMs };
}

function isArmed(market: string): boolean {
  const { exchange } = server();
  return exchange.timers().some((timer) => timer.market === market);
}

function eventsSince(seq: number): readonly ExchangeEvent[] {
  return server().exchange.log.since(seq);
}

const json = 'application/json';
const html = 'text/html; charset=UTF-8';

test.each<[Fault, number, string, string, boolean]>([
  [{ kind: 'status', status: 500 }, 500, json, '{"error":["Internal server error."]}', false],
  [{ kind: 'status', status: 502, body: 'html' }, 502, html, '502 Bad Gateway', false],
  [{ kind: 'status', status: 401, body: 'html' }, 401, html, '401 Unauthorized', false],
  [{ kind: 'status', status: 403, body: 'html' }, 403, html, '403 Forbidden', false],
  [{ kind: 'status', status: 422, body: 'html' }, 422, html, '422 Unprocessable Entity', false],
  [{ kind: 'status', status: 400 }, 400, json, '{"code":0,"message":"Bad Request.","errors":{}}', false],
  [{ kind: 'refusal' }, 422, json, '{"code":30,"message":"Validation failed","errors":{}}', false],
  [
    { kind: 'refusal', status: 400, code: 31, errors: { market: ['Market is not available.'] } },
    400,
    json,
    '"errors":{"market":["Market is not available."]}',
    false,
  ],
  [{ kind: 'throttle' }, 429, html, '429 Too Many Requests', false],
  [{ kind: 'stale-nonce' }, 429, json, '{"code":0,"message":"Too many requests.","errors":{}}', false],
  [{ kind: 'maintenance' }, 503, html, '503 Service Temporarily Unavailable', false],
  [{ kind: 'unauthorised' }, 401, json, '"code":10', false],
  [{ kind: 'forbidden' }, 403, json, '"code":4', false],
  [{ kind: 'wrong-shape' }, 200, json, '{"code":0}', true],
  [{ kind: 'unacknowledged' }, 500, json, '{"error":["Internal server error."]}', true],
  [{ kind: 'lie' }, 200, json, '"cancellationTime":', false],
])('%j: the client sees %i, %s, %s; carried out: %s', async (fault, status, type, body, applied) => {
  const { outcome, isArmed } = await arm(fault);
  expect(outcome).toMatchObject({ status, headers: { 'content-type': type } });
  expect((outcome as Received).body).toContain(body);
  expect(isArmed).toBe(applied);
});

test('a redirect points where it was told to', async () => {
  const { outcome, isArmed } = await arm({ kind: 'redirect', location: 'http://127.0.0.1:1/' });
  expect(outcome).toMatchObject({ status: 302, headers: { location: 'http://127.0.0.1:1/' } });
  expect(isArmed).toBe(false);
});

test.each([
  ['before', false],
  ['after', true],
] as const)('a reset %s the request is carried out looks the same to the client', async (when, applied) => {
  expect(await arm({ kind: 'reset', when })).toMatchObject({ outcome: 'ECONNRESET', isArmed: applied });
});

test('garbage is a 200 that is not JSON, of a request that was carried out', async () => {
  const { outcome, isArmed } = await arm({ kind: 'garbage' });
  expect(outcome).toMatchObject({ status: 200 });
  expect(() => JSON.parse((outcome as Received).body) as unknown).toThrow(SyntaxError);
  expect(isArmed).toBe(true);
});

test('a reply that is cut off announces more than it sends and closes the connection', async () => {
  expect(await arm({ kind: 'cut-off' })).toMatchObject({ outcome: 'ECONNRESET', isArmed: true });
});

test('an oversize reply is good JSON of more than 64 KiB', async () => {
  const { outcome, isArmed } = await arm({ kind: 'oversize' });
  const { body } = outcome as Received;
  expect(body.length).toBeGreaterThan(65_536);
  expect(JSON.parse(body)).toHaveProperty('cancellationTime');
  expect(isArmed).toBe(true);
});

test('latency delays the request, or only its reply', async () => {
  const before = await arm({ kind: 'latency', ms: 120 });
  expect(before).toMatchObject({ outcome: { status: 200 } });
  expect(before.tookMs).toBeGreaterThan(115);
  server().clearFaults();

  server().addFaults([{ kind: 'latency', ms: 200, when: 'after' }]);
  const since = server().exchange.log.lastSeq();
  expect((await send(server().url, signed({ market: 'LATE_USDT', timeout: '60' }))).status).toBe(200);
  const armed = eventsSince(since).find(({ kind }) => kind === 'timer-armed');
  expect(server().nowMs() - (armed?.atMs ?? Number.POSITIVE_INFINITY)).toBeGreaterThan(195);
});

test('a grant arms for another time than asked for, and says so', async () => {
  const { outcome } = await arm({ kind: 'grant', seconds: 7 });
  const { startTime, cancellationTime } = JSON.parse((outcome as Received).body) as Record<string, number>;
  expect(Number(cancellationTime) - Number(startTime)).toBe(7);
  expect(server().exchange.timers()).toContainEqual(
    expect.objectContaining({ market: `F${markets}_USDT`, startTime, cancellationTime }),
  );
});

test('a cache repeats its first good reply per market, and carries out nothing but the first', async () => {
  const since = server().exchange.log.lastSeq();
  server().addFaults([{ kind: 'cache', match: { operation: 'kill-switch' } }]);
  const ask = async (market: string, timeout: string | null) =>
    (await send(server().url, signed({ market, timeout }))).body;
  const first = await ask('CACHED_USDT', '60');
  expect(await ask('CACHED_USDT', '30')).toBe(first);
  expect(await ask('CACHED_USDT', null)).toBe(first);
  expect(await ask('OTHER_USDT', '60')).toContain('OTHER_USDT');
  const events = eventsSince(since).map(({ kind }) => kind);
  expect(events.filter((kind) => kind.startsWith('timer'))).toEqual(['timer-armed', 'timer-armed']);
  server().clearFaults();
  expect(await ask('CACHED_USDT', null)).not.toBe('');
  expect(isArmed('CACHED_USDT')).toBe(false);
});

test('a slow body arrives whole, late', async () => {
  const slow = await arm({ kind: 'slow-body', ms: 150 });
  expect(slow.outcome).toMatchObject({ status: 200 });
  expect((slow.outcome as Received).body).toContain('cancellationTime');
  expect(slow.tookMs).toBeGreaterThan(140);
});

test('a hang that holds carries the requests out in order when it ends, even of clients that gave up', async () => {
  server().addFaults([{ kind: 'hang', mode: 'hold' }]);
  const since = server().exchange.log.lastSeq();
  const held = () => eventsSince(since).filter(({ kind }) => kind === 'fault-applied').length;
  const controller = new AbortController();
  const gaveUp = send(server().url, signed({ market: 'GONE_USDT', timeout: '60' }), controller.signal).catch(
    () => 'gave up',
  );
  await expect.poll(held).toBe(1);
  const waited = send(server().url, signed({ market: 'HELD_USDT', timeout: '60' }));
  await expect.poll(held).toBe(2);
  controller.abort();
  expect(await gaveUp).toBe('gave up');
  expect([isArmed('GONE_USDT'), isArmed('HELD_USDT')]).toEqual([false, false]);
  server().clearFaults();
  expect((await waited).status).toBe(200);
  expect([isArmed('GONE_USDT'), isArmed('HELD_USDT')]).toEqual([true, true]);

  server().addFaults([{ kind: 'hang', mode: 'hold', forMs: 300 }]);
  expect((await send(server().url, signed({ market: 'ENDED_USDT', timeout: '60' }))).status).toBe(200);
  expect(isArmed('ENDED_USDT')).toBe(true);
});

test('a hang that drops closes the connection when it ends and carries nothing out', async () => {
  const dropped = await arm({ kind: 'hang', mode: 'drop', ms: 80 });
  expect(dropped).toMatchObject({ outcome: 'ECONNRESET', isArmed: false });
  expect(dropped.tookMs).toBeGreaterThan(75);
});

test('a hang without an end lasts until the faults are cleared', async () => {
  server().addFaults([{ kind: 'hang', mode: 'hold' }]);
  let isAnswered = false;
  const reply = send(server().url, ping).then((received) => {
    isAnswered = true;
    return received.status;
  });
  await sleep(100);
  expect(isAnswered).toBe(false);
  expect(server().clearFaults()).toBe(1);
  expect(await reply).toBe(200);
});

test('a fault of one market leaves the others and the ping alone', async () => {
  server().addFaults([{ kind: 'maintenance', match: { operation: 'kill-switch', market: 'SICK_USDT' } }]);
  const statuses = await Promise.all([
    send(server().url, signed({ market: 'SICK_USDT', timeout: '60' })),
    send(server().url, ping),
  ]);
  const well = await send(server().url, signed({ market: 'WELL_USDT', timeout: '60' }));
  expect([...statuses, well].map(({ status }) => status)).toEqual([503, 200, 200]);
});

test('every request that a fault hits is in the event log', async () => {
  const since = server().exchange.log.lastSeq();
  await arm({ kind: 'throttle', count: 1 });
  await arm();
  const events = eventsSince(since).map(({ kind }) => kind);
  expect(events).toEqual(['fault-added', 'fault-applied', 'timer-armed']);
});

/** How many of 60 pings a plan of faults hits, and which. */
async function hitsOf(seed: number, faults: readonly Fault[]): Promise<string> {
  const own = await openServer({ seed });
  own.addFaults(faults);
  const statuses: number[] = [];
  for (let sent = 0; sent < 60; sent += 1) statuses.push((await send(own.url, ping)).status);
  return statuses.map((status) => (status === 200 ? '-' : 'x')).join('');
}

test('what is left to chance follows from the seed and the fault, and other faults change nothing about it', async () => {
  const half: Fault = { kind: 'throttle', probability: 0.5 };
  const first = await hitsOf(1, [half]);
  expect(first.replaceAll('-', '').length).toBeGreaterThan(15);
  expect(first.replaceAll('-', '').length).toBeLessThan(45);
  expect(await hitsOf(1, [{ kind: 'slow-body', ms: 0, probability: 0.3 }, half])).toBe(first);
  expect(await hitsOf(2, [half])).not.toBe(first);
});

test.each<[string, readonly Fault[], string]>([
  ['is spent after its count', [{ kind: 'throttle', count: 2 }], 'xx--'],
  ['lets the first so many through', [{ kind: 'throttle', skip: 1, count: 1 }], '-x--'],
  [
    'comes after the one before it in a sequence',
    [
      { kind: 'throttle', count: 1 },
      { kind: 'maintenance', count: 1 },
      { kind: 'stale-nonce', skip: 3 },
    ],
    'xx-x',
  ],
  ['leaves other keys alone', [{ kind: 'throttle', match: { key: 'another' } }], '----'],
  ['leaves other operations alone', [{ kind: 'throttle', match: { operation: 'hashrate' } }], '----'],
])('a fault %s', async (_name, faults, pattern) => {
  expect((await hitsOf(1, faults)).slice(0, pattern.length)).toBe(pattern);
});

test('a fault of one key hits its requests, and ends after its time', async () => {
  server().addFaults([{ kind: 'maintenance', match: { key: 'demo-key' }, forMs: 3_600_000 }]);
  const ask = async () => (await send(server().url, signed({ market: 'KEY_USDT', timeout: '60' }))).status;
  expect([await ask(), (await send(server().url, ping)).status]).toEqual([503, 200]);
  server().advance(3_600_000);
  expect(await ask()).toBe(200);
});

test('delays add up, and of two faults that decide what the client is told the earlier one counts', async () => {
  const seen = await arm(
    { kind: 'latency', ms: 60 },
    { kind: 'latency', ms: 60, jitterMs: 1, when: 'after' },
    { kind: 'reset', when: 'after' },
    { kind: 'throttle' },
  );
  expect(seen).toMatchObject({ outcome: 'ECONNRESET', isArmed: true });
  expect(seen.tookMs).toBeGreaterThan(110);
});
