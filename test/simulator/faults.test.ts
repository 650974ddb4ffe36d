import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { Fault } from '../../src/simulator/faults.ts';
import { ping, send, signed } from './raw-client.ts';
import { openServer, runServer } from './trader.ts';

const server = runServer();
afterEach(() => void server().clearFaults());

const timers = () => server().exchange.timers();
const isArmed = (market: string) => timers().some((timer) => timer.market === market);
const lastSeq = () => server().exchange.log.lastSeq();
const eventsSince = (seq: number) => server().exchange.log.since(seq);
const kindsSince = (seq: number) => eventsSince(seq).map(({ kind }) => kind);

const askFor = (market: string, timeout: string | null = '60', signal?: AbortSignal) =>
  send(server().url, signed({ market, timeout }), signal);

let markets = 0;

/** Arms a timer of a new market under the faults: the answer, or the code of the error of the connection. */
async function arm(...faults: readonly Fault[]) {
  server().addFaults(faults);
  markets += 1;
  const market = `F${markets}_USDT`;
  const startedMs = performance.now();
  const broken = { headers: {}, body: '' };
  const answer = await askFor(market).catch(({ code: status }) => ({ status, ...broken }));
  return { ...answer, market, isArmed: isArmed(market), tookMs: performance.now() - startedMs };
}

const JSON_TYPE = { 'content-type': 'application/json' };
const HTML = { 'content-type': 'text/html; charset=UTF-8' };
const MARKET = { market: ['Market is not available.'] };

test.each<[Fault, number, object, string, boolean]>([
  [{ kind: 'status', status: 500 }, 500, JSON_TYPE, '{"error":["Internal server error."]}', false],
  [{ kind: 'status', status: 502, body: 'html' }, 502, HTML, '502 Bad Gateway', false],
  [{ kind: 'status', status: 401, body: 'html' }, 401, HTML, '401 Unauthorized', false],
  [{ kind: 'status', status: 403, body: 'html' }, 403, HTML, '403 Forbidden', false],
  [{ kind: 'status', status: 422, body: 'html' }, 422, HTML, '422 Unprocessable Entity', false],
  [{ kind: 'status', status: 400 }, 400, JSON_TYPE, '{"code":0,"message":"Bad Request.","errors":{}}', false],
  [{ kind: 'refusal' }, 422, JSON_TYPE, '{"code":30,"message":"Validation failed","errors":{}}', false],
  [{ kind: 'refusal', status: 400, code: 31, errors: MARKET }, 400, JSON_TYPE, JSON.stringify(MARKET), false],
  [{ kind: 'throttle' }, 429, HTML, '429 Too Many Requests', false],
  [{ kind: 'stale-nonce' }, 429, JSON_TYPE, '{"code":0,"message":"Too many requests.","errors":{}}', false],
  [{ kind: 'maintenance' }, 503, HTML, '503 Service Temporarily Unavailable', false],
  [{ kind: 'unauthorised' }, 401, JSON_TYPE, '"code":10', false],
  [{ kind: 'forbidden' }, 403, JSON_TYPE, '"code":4', false],
  [{ kind: 'redirect', location: 'http://x/' }, 302, { location: 'http://x/' }, '', false],
  [{ kind: 'lie' }, 200, JSON_TYPE, '"cancellationTime":', false],
  [{ kind: 'wrong-shape' }, 200, JSON_TYPE, '{"code":0}', true],
  [{ kind: 'unacknowledged' }, 500, JSON_TYPE, '{"error":["Internal server error."]}', true],
])('%j: the client sees %i, %j, %s; carried out: %s', async (fault, status, headers, body, applied) => {
  const seen = await arm(fault);
  expect(seen).toMatchObject({ status, headers, isArmed: applied });
  expect(seen.body).toContain(body);
});

