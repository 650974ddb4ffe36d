import { expect, test } from 'vitest';
import { signPayload } from '../../src/exchange/sign.ts';
import { errorOf, KEY, openClient, SECRET, TOKEN } from './open.ts';
import { CODES, ORDER, ORDER_REQUEST, SAMPLES, TIMER, WITHDRAWAL } from './samples.ts';
import { serveHttp } from './servers.ts';

interface Seen {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly body: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A server that notes what it is sent and answers `reply` with success. */
async function note(reply: unknown, status = 200) {
  const seen: Seen[] = [];
  const server = await serveHttp(({ method, url, headers }, response, body) => {
    seen.push({ method, path: url, body, headers });
    response.writeHead(status).end(JSON.stringify(reply));
  });
  return { base: server.base, seen };
}

const nonceless = (body: string | undefined) => body?.replace(/"nonce":"\d{13}"/, '"nonce":"N"');

test.each(SAMPLES)(
  '$name sends what the document asks for and gives back the whole reply, come it with 200 or 201',
  async (sample) => {
    const { base, seen } = await note(sample.reply);
    const created = await note(sample.reply, 201);
    expect(await sample.call(openClient(created.base))).toEqual(sample.value ?? sample.reply);
    expect(await sample.call(openClient(base))).toEqual(sample.value ?? sample.reply);
    expect(seen).toHaveLength(1);
    const [{ method, path, body, headers } = expect.fail('nothing came')] = seen;
    expect([method, path]).toEqual([sample.method, sample.path]);
    // Who does not say so may be answered in any coding.
    expect([headers['user-agent'], headers['accept-encoding']]).toEqual(['killswitchd', 'identity']);
    const named = ['x-txc-apikey', 'x-txc-payload', 'x-txc-signature', 'authorization', 'content-type'];
    const [key, payload, signature, authorization, type] = named.map((name) => headers[name]);
    if (sample.authentication === 'signed') {
      expect(nonceless(body)).toBe(`{"request":"${sample.path}","nonce":"N",${sample.fields}}`);
      expect(payload).toBe(Buffer.from(body).toString('base64'));
      expect(signature).toBe(signPayload(String(payload), SECRET));
      expect([key, authorization, type]).toEqual([KEY, undefined, 'application/json']);
    } else if (sample.authentication === 'bearer') {
      expect(body).toBe(`{${sample.fields}}`);
      expect([key, payload, signature]).toEqual([undefined, undefined, undefined]);
      expect([authorization, type]).toEqual([`Bearer ${TOKEN}`, 'application/json']);
    } else {
      expect(body).toBe('');
      expect([key, payload, signature, authorization]).toEqual([undefined, undefined, undefined, undefined]);
    }
  },
);

test.each(SAMPLES)('$name goes to the base address that the call names', async (sample) => {
  const global = await note(sample.reply);
  const regional = await note(sample.reply);
  const client = openClient([global.base, regional.base]);
  await sample.call(client, { base: 1 });
  expect([global.seen.length, regional.seen.length]).toEqual([0, 1]);
  expect(await errorOf(sample.call(client, { base: 2 }))).toMatchObject({
    name: 'ArgumentError',
    argument: 'base',
    message: 'base is 2; allowed: whole numbers 0 to 1',
  });
});

test('what is left out is not sent', async () => {
  const { base, seen } = await note({ ...ORDER, side: 'sell', deal_stock: '0.5', client_order_id: '' });
  const client = openClient(base);
  await client.createStockMarketOrder({ market: 'BTC_USDT', side: 'sell', amount: 0.5, stp: undefined });
  expect(nonceless(seen[0]?.body)).toBe(
    '{"request":"/api/v4/order/stock_market","nonce":"N","market":"BTC_USDT","side":"sell","amount":"0.5"}',
  );
});

test('an empty request of what needs no argument is request and nonce alone', async () => {
  const { base, seen } = await note(CODES);
  await openClient(base).myCodes();
  expect(nonceless(seen[0]?.body)).toBe('{"request":"/api/v4/main-account/codes/my","nonce":"N"}');
});

test('the word that a currency is fiat stays here', async () => {
  const { base, seen } = await note([]);
  const withdrawal = { ...WITHDRAWAL, ticker: 'EUR', network: undefined, provider: 'SEPA', fiat: true };
  await openClient(base).withdrawPay(withdrawal);
  expect(nonceless(seen[0]?.body)).toBe(
    '{"request":"/api/v4/main-account/withdraw-pay","nonce":"N","ticker":"EUR","amount":"100.000001","address":"TXyz","unique_id":"w-2024/7","provider":"SEPA"}',
  );
});

test('a request is sent as it was when it was checked', async () => {
  const { base, seen } = await note(ORDER);
  const order: { -readonly [Name in keyof typeof ORDER_REQUEST]: string } = { ...ORDER_REQUEST };
  const placed = openClient(base).createStockMarketOrder(order as typeof ORDER_REQUEST);
  order.amount = '5000000';
  await placed;
  expect(seen[0]?.body).toContain('"amount":"50"');
});

test('an order history that is empty comes as an object, however it is written', async () => {
  const { base } = await note([]);
  expect(await openClient(base).orderHistory()).toEqual({});
});

test('the access token of a call goes before that of the client, and no key is read for it', async () => {
  const { base, seen } = await note({});
  const credentials = () => expect.fail('asked for the key');
  await openClient(base, { credentials }).orderHistory({}, { accessToken: 'another' });
  expect(seen[0]?.headers.authorization).toBe('Bearer another');
});

test('all signed operations draw from one source of nonces', async () => {
  const nonces: string[] = [];
  const replies = new Map(SAMPLES.map(({ path, reply }) => [path, reply]));
  const server = await serveHttp((request, response, body) => {
    nonces.push((JSON.parse(body) as { nonce: string }).nonce);
    response.end(JSON.stringify(replies.get(request.url ?? '')));
  });
  const client = openClient(server.base);
  const signed = SAMPLES.filter(({ authentication }) => authentication === 'signed');
  for (const { call } of [...signed, ...signed]) await call(client);
  expect(nonces).toHaveLength(12);
  expect(nonces).toEqual([...new Set(nonces)].sort());
});

test('in window mode every signed body says so', async () => {
  const { base, seen } = await note(TIMER);
  const signed = SAMPLES.filter(({ authentication }) => authentication === 'signed');
  const client = openClient(base, { nonce: 'window' });
  for (const { call } of signed) await call(client).catch(() => undefined);
  expect(seen.filter(({ body }) => body.includes('"nonceWindow":true'))).toHaveLength(signed.length);
});
