import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { createLimits, type LimitsOptions } from '../../src/exchange/limits.ts';
import {
  OPERATIONS,
  type Operation,
  type OperationName,
  ping,
  syncKillSwitch,
} from '../../src/exchange/operations.ts';
import type { NonceMode } from '../../src/exchange/sign.ts';
import { errorOf, openClient } from './open.ts';
import { CODES, sampleOf, TIMER } from './samples.ts';
import { serveHttp, serveReply, serveSilence } from './servers.ts';

afterEach(() => void vi.useRealTimers());

const ARM = { market: 'BTC_USDT', timeoutSeconds: 60 } as const;
const replyTo = (path = '') => JSON.stringify(path.includes('codes') ? CODES : TIMER);

test('a hundred parallel calls go one after the other where nonces rise, and none fails or warns', async () => {
  const warnings: string[] = [];
  const note = ({ name }: Error) => void warnings.push(name);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  const arrived: number[] = [];
  let last = 0;
  // It takes rising nonces only, and every request takes another time on the wire.
  const { base } = await serveHttp((request, response, body) => {
    const nonce = Number((JSON.parse(body) as { nonce: string }).nonce);
    arrived.push(nonce);
    const answer = () => {
      if (nonce <= last) response.writeHead(429).end('{"code":0,"message":"Too many requests.","errors":{}}');
      else response.end(replyTo(request.url));
      last = Math.max(last, nonce);
    };
    setTimeout(answer, (arrived.length * 7) % 13);
  });
  const client = openClient(base);
  const patient = { signal: new AbortController().signal, timeoutMs: 120_000 };
  const calls = Array.from({ length: 100 }, (_, index) =>
    index % 2 === 0 ? client.syncKillSwitch(ARM, patient) : client.myCodes({}, patient),
  );
  await Promise.all(calls);
  expect(arrived).toHaveLength(100);
  expect(arrived.toSorted((one, other) => one - other)).toEqual(arrived);
  expect(warnings).toEqual([]);
}, 60_000);

test('a timer goes before the reading calls that wait', async () => {
  const held: (() => void)[] = [];
  const server = await serveHttp((request, response) => {
    const answer = () => response.end(replyTo(request.url));
    if (server.paths.length === 1) held.push(answer);
    else answer();
  });
  const client = openClient(server.base);
  const reads = Array.from({ length: 6 }, () => client.myCodes());
  await expect.poll(() => held.length).toBe(1);
  const timer = client.syncKillSwitch(ARM);
  // Its job has to have come as far as the queue of the others: over turns of the event loop, however long they last.
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1));
  held[0]?.();
  await Promise.all([timer, ...reads]);
  expect(server.paths[1]).toBe('/api/v4/order/kill-switch');
});

function open(options: Partial<LimitsOptions> = {}) {
  const limits = createLimits({ clock: createSystemClock(), nonce: 'window', concurrent: 64, ...options });
  onTestFinished(() => limits.close());
  return <T>(operation: Operation, job: () => Promise<T>, waitMs = 2_000) =>
    limits.run(operation, { waitMs, signal: undefined }, job);
}

test('no sliding window sees more than the limit, and half of it may go at once', async () => {
  const run = open({ budget: { requests: 4, windowMs: 1_000 } });
  const atMs: number[] = [];
  const job = async () => void atMs.push(performance.now());
  await Promise.all(Array.from({ length: 6 }, () => run(syncKillSwitch, job, 20_000)));
  const begunMs = atMs[0] ?? 0;
  expect(atMs.filter((ms) => ms < begunMs + 100)).toHaveLength(2);
  for (const startMs of atMs)
    expect(atMs.filter((ms) => ms >= startMs && ms < startMs + 1_000).length).toBeLessThanOrEqual(4);
});