test.each<[Fault, number, string]>([
  [{ kind: 'refusal', message: 'No pool.' }, 422, 'No pool.'],
  [{ kind: 'status', status: 400 }, 400, 'Bad Request.'],
  [{ kind: 'stale-nonce' }, 429, 'Too many requests.'],
  [{ kind: 'unauthorised' }, 401, 'Unauthorized request.'],
])('%j has the error object of public operations where it hits one', async (fault, status, message) => {
  server().addFaults([fault]);
  const answer = await send(server().url, ping);
  expect(answer.status).toBe(status);
  expect(JSON.parse(answer.body)).toEqual({ success: false, message, params: [] });
});

test.each<[Fault, boolean]>([
  [{ kind: 'reset', when: 'before' }, false],
  [{ kind: 'reset', when: 'after' }, true],
  // It announces more than it sends.
  [{ kind: 'cut-off' }, true],
  [{ kind: 'hang', mode: 'drop', ms: 80 }, false],
])('%j breaks the connection; carried out: %s', async (fault, applied) => {
  const { status, isArmed: armed, tookMs } = await arm(fault);
  expect([status, armed]).toEqual(['ECONNRESET', applied]);
  if (fault.kind === 'hang') expect(tookMs).toBeGreaterThan(75);
});

test('garbage is a 200 that is not JSON, an oversize reply good JSON of more than 64 KiB, and both are carried out', async () => {
  const garbage = await arm({ kind: 'garbage' });
  expect(garbage).toMatchObject({ status: 200, isArmed: true });
  expect(() => JSON.parse(garbage.body) as unknown).toThrow(SyntaxError);
  server().clearFaults();
  const { body, isArmed: armed } = await arm({ kind: 'oversize' });
  expect([body.length > 65_536, armed]).toEqual([true, true]);
  expect(JSON.parse(body)).toHaveProperty('cancellationTime');
});

test('latency delays the request, or only its reply, and a slow body arrives whole', async () => {
  for (const kind of ['latency', 'slow-body'] as const) {
    const seen = await arm({ kind, ms: 120 });
    expect(seen.tookMs).toBeGreaterThan(115);
    expect(seen.body).toContain('cancellationTime');
    server().clearFaults();
  }
  server().addFaults([{ kind: 'latency', ms: 200, when: 'after' }]);
  const since = lastSeq();
  expect((await askFor('LATE_USDT')).status).toBe(200);
  const armed = eventsSince(since).find(({ kind }) => kind === 'timer-armed');
  expect(server().nowMs() - Number(armed?.atMs)).toBeGreaterThan(195);
});

test('a grant arms for another time than asked for, and says so', async () => {
  const { body, market } = await arm({ kind: 'grant', seconds: 7 });
  const { startTime, cancellationTime } = JSON.parse(body) as Record<string, number>;
  expect(Number(cancellationTime) - Number(startTime)).toBe(7);
  const timer: unknown = expect.objectContaining({ market, startTime, cancellationTime });
  expect(timers()).toContainEqual(timer);
});

test('a cache repeats its first good reply per market, and carries out nothing but the first', async () => {
  const since = lastSeq();
  server().addFaults([{ kind: 'cache', match: { operation: 'kill-switch' } }]);
  const ask = async (market: string, timeout: string | null) => (await askFor(market, timeout)).body;
  const first = await ask('CACHED_USDT', '60');
  expect(await ask('CACHED_USDT', '30')).toBe(first);
  expect(await ask('CACHED_USDT', null)).toBe(first);
  expect(await ask('OTHER_USDT', '60')).toContain('OTHER_USDT');
  const events = kindsSince(since).filter((kind) => kind.startsWith('timer'));
  expect(events).toEqual(['timer-armed', 'timer-armed']);
  server().clearFaults();
  await ask('CACHED_USDT', null);
  expect(isArmed('CACHED_USDT')).toBe(false);
});

