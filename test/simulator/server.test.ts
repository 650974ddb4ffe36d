import { expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { startExchange } from '../../src/library/simulator.ts';
import type { Clock } from '../../src/ports.ts';
import { openServer, refusal, runBothProfiles } from './both-profiles.ts';
import { control, ping, send, sendBytes, signed } from './raw-client.ts';

const { server, ask } = runBothProfiles();

const hostClock = createSystemClock();
const good = () => signed({ market: 'BTC_USDT', timeout: '60' });

test('an unknown path gets a 404, which is empty at the live exchange and JSON in the document', async () => {
  const unknown = { ...good(), path: '/api/v4/order/unknown' };
  const { status, body } = await send(server('live').url, unknown);
  expect([status, body]).toEqual([404, '']);
  expect(await ask(unknown)).toEqual({ status: 404, value: refusal(0, 'Not found.') });
  expect(await ask({ ...ping, path: '/api/v4/public/unknown' })).toEqual({
    status: 404,
    value: { success: false, message: 'Not found.', params: [] },
  });
});

test.each([
  ['no Host', `GET ${ping.path} HTTP/1.1\r\nconnection: close\r\n\r\n`, 200, '["pong"]'],
  [
    'an expectation of its own',
    `GET ${ping.path} HTTP/1.1\r\nhost: x\r\nexpect: much\r\nconnection: close\r\n\r\n`,
    200,
    '["pong"]',
  ],
  ['no way through', 'CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n', 405, '"message":"Method Not Allowed."'],
  [
    'headers that are too large',
    `GET ${ping.path} HTTP/1.1\r\nhost: x\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`,
    431,
    '"message":"Request Header Fields Too Large."',
  ],
  ['no form', 'nonsense\r\n\r\n', 400, '{"code":0,"message":"Bad Request.","errors":{}}'],
])('a request with %s gets an answer of the exchange', async (_name, bytes, status, body) => {
  const answered = await sendBytes(server('documented').url, bytes, false);
  expect(answered.startsWith(`HTTP/1.1 ${status} `)).toBe(true);
  expect(answered).toContain(body);
});

test('a timer fires by the clock, within a fraction of a second of its moment', async () => {
  const speed = 10;
  const clock: Clock = {
    now() {
      const { wallMs, monoMs } = hostClock.now();
      return { wallMs: wallMs * speed, monoMs: monoMs * speed, bootMs: monoMs * speed };
    },
    after: (delayMs, run) => hostClock.after(delayMs / speed, run),
  };
  const order = { market: 'FIRE_USDT', type: 'spot', side: 'buy', amount: '1', price: '1' } as const;
  const own = await openServer({ clock, orders: [order] });
  const { body } = await send(own.url, signed({ market: 'FIRE_USDT', timeout: '5' }));
  const dueMs = (JSON.parse(body) as { cancellationTime: number }).cancellationTime * 1000;
  const since = own.exchange.log.lastSeq();
  const events = (await control(own.url, 'GET', `/simulator/events?since=${since}&wait=60000`)).value;
  const [fired] = events as { kind: string; atMs: number }[];
  expect(fired).toMatchObject({ kind: 'timer-fired', market: 'FIRE_USDT', cancelledOrders: 1 });
  expect((fired?.atMs ?? 0) - dueMs).toBeGreaterThanOrEqual(0);
  expect((fired?.atMs ?? 0) - dueMs).toBeLessThan(500 * speed);
});

test('closing the server breaks open connections at once', async () => {
  const own = await startExchange();
  own.addFaults([{ kind: 'hang', mode: 'drop' }]);
  const hanging = send(own.url, ping).catch((error: NodeJS.ErrnoException) => error.code);
  await control(own.url, 'GET', '/simulator/events?since=1&wait=5000');
  const startedMs = performance.now();
  await own.close();
  expect(performance.now() - startedMs).toBeLessThan(1000);
  expect(await hanging).toBe('ECONNRESET');
});

test('the clock of the exchange does not follow a step of the wall clock of its host', async () => {
  let stepMs = 0;
  const clock = {
    ...hostClock,
    now: () => ({ ...hostClock.now(), wallMs: hostClock.now().wallMs + stepMs }),
  };
  const own = await openServer({ clock, clockOffsetMs: 2000 });
  const before = own.nowMs();
  stepMs = 3_600_000;
  const { headers } = await send(own.url, ping);
  expect(own.nowMs() - before).toBeLessThan(5000);
  expect(before - Date.now()).toBeGreaterThan(1000);
  expect(Math.abs(Date.parse(headers.date ?? '') - own.nowMs())).toBeLessThan(2000);
});
