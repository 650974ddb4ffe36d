import { expect, test } from 'vitest';
import { classifySync, type Verdict } from '../../src/exchange/classify.ts';
import { type Credentials, createSession } from '../../src/exchange/exchange.ts';
import { type KillSwitchArguments, syncKillSwitch, timerFields } from '../../src/exchange/operations.ts';
import type { NonceMode } from '../../src/exchange/sign.ts';
import type { Transport, WireContent, WireResult } from '../../src/exchange/wire.ts';
import { createHandClock } from './servers.ts';

const WALL_MS = 1_700_000_000_000;

/** A session over a wire that notes each request and answers what `answer` says. */
function createBench(mode: NonceMode, answer: (content: WireContent) => WireResult) {
  const clock = createHandClock(WALL_MS);
  const requests: WireContent[] = [];
  const transport: Transport = {
    send(request, done) {
      queueMicrotask(() => {
        const content = request.content();
        requests.push(content);
        request.mayWrite();
        done(answer(content));
      });
      return () => undefined;
    },
    close: async () => undefined,
  };
  const credentials: { current: () => Credentials } = {
    current: () => ({ key: 'test-key', secret: 'test-secret' }),
  };
  const session = createSession({ transport, clock, credentials: () => credentials.current(), nonce: mode });
  const sync = (given: KillSwitchArguments): Promise<Verdict> =>
    new Promise<Verdict>((resolve) => {
      const settled = (verdict: Verdict) => resolve(verdict);
      const delivery = { base: 'https://exchange.example', fresh: false, mayWrite: () => true };
      session.call(
        syncKillSwitch,
        timerFields(given),
        delivery,
        (result, redact) => classifySync(result, given, redact),
        settled,
      );
    });
  return { clock, requests, sync, credentials };
}

function response(status: number, value: unknown, dateMs?: number): WireResult {
  const headers = dateMs === undefined ? {} : { date: new Date(dateMs).toUTCString() };
  return { kind: 'response', status, headers, body: Buffer.from(JSON.stringify(value)) };
}

const ARM = { market: 'BTC_USDT', timeoutSeconds: 60, types: ['spot'] } as const;
const STALE = { code: 0, errors: {}, message: 'Too many requests.' };

function nonceOf(request: WireContent | undefined): number {
  return Number((JSON.parse(request?.body ?? '{}') as { nonce: string }).nonce);
}

test('a key that was changed meanwhile is used from the next request on', async () => {
  const { requests, sync, credentials } = createBench('increasing', () => response(200, []));
  await sync(ARM);
  credentials.current = () => ({ key: 'second-key', secret: 'second-secret' });
  await sync(ARM);
  expect(requests.map(({ headers }) => headers['X-TXC-APIKEY'])).toEqual(['test-key', 'second-key']);
});

test('a key that cannot be read settles as a failure of the key, and nothing is sent', async () => {
  const { requests, sync, credentials } = createBench('increasing', () => response(200, []));
  credentials.current = () => {
    throw new Error('no such file');
  };
  expect(await sync(ARM)).toMatchObject({
    kind: 'transient',
    reason: 'auth',
    maybeApplied: false,
    detail: 'the API key could not be read: no such file',
  });
  expect(requests).toEqual([]);
});

test('in window mode with a local clock an hour wrong, one refusal with a Date header is enough', async () => {
  for (const wrongByMs of [-3_600_000, 3_600_000]) {
    const serverMs = () => clock.now().wallMs - wrongByMs;
    const { clock, requests, sync } = createBench('window', (request) => {
      const ok = Math.abs(nonceOf(request) - serverMs()) <= 5_000;
      const refusal = {
        code: 0,
        errors: {},
        message: 'Your nonce is more than 5 seconds lesser than the current nonce.',
      };
      return ok ? response(200, [], serverMs()) : response(400, refusal, serverMs());
    });
    const remove = { market: 'BTC_USDT', timeoutSeconds: null, types: null };
    expect((await sync(remove)).kind).toBe('nonce');
    expect((await sync(remove)).kind).toBe('deleted');
    clock.advance(10_000);
    expect((await sync(remove)).kind).toBe('deleted');
    expect(requests[0]?.body).toContain(`"nonce":"${WALL_MS}","nonceWindow":true,"market"`);
  }
});

test.each([
  ['', false],
  [', also after a refused key, which shows nothing of a nonce', true],
])(
  'in increasing mode a restart after the clock was set back an hour recovers within three tries%s',
  async (_what, refusesFirst) => {
    let lastAccepted = WALL_MS + 3_600_000;
    let refusesKey = refusesFirst;
    const { clock, sync } = createBench('increasing', (request) => {
      if (refusesKey) return response(401, { code: 2, errors: {}, message: 'Unauthorized request.' });
      if (nonceOf(request) <= lastAccepted) return response(429, STALE, clock.now().wallMs);
      lastAccepted = nonceOf(request);
      return response(200, []);
    });
    const remove = { market: 'BTC_USDT', timeoutSeconds: null, types: null };
    if (refusesFirst) expect((await sync(remove)).kind).toBe('unauthorised');
    refusesKey = false;
    const kinds: string[] = [];
    for (let attempt = 0; attempt < 5; attempt += 1) kinds.push((await sync(remove)).kind);
    expect(kinds).toEqual(['nonce', 'nonce', 'nonce', 'deleted', 'deleted']);
  },
);
