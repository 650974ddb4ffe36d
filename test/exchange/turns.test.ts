import { expect, onTestFinished, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { OPERATIONS, type Operation } from '../../src/exchange/operations.ts';
import { createTurns, type Turns } from '../../src/exchange/turns.ts';
import { errorOf, openClient } from './open.ts';
import { CODES, sampleOf, TIMER } from './samples.ts';
import { serveHttp } from './servers.ts';

function openTurns(budget?: { requests: number; windowMs: number }): Turns {
  const turns = createTurns(createSystemClock(), budget);
  onTestFinished(() => turns.close());
  return turns;
}

const limited = (requests: number, windowMs: number): Operation<never> => ({
  ...OPERATIONS.myCodes,
  limit: { requests, windowMs },
});

test('every operation has the limit of the document, and order history, which has none there, has none', () => {
  const limits = Object.entries(OPERATIONS).map(([name, { limit }]) => [
    name,
    limit?.requests,
    limit?.windowMs,
  ]);
  expect(limits).toEqual([
    ['createStockMarketOrder', 10_000, 10_000],
    ['orderHistory', undefined, undefined],
    ['withdrawPay', 1_000, 10_000],
    ['syncKillSwitch', 10_000, 10_000],
    ['myCodes', 1_000, 10_000],
    ['miningHashrate', 1_000, 10_000],
    ['createNewAddress', 1_000, 10_000],
    ['miningPool', 1_000, 10_000],
    ['ping', 2_000, 10_000],
  ]);
});

test('the 1001st request within ten seconds is not sent, and another operation goes on', async () => {
  let requests = 0;
  const server = await serveHttp((request, response) => {
    requests += 1;
    const { reply } = request.url?.endsWith('codes/my') ? { reply: CODES } : { reply: ['pong'] };
    response.end(JSON.stringify(reply));
  });
  const client = openClient(server.base);
  const { call } = sampleOf('myCodes');
  const settled = await Promise.allSettled(
    Array.from({ length: 1_000 }, () => call(client, { timeoutMs: 8_000 })),
  );
  expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1_000);
  expect(await errorOf(call(client, { timeoutMs: 200 }))).toMatchObject({
    name: 'ThrottledError',
    message: 'not sent: the limit of myCodes, 1000 requests in 10 s, left no room within 100 ms',
    maybeApplied: false,
    status: null,
  });
  expect(requests).toBe(1_000);
  await client.ping();
  expect(requests).toBe(1_001);
}, 20_000);

test('whoever can wait long enough has a turn in the next window', async () => {
  const turns = openTurns();
  const operation = limited(2, 400);
  const begunMs = performance.now();
  await turns.take(operation, 10_000, undefined);
  await turns.take(operation, 10_000, undefined);
  await turns.take(operation, 10_000, undefined);
  const waitedMs = performance.now() - begunMs;
  expect(waitedMs).toBeGreaterThan(300);
  expect(waitedMs).toBeLessThan(3_000);
});

test('who was refused a turn has spent none', async () => {
  const turns = openTurns();
  const operation = limited(1, 600);
  await turns.take(operation, 10_000, undefined);
  const impatient = Array.from({ length: 20 }, () => errorOf(turns.take(operation, 100, undefined)));
  for (const error of await Promise.all(impatient)) expect(error).toMatchObject({ name: 'ThrottledError' });
  const begunMs = performance.now();
  await turns.take(operation, 10_000, undefined);
  expect(performance.now() - begunMs).toBeLessThan(3_000);
});

test('a kill-switch request never waits for long, whatever its budget says', async () => {
  const server = await serveHttp((_request, response) => response.end(JSON.stringify(TIMER)));
  const client = openClient(server.base, { budget: { requests: 1, windowMs: 60_000 } });
  const arm = () => client.syncKillSwitch({ market: 'BTC_USDT', timeoutSeconds: 60 }, { timeoutMs: 4_000 });
  const begunMs = performance.now();
  expect([await arm(), await arm()]).toEqual([TIMER, TIMER]);
  expect(performance.now() - begunMs).toBeLessThan(3_500);
});

test('closing ends the wait for a turn', async () => {
  const turns = openTurns();
  const operation = limited(1, 60_000);
  await turns.take(operation, 10_000, undefined);
  const waiting = errorOf(turns.take(operation, 10_000, undefined));
  turns.close();
  expect(await waiting).toMatchObject({ name: 'NetworkError', reason: 'aborted', maybeApplied: false });
  expect(await errorOf(turns.take(operation, 10_000, undefined))).toMatchObject({ reason: 'aborted' });
});

test('a signal ends the wait for a turn', async () => {
  const turns = openTurns();
  const operation = limited(1, 60_000);
  const stopping = new AbortController();
  await turns.take(operation, 10_000, stopping.signal);
  const waiting = errorOf(turns.take(operation, 10_000, stopping.signal));
  stopping.abort();
  expect(await waiting).toMatchObject({ reason: 'aborted', message: 'the call was withdrawn by its signal' });
});
