import { expect, test, vi } from 'vitest';
import type { PingOutcome } from '../../src/ports.ts';
import { openExchange } from './open.ts';
import { createHandClock, serveHttp, serveReply, serveSilence, serveTls } from './servers.ts';

const REMOVE = { timeoutSeconds: null };
const nonceIn = (body: string) => Number((JSON.parse(body) as { nonce: string }).nonce);

test('a request is signed, and asks whether it may leave, once its connection is open: none overtakes its nonce', async () => {
  const nonces: number[] = [];
  let goOn: (error: null) => void = () => undefined;
  const server = await serveTls(
    (_request, response, body) => {
      nonces.push(nonceIn(body));
      response.end('[]');
    },
    (done) => {
      goOn = done;
    },
  );
  const { sync } = openExchange(server, { ca: server.ca });
  await sync(REMOVE);
  const mayWrite = vi.fn<() => boolean>(() => true);
  const opening = sync({ ...REMOVE, fresh: true, mayWrite });
  await expect.poll(() => server.resumed()).toBe(1);
  expect(await sync(REMOVE)).toEqual({ kind: 'deleted' });
  expect(nonces).toHaveLength(2);
  expect(mayWrite).not.toHaveBeenCalled();
  goOn(null);
  expect(await opening).toEqual({ kind: 'deleted' });
  expect(nonces).toHaveLength(3);
  // When the connection is open, and in the step of the write.
  expect(mayWrite).toHaveBeenCalledTimes(2);
  expect(nonces).toEqual(nonces.toSorted((one, other) => one - other));
});

test('a key that cannot be read sends nothing', async () => {
  const server = await serveReply([]);
  const credentials = () => {
    throw new Error('no such file');
  };
  const detail = 'the API key could not be read: no such file';
  const unsent = { kind: 'transient', reason: 'auth', maybeApplied: false, detail };
  expect(await openExchange(server, { credentials }).sync()).toMatchObject(unsent);
  expect(server.connections()).toBe(0);
});

const WALL_MS = 1_700_000_000_000;

/** An exchange client at a hand clock, before a server that `takes` a nonce or refuses it, and says its time. */
async function withNonces(
  nonce: 'window' | 'increasing',
  serverMs: (wallMs: number) => number,
  answer: (nonce: number, serverMs: number) => readonly [status: number, value: unknown],
  credentials = () => ({ key: 'key', secret: 'secret' }),
) {
  const clock = createHandClock(WALL_MS);
  const bodies: string[] = [];
  const server = await serveHttp((_request, response, body) => {
    bodies.push(body);
    const nowMs = serverMs(clock.now().wallMs);
    const [status, value] = answer(nonceIn(body), nowMs);
    response.writeHead(status, { date: new Date(nowMs).toUTCString() }).end(JSON.stringify(value));
  });
  const { sync } = openExchange(server, { clock, nonce, credentials });
  return { clock, bodies, kind: async () => (await sync(REMOVE)).kind };
}

test.each([-3_600_000, 3_600_000])(
  'in window mode with a local clock wrong by %i ms, one refusal with a Date header is enough',
  async (wrongByMs) => {
    const message = 'Your nonce is more than 5 seconds lesser than the current nonce.';
    const { clock, bodies, kind } = await withNonces(
      'window',
      (wallMs) => wallMs - wrongByMs,
      (nonce, nowMs) =>
        Math.abs(nonce - nowMs) <= 5_000 ? [200, []] : [400, { code: 0, errors: {}, message }],
    );
    expect([await kind(), await kind()]).toEqual(['nonce', 'deleted']);
    clock.advance(10_000);
    expect(await kind()).toBe('deleted');
    expect(bodies[0]).toContain(`"nonce":"${WALL_MS}","nonceWindow":true,"market"`);
  },
);

