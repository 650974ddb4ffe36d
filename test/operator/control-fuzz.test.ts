import fc from 'fast-check';
import { expect, test } from 'vitest';
import { asker, createSpy, dial, heardOf, start, TCP } from './control-fixture.ts';

const JSON_HEAD = 'Host: localhost\r\nContent-Type: application/json\r\n';
const PAUSE = '{"markets":["BTC_USDT"],"forSeconds":600}';
const VALID = [
  `POST /v1/pause HTTP/1.1\r\n${JSON_HEAD}Content-Length: ${PAUSE.length}\r\n\r\n${PAUSE}`,
  `POST /v1/trip HTTP/1.1\r\n${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  'POST /v1/goodbye?bot=main HTTP/1.1\r\nHost: localhost\r\n\r\n',
];

/** How many replies in what came back have this kind of status. */
const count = (heard: string, status: RegExp): number =>
  [...heard.matchAll(/HTTP\/1\.1 (\d{3}) /g)].filter(([, found = '']) => status.test(found)).length;

/** As `say`, but ends the connection, with which Node gives up replies, only after what was sent had its time. */
async function sayAndWait(address: string | undefined, bytes: Uint8Array, wait: () => Promise<void>) {
  const socket = dial(address);
  const heard = heardOf(socket);
  await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
  await wait();
  socket.end();
  return heard;
}

test('a request with something changed is either carried out and answered so, or refused and changes nothing', async () => {
  const spy = createSpy();
  const { addresses } = await start(spy, [TCP]);
  const change = fc.record({
    at: fc.nat({ max: 999 }),
    remove: fc.nat({ max: 3 }),
    put: fc.oneof(fc.string({ maxLength: 4 }), fc.constantFrom('\r\n', '\0', '\r', ' ', '"', '{', ':', 'ÿ')),
  });
  const changes = fc.array(change, { maxLength: 3 });
  const apply = (text: string, all: readonly { at: number; remove: number; put: string }[]): string =>
    all.reduce((changed, { at, remove, put }) => {
      const from = Math.floor((at * changed.length) / 1000);
      return changed.slice(0, from) + put + changed.slice(from + remove);
    }, text);
  const anywhere = fc.tuple(fc.constantFrom(...VALID), changes).map(([valid, all]) => apply(valid, all));
  // Well-formed HTTP, so that what is changed comes as far as the checks of body and query.
  const inside = fc.tuple(changes, changes).map(([ofBody, ofBot]) => {
    const body = apply(PAUSE, ofBody.slice(0, 1));
    const bot = encodeURIComponent(apply('main', ofBot.slice(0, 1)));
    return ofBot.length % 2 === 0
      ? `POST /v1/pause HTTP/1.1\r\n${JSON_HEAD}Content-Length: ${body.length}\r\n\r\n${body}`
      : `POST /v1/goodbye?bot=${bot} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  });
  const ask = asker(addresses[0]);
  const fence = async () => {
    // Each begins one turn after it has come, as the commands do: what was sent before has begun by then.
    for (let turn = 0; turn < 2; turn += 1) expect((await ask('/v1/log-level')).status).toBe(200);
  };
  let requests = 0;
  let answered = 0;
  await fc.assert(
    fc.asyncProperty(fc.oneof(anywhere, inside), async (text) => {
      spy.calls.length = 0;
      requests += 1;
      const heard = await sayAndWait(addresses[0], Buffer.from(text, 'latin1'), fence);
      expect(count(heard, /^(?!200|4\d\d)/), heard).toBe(0);
      const carriedOut = spy.calls.filter(([name]) => name !== 'hear' && name !== 'setLogLevel');
      expect(carriedOut.length, `${text}\n\n${heard}`).toBeLessThanOrEqual(1);
      if (count(heard, /^200/) === 0) expect(spy.calls, text).toEqual([]);
      else answered += 1;
    }),
    { numRuns: 300 },
  );
  expect(answered).toBeGreaterThan(requests / 50);
  expect(answered).toBeLessThan(requests);
});