test('calls that wait behind a slow one of another operation gather nothing that they could all use at once', async () => {
  const run = open({ nonce: 'increasing', budget: { requests: 8, windowMs: 1_000 } });
  const slow = run(OPERATIONS.withdrawPay, () => new Promise((resolve) => setTimeout(resolve, 2_000)));
  const late = Array.from({ length: 4 }, () => errorOf(run(syncKillSwitch, async () => expect.fail(), 100)));
  const atMs: number[] = [];
  const job = async () => void atMs.push(performance.now());
  await Promise.all([slow, ...late, ...Array.from({ length: 12 }, () => run(syncKillSwitch, job, 20_000))]);
  for (const startMs of atMs)
    expect(atMs.filter((ms) => ms >= startMs && ms < startMs + 1_000).length).toBeLessThanOrEqual(8);
});

/** Those that are not signed go beside the signed ones where nonces rise. */
const TOGETHER: readonly [NonceMode, ...OperationName[]][] = [
  ['window', 'syncKillSwitch', 'myCodes', 'ping'],
  ['increasing', 'miningPool', 'orderHistory', 'ping'],
];

test.each(TOGETHER)(
  'with nonces of mode %s as many calls are under way as there are connections',
  async (nonce, ...names) => {
    let underWay = 0;
    let most = 0;
    const samples = names.map(sampleOf);
    const server = await serveHttp(({ url }, response) => {
      underWay += 1;
      most = Math.max(most, underWay);
      setTimeout(() => {
        underWay -= 1;
        response.end(JSON.stringify(samples.find(({ path }) => path === url)?.reply));
      }, 50);
    });
    const client = openClient(server.base, { nonce, connections: 3 });
    await Promise.all([...samples, ...samples].map(({ call }) => call(client)));
    expect(most).toBe(3);
  },
);

test('whoever has no turn in half of its time is not sent, and takes no turn from the others', async () => {
  const server = await serveReply(TIMER);
  const client = openClient(server.base, { nonce: 'window', budget: { requests: 2, windowMs: 2_000 } });
  await client.syncKillSwitch(ARM);
  // Half of what is left of the time when the call comes to wait, which a slow machine makes less than 100 ms.
  const message = /^not sent: syncKillSwitch, with a limit of 2 requests in 2 s, had no turn within \d+ ms$/;
  const error = await errorOf(client.syncKillSwitch(ARM, { timeoutMs: 200 }));
  expect(error).toMatchObject({ name: 'ThrottledError', maybeApplied: false, status: null });
  expect((error as Error).message).toMatch(message);
  await client.syncKillSwitch(ARM, { timeoutMs: 10_000 });
  expect(server.paths).toHaveLength(2);
});

test('what waits rejects when its signal fires, and when the client is closed', async () => {
  const client = openClient((await serveSilence()).base);
  const stopping = new AbortController();
  const hanging = errorOf(client.myCodes());
  const withdrawn = errorOf(client.myCodes({}, { signal: stopping.signal }));
  const closed = errorOf(client.myCodes());
  stopping.abort(new Error('enough'));
  const aborted = { name: 'NetworkError', reason: 'aborted' };
  expect(await withdrawn).toMatchObject({ ...aborted, cause: { message: 'enough' }, maybeApplied: false });
  await client.close();
  expect(await hanging).toMatchObject(aborted);
  for (const error of [await closed, await errorOf(client.myCodes())])
    expect(error).toMatchObject({ ...aborted, message: 'the client was closed', maybeApplied: false });
});

test.each([0, 3_600_000])(
  'a step back of the wall clock by an hour, %i ms after a step ahead, holds nobody up',
  async (aheadMs) => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const run = open({ nonce: 'increasing' });
    for (const stepMs of [0, aheadMs, -3_600_000]) {
      vi.setSystemTime(Date.now() + stepMs);
      expect(await run(OPERATIONS.withdrawPay, async () => 'begun')).toBe('begun');
    }
    expect(await run(ping, async () => 'begun')).toBe('begun');
  },
);