test('a hang that holds carries the requests out in order when it ends, even of clients that gave up', async () => {
  server().addFaults([{ kind: 'hang', mode: 'hold' }]);
  const since = lastSeq();
  const held = () => kindsSince(since).filter((kind) => kind === 'fault-applied').length;
  const armed = () => ['GONE_USDT', 'HELD_USDT'].map(isArmed);
  const controller = new AbortController();
  const gaveUp = askFor('GONE_USDT', '60', controller.signal).catch(() => 'gave up');
  await expect.poll(held).toBe(1);
  const waited = askFor('HELD_USDT');
  await expect.poll(held).toBe(2);
  controller.abort();
  expect(await gaveUp).toBe('gave up');
  await sleep(100);
  expect(armed()).toEqual([false, false]);
  expect(server().clearFaults()).toBe(1);
  expect((await waited).status).toBe(200);
  expect(armed()).toEqual([true, true]);
  expect(await arm({ kind: 'hang', mode: 'hold', forMs: 300 })).toMatchObject({ status: 200, isArmed: true });
});

test('a fault of one market or key hits its requests alone, and ends after its time', async () => {
  const statuses = async () => {
    const answers = [askFor('SICK_USDT'), askFor('WELL_USDT'), send(server().url, ping)];
    return (await Promise.all(answers)).map(({ status }) => status);
  };
  const forMs = 3_600_000;
  const match = { operation: 'kill-switch', market: 'SICK_USDT' } as const;
  server().addFaults([{ kind: 'maintenance', match, forMs }]);
  expect(await statuses()).toEqual([503, 200, 200]);
  server().addFaults([{ kind: 'maintenance', match: { key: 'demo-key' }, forMs }]);
  expect(await statuses()).toEqual([503, 503, 200]);
  server().advance(forMs);
  expect(await statuses()).toEqual([200, 200, 200]);
});

async function hitsOf(seed: number, faults: readonly Fault[], pings = 60) {
  const own = await openServer({ seed });
  own.addFaults(faults);
  let hits = '';
  for (let sent = 0; sent < pings; sent += 1) hits += (await send(own.url, ping)).status === 200 ? '-' : 'x';
  return hits;
}

test('what is left to chance follows from the seed and the fault, and other faults change nothing about it', async () => {
  const half: Fault = { kind: 'throttle', probability: 0.5 };
  const first = await hitsOf(1, [half]);
  expect(first.replaceAll('-', '')).toMatch(/^x{16,44}$/);
  expect(await hitsOf(1, [{ kind: 'slow-body', ms: 0, probability: 0.3 }, half])).toBe(first);
  expect(await hitsOf(2, [half])).not.toBe(first);
});

const ONCE: Fault = { kind: 'throttle', count: 1 };
test.each<[string, readonly Fault[], string]>([
  ['is spent after its count', [{ kind: 'throttle', count: 2 }], 'xx--'],
  ['lets the first so many through', [{ ...ONCE, skip: 1 }], '-x--'],
  ['comes after others in a sequence', [ONCE, { ...ONCE }, { kind: 'stale-nonce', skip: 3 }], 'xx-x'],
  ['leaves other keys alone', [{ kind: 'throttle', match: { key: 'another' } }], '----'],
  ['leaves other operations alone', [{ kind: 'throttle', match: { operation: 'hashrate' } }], '----'],
])('a fault %s', async (_name, faults, pattern) => {
  expect(await hitsOf(1, faults, pattern.length)).toBe(pattern);
});

test('delays add up, and of two faults that decide what the client is told the earlier one counts', async () => {
  const seen = await arm(
    { kind: 'latency', ms: 60 },
    { kind: 'latency', ms: 60, jitterMs: 1, when: 'after' },
    { kind: 'reset', when: 'after' },
    { kind: 'throttle' },
  );
  expect(seen).toMatchObject({ status: 'ECONNRESET', isArmed: true });
  expect(seen.tookMs).toBeGreaterThan(110);
});
