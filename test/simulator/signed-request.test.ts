import { expect, test } from 'vitest';
import { encodePayload } from '../../src/exchange/sign.ts';
import { refusal, runBothProfiles } from './both-profiles.ts';
import { KILL_SWITCH, nextNonce, PING, type Sent, signed, signedText } from './raw-client.ts';

const { server, ask } = runBothProfiles();

const FIELDS = { market: 'BTC_USDT', timeout: '60' };
const good = () => signed(FIELDS);
const INVALID = { status: 400, value: refusal(9, 'Invalid payload.') };
const STALE = { status: 429, value: refusal(0, 'Too many requests.') };

test('a payload that is not the base64 of exactly the body is refused', async () => {
  const sent = good();
  const own = String(sent.headers['x-txc-payload']);
  const other = encodePayload(JSON.stringify({ request: KILL_SWITCH, nonce: nextNonce() }));
  for (const payload of [other, own.replace(/=*$/, (padding) => (padding === '' ? '=' : '')), 'AAAA=']) {
    const headers = { ...sent.headers, 'x-txc-payload': payload };
    expect(await ask({ ...sent, headers })).toEqual(INVALID);
  }
  expect(await ask({ ...sent, body: `${String(sent.body)} ` })).toEqual(INVALID);
});

test('the live profile also takes a body that has white space where the payload has none, and no other values', async () => {
  const sent = good();
  const spaced = JSON.stringify(JSON.parse(String(sent.body)), null, 1);
  expect((await ask({ ...sent, body: spaced }, 'live')).status).toBe(200);
  const again = good();
  const forged = JSON.stringify({ ...JSON.parse(String(again.body)), timeout: '600' });
  for (const body of [forged, '', '[]', '{']) expect(await ask({ ...again, body }, 'live')).toEqual(INVALID);
});

test('JSON that is nested deep is a payload like any other, also where the body has white space', async () => {
  const deep = `{"request":"${KILL_SWITCH}","nonce":"1","x":${'['.repeat(4000)}${']'.repeat(4000)}}`;
  const sent = signedText(deep, { secret: 'wrong' });
  expect((await ask({ ...sent, body: `${deep} ` }, 'live')).status).toBe(401);
});

test('spaced JSON is a payload in the document, and none at the live exchange', async () => {
  const spaced = () => {
    const fields = { request: KILL_SWITCH, nonce: nextNonce(), ...FIELDS };
    return signedText(`${JSON.stringify(fields, null, 1)}\n`);
  };
  expect((await ask(spaced())).status).toBe(200);
  expect(await ask(spaced(), 'live')).toEqual(INVALID);
});

test.each([
  ['text/plain', 400],
  ['application/jsonp', 400],
  [undefined, 400],
  ['application/json', 200],
  ['Application/JSON; charset=utf-8', 200],
])('with content-type %s the document says %i, and the live exchange does not mind', async (type, status) => {
  const typed = (): Sent => {
    const sent = good();
    const { 'content-type': _left, ...headers } = sent.headers;
    return { ...sent, headers: type === undefined ? headers : { ...headers, 'content-type': type } };
  };
  expect((await ask(typed(), 'live')).status).toBe(200);
  const { status: found, value } = await ask(typed());
  expect(found).toBe(status);
  if (status === 400) expect(value).toEqual(refusal(9, 'Content-type must be application/json.'));
});

test.each(['[]', '"x"', '{"request":', 'hello'])('%s is no payload', async (body) => {
  expect(await ask(signedText(body))).toEqual(INVALID);
});

test.each([
  [{ request: 7 }, 400, refusal(9, 'Request not provided.')],
  [{ request: PING }, 400, refusal(9, 'Invalid request.')],
  [{ nonce: 'x'.repeat(256) }, 400, refusal(9, 'Nonce may not be longer than 255 characters.')],
  [{ nonce: ['7'] }, 400, refusal(9, 'Nonce must be a string.')],
  [{ nonce: 'abc', nonceWindow: true }, 400, refusal(9, 'Nonce not provided.')],
  [{ nonce: 1_700_000_000_000 }, 400, refusal(9, 'Nonce must be a string.')],
  [{ nonce: null }, 400, refusal(9, 'Nonce not provided.')],
  [{ nonceWindow: 'true' }, 400, refusal(9, 'Invalid nonceWindow.')],
])('the signed fields %j are refused with %i', async (fields, status, value) => {
  expect(await ask(signed({ ...FIELDS, ...fields }))).toEqual({ status, value });
});

test('a nonce that is not greater than the last accepted one gets a 429 with JSON', async () => {
  const nonce = nextNonce();
  expect((await ask(signed({ ...FIELDS, nonce }))).status).toBe(200);
  expect(await ask(signed({ ...FIELDS, nonce }))).toEqual(STALE);
  expect(await ask(signed({ ...FIELDS, nonce: String(Number(nonce) - 1) }))).toEqual(STALE);
  expect((await ask(signed({ ...FIELDS, nonce: nextNonce() }))).status).toBe(200);
});

test('the live profile takes a nonce that is a number, and none that is other text', async () => {
  const nonce = Number(nextNonce());
  const at = (value: unknown) => ask(signed({ ...FIELDS, nonce: value }), 'live');
  expect((await at(nonce)).status).toBe(200);
  expect((await at(nonce - 1)).status).toBe(429);
  const missing = { status: 400, value: refusal(9, 'Nonce not provided.') };
  for (const bad of ['abc', 1.5]) expect(await at(bad)).toEqual(missing);
});

test('in the document a nonce is any text that was not used before', async () => {
  const statuses: number[] = [];
  for (const nonce of ['5c7d-b', '5c7d-a', '5c7d-a', 'ü', 'x'.repeat(255)])
    statuses.push((await ask(signed({ ...FIELDS, nonce }))).status);
  expect(statuses).toEqual([200, 200, 429, 200, 200]);
});

test('a refused signature does not use its nonce up, a validation error does', async () => {
  const nonce = nextNonce();
  await ask(signed({ ...FIELDS, nonce }, { secret: 'wrong' }));
  expect((await ask(signed({ ...FIELDS, timeout: '1', nonce }))).status).toBe(422);
  expect((await ask(signed({ ...FIELDS, nonce }))).status).toBe(429);
});

test('a nonce window takes nonces in any order, each once, within 5 s of the clock of the exchange', async () => {
  const now = server('live').nowMs();
  const at = (nonce: number) => ask(signed({ ...FIELDS, nonceWindow: true, nonce: String(nonce) }), 'live');
  expect((await at(now)).status).toBe(200);
  expect((await at(now - 2000)).status).toBe(200);
  expect(await at(now - 2000)).toEqual(STALE);
  const beside = (which: string) => ({
    status: 400,
    value: refusal(0, `Your nonce is more than 5 seconds ${which} than the current nonce.`),
  });
  expect(await at(now - 9000)).toEqual(beside('lesser'));
  expect(await at(now + 60_000)).toEqual(beside('greater'));
});
