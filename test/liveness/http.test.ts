import { Resolver } from 'node:dns';
import type { RequestListener } from 'node:http';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { openHttpProber } from '../../src/daemon/url-requests.ts';
import { createHttpEvidence } from '../../src/liveness/http.ts';
import type { Clock } from '../../src/ports.ts';
import { createHandClock, serveHttp, serveSilence } from '../exchange/servers.ts';
import { until } from './started.ts';
import { createVirtual } from './virtual.ts';

/** Bots with a URL in a virtual world; an answer of undefined hangs. In any network and on any host: `test/simulation`. */
function watched({
  urls = () => [{ bot: 'default', at: 'http://bot/' }],
  everyMs = 5000,
  latencyMs = 2,
  answer = (): string | null | undefined => null,
} = {}) {
  const world = createVirtual();
  const open: string[] = [];
  const timeouts: number[] = [];
  const evidence = createHttpEvidence({
    clock: world.clock,
    urls,
    probeEveryMs: () => everyMs,
    onProblem: world.onProblem,
    open(url) {
      open.push(url);
      return {
        probe(timeoutMs, done) {
          timeouts.push(timeoutMs);
          const given = answer();
          if (given === undefined) world.clock.after(timeoutMs, () => done('no answer'));
          else world.later(latencyMs, () => done(given));
        },
        close() {
          open.splice(open.indexOf(url), 1);
        },
      };
    },
  });
  const end = world.start(evidence);
  return { ...world, end, open, timeouts };
}

describe('a URL of the bot', () => {
  test('that answers 200 is a beat of the moment that the probe was sent', () => {
    const { said, timeline } = watched({ latencyMs: 700 });
    timeline.runUntil(6000);
    expect(said.map(({ atMs, datedMs }) => [atMs, datedMs])).toEqual([
      [700, 0],
      [5700, 5000],
    ]);
  });

  test('whose answers are no good counts for nothing, and that is told once', () => {
    const { said, told, timeline } = watched({ answer: () => 'HTTP 503, not 2xx' });
    timeline.runUntil(11_000);
    expect(said).toEqual([]);
    expect(told).toEqual(['default: HTTP 503, not 2xx']);
  });

  test('that hangs counts for nothing, and counts again when it answers', () => {
    let hangs = true;
    const { said, told, timeline } = watched({ answer: () => (hangs ? undefined : null) });
    timeline.runUntil(20_000);
    expect(said).toEqual([]);
    hangs = false;
    timeline.runUntil(26_000);
    expect(said).toHaveLength(1);
    expect(told).toEqual(['default: no answer', 'default: -']);
  });

  test.each([
    [5000, 1000],
    [1000, 1000],
    [300, 300],
  ])('that is probed every %i ms has %i ms to answer', (everyMs, timeoutMs) => {
    const { timeouts, timeline } = watched({ everyMs });
    timeline.runUntil(20_000);
    expect(new Set(timeouts)).toEqual(new Set([timeoutMs]));
  });

  test('that a reload puts in the place of one that failed is told to be found', () => {
    let at = 'http://wrong/';
    const answer = () => (at === 'http://wrong/' ? 'HTTP 404, not 2xx' : null);
    const { told, timeline } = watched({ urls: () => [{ bot: 'default', at }], answer });
    timeline.runUntil(1000);
    at = 'http://right/';
    timeline.runUntil(6000);
    expect(told).toEqual(['default: HTTP 404, not 2xx', 'default: -']);
  });

  test('that changes by a reload has a connection of its own, and after the end nothing is told any more', () => {
    let urls = ['a', 'b'].map((name) => ({ bot: name, at: `http://${name}/` }));
    const { open, said, timeline, end } = watched({ urls: () => urls, latencyMs: 910 });
    timeline.runUntil(1000);
    expect(open).toEqual(['http://a/', 'http://b/']);
    urls = [{ bot: 'b', at: 'http://c/' }];
    timeline.runUntil(6000);
    expect(open).toEqual(['http://c/']);
    expect(said.map(({ bot }) => bot)).toEqual(['a', 'b', 'b']);
    timeline.runUntil(10_500);
    end();
    expect(open).toEqual([]);
    timeline.runUntil(30_000);
    expect(said).toHaveLength(3);
  });
});

function probing(url: string, clock: Clock = createSystemClock()) {
  const prober = openHttpProber(clock, url);
  onTestFinished(() => prober.close());
  const ask = (timeoutMs = 5000) => new Promise<string | null>((resolve) => prober.probe(timeoutMs, resolve));
  return { prober, ask };
}

