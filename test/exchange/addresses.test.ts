import { Resolver } from 'node:dns';
import { Socket } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openExchange } from './open.ts';
import { createHandClock, serveHttp } from './servers.ts';

type Answer = readonly [status: number, body: string];
type Found = (error: Error | null, addresses?: readonly string[]) => void;

const FIRST = '127.0.0.1';
const SECOND = '127.0.0.2';
const WELL: Answer = [200, '[]'];
const DRAINED: Answer = [503, 'drained'];
const NO_NAME = Object.assign(new Error('none'), { code: 'ENOTFOUND' });
const REMOVE = { timeoutSeconds: null };
const FRESH = { ...REMOVE, fresh: true };

/** An exchange with a server at each of two addresses, behind a name that has those of `addresses`. */
async function behindName(...addresses: string[]) {
  const names = { addresses: addresses as string[] | null };
  const four = vi.spyOn(Resolver.prototype, 'resolve4');
  four.mockImplementation(((_name: string, found: Found) =>
    names.addresses === null ? found(NO_NAME) : found(null, names.addresses)) as never);
  const six = vi.spyOn(Resolver.prototype, 'resolve6');
  six.mockImplementation(((_name: string, found: Found) => found(NO_NAME)) as never);
  onTestFinished(() => void vi.restoreAllMocks());
  const answers = { [FIRST]: WELL, [SECOND]: WELL };
  const serve = (host: keyof typeof answers, port?: number) => {
    const at = { host, port };
    return serveHttp((_request, response) => response.writeHead(answers[host][0]).end(answers[host][1]), at);
  };
  const first = await serve(FIRST);
  const second = await serve(SECOND, first.port);
  const clock = createHandClock(1_700_000_000_000);
  const base = `http://exchange.test:${first.port}`;
  return {
    ...openExchange({ base }, { allowPlainHttp: true, clock }),
    names,
    answers,
    clock,
    seen: () => [first.paths.length, second.paths.length],
    connections: () => [first.connections(), second.connections()],
  };
}

test.each<[string, 'first' | 'other', Answer]>([
  ['a 503', 'other', DRAINED],
  ['a 503 with an error object', 'other', [503, '{"code":0,"message":"Unavailable."}']],
  ['a 403 with a page', 'other', [403, '<html>']],
  ['a 429 with a page', 'other', [429, '<html>']],
  ['a 404 with a page', 'other', [404, '<html>']],
  ['a 200 with a page', 'other', [200, '<html>']],
  ['a 200 that is no reply', 'other', [200, '{"maintenance":true}']],
  ['a page that is too long', 'other', [503, 'x'.repeat(70_000)]],
  ['a redirect', 'other', [302, '']],
  ['a good reply', 'first', WELL],
  ['a refusal', 'first', [422, '{"code":30,"message":"Validation failed.","errors":{"market":["unknown"]}}']],
  ['a refused key', 'first', [401, '{"code":0,"message":"Unauthorized request.","errors":[]}']],
  ['a stale nonce', 'first', [429, '{"code":1,"message":"Too many requests.","errors":[]}']],
])(
  'where the first address answers with %s, a new connection goes to the %s one',
  async (_what, next, answer) => {
    const { sync, seen, answers, connections } = await behindName(FIRST, SECOND);
    answers[FIRST] = answer;
    for (const request of [REMOVE, REMOVE, FRESH]) await sync(request);
    expect(seen()).toEqual(next === 'first' ? [3, 0] : [1, 2]);
    expect(connections()).toEqual(next === 'first' ? [2, 0] : [1, 2]);
  },
);

test('a connection over which a 503 came is not used again, and its address is when the other one answers so', async () => {
  const { sync, seen, answers, connections } = await behindName(FIRST, SECOND);
  answers[FIRST] = DRAINED;
  for (let request = 0; request < 4; request += 1) await sync(REMOVE);
  expect(seen()).toEqual([1, 3]);
  expect(connections()).toEqual([1, 1]);
  answers[SECOND] = DRAINED;
  answers[FIRST] = WELL;
  await sync(REMOVE);
  expect(await sync(REMOVE)).toEqual({ kind: 'deleted' });
  expect(seen()).toEqual([2, 4]);
});

test('a ping that meets a 503 is tried again at the other address', async () => {
  const { ping, answers, seen } = await behindName(FIRST, SECOND);
  answers[FIRST] = DRAINED;
  answers[SECOND] = [200, '["pong"]'];
  expect(await ping(5000)).toMatchObject({ ok: true });
  expect(seen()).toEqual([1, 1]);
  expect(await ping(5000)).toMatchObject({ ok: true });
  expect(seen()).toEqual([1, 2]);
});

test('a name whose address answers 503 is looked up anew', async () => {
  const { sync, answers, names, clock, seen } = await behindName(FIRST);
  await sync(REMOVE);
  names.addresses = [SECOND];
  clock.advance(1000);
  answers[FIRST] = DRAINED;
  await sync(REMOVE);
  // The known address is dialled once more while the name is looked up.
  await sync(FRESH);
  expect(await sync(FRESH)).toEqual({ kind: 'deleted' });
  expect(seen()).toEqual([3, 1]);
});

test('a name that does not exist any more keeps its address: an error of the servers of names costs no renewal', async () => {
  const { sync, names, clock, seen } = await behindName(FIRST);
  await sync(REMOVE);
  names.addresses = null;
  clock.advance(10_000);
  for (let request = 0; request < 3; request += 1) expect(await sync(FRESH)).toEqual({ kind: 'deleted' });
  expect(seen()).toEqual([4, 0]);
});

test('an address that is far away is given time to answer before the next one is dialled', async () => {
  const { sync, clock } = await behindName(FIRST, SECOND);
  const waits: unknown[] = [];
  const connect = Reflect.get(Socket.prototype, 'connect');
  const late = vi.spyOn(Socket.prototype, 'connect') as unknown as ReturnType<typeof vi.fn>;
  late.mockImplementation(function connectLate(this: Socket, ...args) {
    const [[{ lookup, autoSelectFamilyAttemptTimeout }]] = args;
    if (lookup !== undefined) {
      waits.push(autoSelectFamilyAttemptTimeout);
      this.prependOnceListener('connect', () => clock.advance(waits.length === 1 ? 299.7 : 5.3));
    }
    return Reflect.apply(connect, this, args);
  });
  for (let request = 0; request < 3; request += 1) await sync(FRESH);
  expect(waits).toEqual([250, 600, 250]);
});