test('in increasing mode a restart after the clock was set back an hour recovers within three tries, also after a refused key, which shows nothing of a nonce', async () => {
  let lastAccepted = WALL_MS + 3_600_000;
  let asked = 0;
  const refusal = (message: string) => ({ code: 2, errors: {}, message });
  const { kind } = await withNonces(
    'increasing',
    (wallMs) => wallMs,
    (nonce) => {
      asked += 1;
      if (asked === 1) return [401, refusal('Unauthorized request.')];
      if (nonce <= lastAccepted) return [429, refusal('Too many requests.')];
      lastAccepted = nonce;
      return [200, []];
    },
  );
  const kinds: string[] = [];
  for (let attempt = 0; attempt < 6; attempt += 1) kinds.push(await kind());
  expect(kinds).toEqual(['unauthorised', 'nonce', 'nonce', 'nonce', 'deleted', 'deleted']);
});

test('a new key that was used before with a clock an hour ahead is accepted as soon as after a start', async () => {
  let key = 'old';
  const accepted = new Map([['new', WALL_MS + 3_600_000]]);
  const { kind } = await withNonces(
    'increasing',
    (wallMs) => wallMs,
    (nonce) => {
      if (nonce <= (accepted.get(key) ?? 0))
        return [429, { code: 0, errors: {}, message: 'Too many requests.' }];
      accepted.set(key, nonce);
      return [200, []];
    },
    () => ({ key, secret: `secret-of-${key}` }),
  );
  expect([await kind(), await kind()]).toEqual(['deleted', 'deleted']);
  key = 'new';
  const kinds = [await kind(), await kind(), await kind(), await kind()];
  expect(kinds).toEqual(['nonce', 'nonce', 'nonce', 'deleted']);
  key = 'old';
  expect(await kind()).toBe('deleted');
});

test('a ping that is answered tells how long it took, and shows no key', async () => {
  const server = await serveHttp((request, response) => {
    expect([request.method, request.url]).toEqual(['GET', '/api/v4/public/ping']);
    expect(request.headers).not.toHaveProperty('x-txc-apikey');
    setTimeout(() => response.end('["pong"]'), 30);
  });
  const { ok, latencyMs } = await openExchange(server).ping(2_000);
  expect(ok).toBe(true);
  expect(latencyMs).toBeGreaterThanOrEqual(25);
});

test.each<[string, readonly (number | null)[], object]>([
  ['hangs is tried once more, on a fresh connection', [null, 200], { ok: true }],
  ['is out of order is tried once more', [503, 503], { ok: false, reason: 'http_5xx' }],
  ['is rate limited is not tried again', [429], { ok: false, reason: 'rate_limited' }],
  [
    'never is answered ends with its time',
    [null, null],
    { reason: 'timeout', detail: 'no answer within 4000 ms' },
  ],
])('a ping that %s, and holds up no renewal', async (_what, statuses, outcome) => {
  const pings: (number | null)[] = [...statuses];
  const server = await serveHttp((request, response) => {
    const status = request.method === 'POST' ? 200 : pings.shift();
    if (typeof status === 'number')
      response.writeHead(status).end(request.method === 'POST' ? '[]' : '["pong"]');
  });
  const { sync, ping } = openExchange(server);
  const pinging = ping(4_000);
  expect(await sync(REMOVE)).toEqual({ kind: 'deleted' });
  expect(await pinging).toMatchObject(outcome);
  expect(server.paths.filter((path) => path.endsWith('/ping'))).toHaveLength(statuses.length);
  // Neither takes the connection of the renewal, which is idle by then.
  expect(server.connections()).toBe(statuses.length + 1);
});

test('a ping that is withdrawn settles once, later', async () => {
  const { exchange } = openExchange(await serveSilence());
  const outcomes: PingOutcome[] = [];
  const cancel = exchange.ping(0, 5_000, (outcome) => outcomes.push(outcome));
  cancel();
  cancel();
  expect(outcomes).toEqual([]);
  await expect.poll(() => outcomes.length).toBe(1);
  expect(outcomes[0]).toMatchObject({ ok: false, reason: 'aborted' });
});