describe('one probe', () => {
  test('is a GET of the very URL, over one connection that is kept and closed in the end', async () => {
    const { base, paths, connections, open } = await serveHttp(({ method }, response) => {
      response.writeHead(method === 'GET' ? 200 : 405).end();
    });
    const { prober, ask } = probing(`${base}/health?deep=1`);
    for (let count = 0; count < 3; count += 1) expect(await ask()).toBe(null);
    expect(new Set(paths)).toEqual(new Set(['/health?deep=1']));
    expect([connections(), open()]).toEqual([1, 1]);
    prober.close();
    await until('the connection to close', () => open() === 0);
  });

  test.each([204, 299, 301, 404, 503])('answered with %i counts only below 300', async (status) => {
    const { base } = await serveHttp((_request, response) => response.writeHead(status).end());
    expect(await probing(base).ask()).toBe(status < 300 ? null : `HTTP ${status}, not 2xx`);
  });

  const late = 'no whole answer within 200 ms';
  const broken: string = expect.any(String);
  const endless: RequestListener = (_request, response) => {
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(16_384)));
    };
    response.on('drain', more);
    more();
  };
  test.each<[string, number, RequestListener, string | null]>([
    [
      'with a redirect is not followed',
      5000,
      (_request, response) => response.writeHead(302, { location: '/b', connection: 'close' }).end(),
      'HTTP 302, not 2xx',
    ],
    ['without an end is cut off', 5000, endless, null],
    ['that never comes is given up', 200, () => undefined, late],
    ['that never ends is given up', 200, (_request, response) => response.write('alive'), late],
    ['that is not HTTP counts for nothing', 5000, ({ socket }) => socket.end('SSH-2.0-OpenSSH\r\n'), broken],
    [
      'that breaks off counts for nothing',
      5000,
      ({ socket }) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nshort'),
      broken,
    ],
  ])(
    'an answer %s, and the next probe goes over a new connection',
    async (_what, withinMs, handler, seen) => {
      let isIll = true;
      const { base, paths, open, connections } = await serveHttp((request, response) => {
        if (isIll) handler(request, response);
        else response.end();
      });
      const { ask } = probing(base);
      expect(await ask(withinMs)).toEqual(seen);
      await until('the connection to close', () => open() === 0);
      isIll = false;
      expect(await ask()).toBe(null);
      expect([paths, connections()]).toEqual([['/', '/'], 2]);
    },
  );

  test('of an address where nobody listens says so, and finds the bot that is started there', async () => {
    // Nobody is given a port by chance while it is in use at another address of the loopback.
    const { port } = await serveSilence();
    const { ask } = probing(`http://127.0.0.2:${port}`);
    expect(await ask()).toContain('ECONNREFUSED');
    await serveHttp((_request, response) => response.end(), { host: '127.0.0.2', port });
    expect(await ask()).toBe(null);
  });

  type Found = (error: Error | null, addresses?: readonly string[]) => void;
  test.each([
    [
      'does not exist any more goes to no address of before',
      'ENOTFOUND',
      'ENOTFOUND',
      'cannot connect: ENOTFOUND',
    ],
    ['has no address any more goes to no address of before', 'ENODATA', 'ENODATA', 'cannot connect: ENODATA'],
    ['cannot be looked up goes to the address of before', 'ETIMEOUT', 'ETIMEOUT', null],
    ['can be looked up by half goes to the address of before', 'ESERVFAIL', 'ENODATA', null],
  ])('of a name that %s', async (_what, ofFour, ofSix, seen) => {
    const names = { isThere: true };
    for (const [method, code] of [['resolve4', ofFour] as const, ['resolve6', ofSix] as const])
      vi.spyOn(Resolver.prototype, method).mockImplementation(((_name: string, found: Found) =>
        names.isThere && method === 'resolve4'
          ? found(null, ['127.0.0.1'])
          : found(Object.assign(new Error(code), { code, syscall: method }))) as never);
    onTestFinished(() => void vi.restoreAllMocks());
    const { base } = await serveHttp((_request, response) => response.setHeader('connection', 'close').end());
    const clock = createHandClock(1_700_000_000_000);
    const { ask } = probing(base.replace('127.0.0.1', 'bot.test'), clock);
    expect(await ask()).toBe(null);
    names.isThere = false;
    clock.advance(10_000);
    // The known address is dialled once more while the name is looked up.
    await ask();
    expect(await ask()).toBe(seen);
  });
});
