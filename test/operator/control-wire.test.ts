import dns, { type LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { asker, clock, dial, heardOf, open, say, TCP } from './control-fixture.ts';

/** The status of every reply in what came back. */
const statusesOf = (heard: string): number[] =>
  [...heard.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));

const HEAD = 'Host: localhost\r\nContent-Type: application/json\r\n';
const beat = (body: string) =>
  `POST /v1/beat?bot=main HTTP/1.1\r\n${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`;

test.each([
  ['a Unix socket', undefined],
  ['loopback', TCP],
])('beats that are sent ahead over %s are answered in their order', async (_, listen) => {
  const { address, calls } = await open({}, listen);
  const last = beat('{"seq":10}').replace('Host', 'Connection: close\r\nHost');
  const beats = Array.from({ length: 9 }, (_each, index) => beat(`{"seq":${index + 1}}`));
  const heard = await say(address, [...beats, last].join(''));
  expect(statusesOf(heard)).toEqual(Array(10).fill(200));
  const numbers = calls.map(([, , , proof]) => (proof as { seq: number }).seq);
  expect(numbers).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

test('who sends too many ahead is told so after the replies to the first 16, and nothing more is looked at', async () => {
  const { address, refused } = await open({
    operate: () => new Promise((resolve) => clock.after(200, () => resolve([]))),
  });
  const heard = await say(address, `POST /v1/arm HTTP/1.1\r\n${HEAD}\r\n`.repeat(50));
  expect(statusesOf(heard)).toEqual([...Array(16).fill(200), 503]);
  expect(heard).toContain('more than 16 requests were sent ahead; wait for their replies');
  expect(heard).toMatch(/retry-after: 1\r\n/i);
  expect(refused).toEqual(['too_many_requests']);
});

test('a body in chunks is read, and refused when it is too long, no JSON or no UTF-8', async () => {
  const { address, calls } = await open();
  const latin = `POST /v1/trip HTTP/1.1\r\n${HEAD}Connection: close\r\nContent-Length: 4\r\n\r\n"\xff\xfe"`;
  const notUtf8 = await say(address, Buffer.from(latin, 'latin1'));
  expect([statusesOf(notUtf8), calls]).toEqual([[400], []]);
  expect(notUtf8).toContain('its bytes are not UTF-8');
  const chunked = (body: string) =>
    `POST /v1/arm HTTP/1.1\r\n${HEAD}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${Array.from(body)
      .map((byte) => `1\r\n${byte}\r\n`)
      .join('')}0\r\n\r\n`;
  expect(statusesOf(await say(address, chunked('{"markets":["ETH_USDT"]}')))).toEqual([200]);
  expect(calls[0]?.[1]).toMatchObject({ markets: ['ETH_USDT'] });
  expect(statusesOf(await say(address, chunked('{"markets":')))).toEqual([400]);
  expect(statusesOf(await say(address, chunked(' '.repeat(65_537))))).toEqual([413]);
  expect(statusesOf(await say(address, chunked(`{}${' '.repeat(65_534)}`)))).toEqual([200]);
  expect(calls).toHaveLength(2);
});

const BOTH = 'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n';
test.each([
  ['bytes that are no HTTP', '\u0000\u0001\u0002 rubbish\r\n\r\n'],
  ['a TLS greeting', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003'],
  ['a method that is none', 'TRIP /v1/trip HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  ['a length and chunks', `POST /v1/trip HTTP/1.1\r\n${HEAD}${BOTH}\r\n{}`],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a body without its length', `POST /v1/trip HTTP/1.1\r\n${HEAD}\r\n{"markets":["BTC_USDT"]}\r\n\r\n`],
  ['more than its length', `POST /v1/trip HTTP/1.1\r\n${HEAD}Content-Length: 2\r\n\r\n{}, too\r\n\r\n`],
  ['a body of a goodbye', 'POST /v1/goodbye?bot=main HTTP/1.1\r\nHost: localhost\r\n\r\n{"seq":7}\r\n\r\n'],
])('%s is answered with 400 and the end of the connection, and makes no command', async (__, bytes) => {
  const { address, calls, refused } = await open();
  const heard = await say(address, Buffer.from(bytes, 'latin1'));
  expect(statusesOf(heard)).toEqual([400]);
  expect(heard).toContain('"code":"malformed_request"');
  expect(heard).toMatch(/connection: close/i);
  expect([calls, refused]).toEqual([[], ['malformed_request']]);
});

/** Has `localhost` mean two addresses of this host, as where it has IPv4 and IPv6. */
function haveTwoLocalhosts(): void {
  const both: LookupAddress[] = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
  const answer = (host: string, _options: unknown, done: (error: null, found: LookupAddress[]) => void) =>
    done(null, host === 'localhost' ? both : [{ address: host, family: 4 }]);
  const spies = [
    vi.spyOn(dns, 'lookup').mockImplementation(answer as unknown as typeof dns.lookup),
    vi.spyOn(dns.promises, 'lookup').mockResolvedValue(both as never),
  ];
  onTestFinished(() => {
    for (const spy of spies) spy.mockRestore();
  });
}

test('every address of localhost is guarded alike', async () => {
  haveTwoLocalhosts();
  const { address = '', calls, refused } = await open({}, 'localhost:0');
  const port = Number(new URL(address).port);
  for (const host of ['127.0.0.1', '127.0.0.2']) {
    const socket = connect(port, host).on('error', () => {});
    socket.write(`POST /v1/trip HTTP/1.1\r\n${HEAD}\r\n{"markets":["BTC_USDT"]}\r\n\r\n`);
    const heard = await heardOf(socket);
    expect(statusesOf(heard), host).toEqual([400]);
    expect(heard).toContain('"code":"malformed_request"');
  }
  expect([calls, refused]).toEqual([[], ['malformed_request', 'malformed_request']]);
});

test('an address of localhost where another process listens already is refused: it would hear the token', async () => {
  haveTwoLocalhosts();
  const other = createServer().listen(0, '127.0.0.2');
  await once(other, 'listening');
  onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;
  await expect(open({}, `localhost:${port}`)).rejects.toThrow(/the address is in use by another process/);
});

test('a body that ends early changes nothing', async () => {
  const { address, calls } = await open();
  await say(address, `POST /v1/trip HTTP/1.1\r\n${HEAD}Content-Length: 100\r\n\r\n{}`, true);
  await asker(address)('/v1/arm');
  expect(calls).toMatchObject([['operate', { does: 'arm' }, expect.any(Number)]]);
});

test('rubbish that comes while a command is waited for is not answered in its place', async () => {
  const begun = Promise.withResolvers<void>();
  const { address } = await open({
    operate: () => {
      begun.resolve();
      return new Promise(() => {});
    },
  });
  const socket = dial(address);
  const heard = heardOf(socket);
  socket.write(`POST /v1/trip HTTP/1.1\r\n${HEAD}Content-Length: 2\r\n\r\n{}`);
  await begun.promise;
  socket.write('rubbish\r\n\r\n');
  expect(await heard).toBe('');
});

test('who is slow with headers or body is refused after 5 s, while others are answered', async () => {
  const { address, calls, refused } = await open();
  const beforeMs = clock.now().monoMs;
  const sockets = ['', 'POST /v1/trip HT', `POST /v1/trip HTTP/1.1\r\n${HEAD}`].map((begun) => {
    const socket = dial(address);
    socket.write(begun);
    return socket;
  });
  const slow = `POST /v1/trip HTTP/1.1\r\n${HEAD}Content-Length: 2000\r\n\r\n`;
  const drip = dial(address);
  drip.write(slow);
  const stop = setInterval(() => drip.write(' '), 100);
  const heard = await Promise.all([...sockets, drip].map(heardOf));
  clearInterval(stop);
  const tookMs = clock.now().monoMs - beforeMs;
  expect(tookMs).toBeGreaterThan(4500);
  expect(tookMs).toBeLessThan(9000);
  expect(heard.map(statusesOf)).toEqual([[408], [408], [408], [408]]);
  expect(heard[3]).toContain('the request was not complete after 5 s');
  expect(calls).toEqual([]);
  expect(refused).toEqual(Array(4).fill('too_slow'));
  expect((await asker(address)('/v1/arm')).status).toBe(200);
});

test('the end comes at once, whoever still waits or sends', async () => {
  const { address, close } = await open({ operate: () => new Promise(() => {}) });
  const waits = asker(address)('/v1/trip').then(
    () => 'answered',
    () => 'ended',
  );
  const half = say(address, 'POST /v1/trip HTTP/1.1\r\n');
  await asker(address)('/v1/beat?bot=main');
  const beforeMs = clock.now().monoMs;
  await close();
  expect(clock.now().monoMs - beforeMs).toBeLessThan(1000);
  expect(await waits).toBe('ended');
  expect(await half).toBe('');
  await close();
  await expect(asker(address)('/v1/beat?bot=main')).rejects.toThrow(/ECONNREFUSED|ENOENT/);
});

const PAUSE = '{"markets":["BTC_USDT"],"forSeconds":600}';
const pause = (body: string) =>
  `POST /v1/pause HTTP/1.1\r\n${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`;
const goodbye = (bot: string) => `POST /v1/goodbye?bot=${bot} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
const chunked = `POST /v1/trip HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`;

test('a request with something changed is either carried out and answered so, or refused and changes nothing', async () => {
  const { address, ask, calls } = await open({}, TCP);
  const put = fc.oneof(
    fc.string({ maxLength: 4 }),
    fc.constantFrom('\r\n', '\0', '\r', ' ', '"', '{', ':', 'ÿ'),
  );
  const change = fc.record({ at: fc.nat({ max: 999 }), remove: fc.nat({ max: 3 }), put });
  const changed = (text: string) =>
    fc.array(change, { maxLength: 3 }).map((changes) =>
      changes.reduce((now, { at, remove, put: more }) => {
        const from = Math.floor((at * now.length) / 1000);
        return now.slice(0, from) + more + now.slice(from + remove);
      }, text),
    );
  const anywhere = [pause(PAUSE), goodbye('main'), chunked].map(changed);
  // Well-formed HTTP, so that what is changed comes as far as the checks of body and query.
  const inside = [changed(PAUSE).map(pause), changed('main').map((bot) => goodbye(encodeURIComponent(bot)))];
  let answered = 0;
  await fc.assert(
    fc.asyncProperty(fc.oneof(...anywhere, ...inside), async (text) => {
      calls.length = 0;
      const socket = dial(address);
      const heard = heardOf(socket);
      await new Promise<void>((resolve) => socket.write(Buffer.from(text, 'latin1'), () => resolve()));
      // Each begins one turn after it has come, as the commands do: what was sent before has begun by then.
      for (let turn = 0; turn < 2; turn += 1) expect((await ask('/v1/log-level')).status).toBe(200);
      // With the end Node gives up replies: only now.
      socket.end();
      const statuses = statusesOf(await heard);
      expect(
        statuses.every((status) => /^(200|4..)$/.test(String(status))),
        text,
      ).toBe(true);
      const carriedOut = calls.filter(([name]) => name !== 'hear' && name !== 'setLogLevel');
      expect(carriedOut.length, text).toBeLessThanOrEqual(1);
      if (!statuses.includes(200)) expect(calls, text).toEqual([]);
      else answered += 1;
    }),
    { numRuns: 300 },
  );
  expect(answered).toBeGreaterThan(6);
  expect(answered).toBeLessThan(300);
});
