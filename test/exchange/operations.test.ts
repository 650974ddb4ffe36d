import { expect, test } from 'vitest';
import { signPayload } from '../../src/exchange/sign.ts';
import { errorOf, KEY, openClient, SECRET, TOKEN } from './open.ts';
import { ORDER, ORDER_REQUEST, SAMPLES, WITHDRAWAL } from './samples.ts';
import { serveHttp } from './servers.ts';

/** A server that notes what it is sent and answers `reply` with success. */
async function note(reply: unknown, status = 200) {
  const seen: { method: unknown; path: unknown; body: string; headers: Record<string, unknown> }[] = [];
  const server = await serveHttp(({ method, url, headers }, response, body) => {
    seen.push({ method, path: url, body, headers });
    response.writeHead(status).end(JSON.stringify(reply));
  });
  return { base: server.base, seen };
}

const nonceless = (body: string | undefined) => body?.replace(/"nonce":"\d{13}"/, '"nonce":"N"');

test.each(SAMPLES)(
  '$name sends what the document asks for and gives back the whole reply, at either address, with 200 or 201',
  async ({ call, reply, value, method, path, authentication, fields }) => {
    const { base, seen } = await note(reply);
    const created = await note(reply, 201);
    const client = openClient([base, created.base]);
    expect([await call(client), await call(client, { base: 1 })]).toEqual([value, value]);
    expect([seen, created.seen]).toMatchObject([[{ method, path }], [{ method, path }]]);
    const { body, headers } = seen[0] ?? expect.fail('nothing came');
    // Who does not say so may be answered in any coding.
    expect([headers['user-agent'], headers['accept-encoding']]).toEqual(['killswitchd', 'identity']);
    const named = ['x-txc-apikey', 'x-txc-payload', 'x-txc-signature', 'authorization', 'content-type'];
    const shown = named.map((name) => headers[name]);
    if (authentication === 'signed') {
      expect(nonceless(body)).toBe(`{"request":"${path}","nonce":"N",${fields}}`);
      const payload = Buffer.from(body).toString('base64');
      expect(shown).toEqual([KEY, payload, signPayload(payload, SECRET), undefined, 'application/json']);
    } else if (authentication === 'bearer') {
      expect(body).toBe(`{${fields}}`);
      expect(shown).toEqual([undefined, undefined, undefined, `Bearer ${TOKEN}`, 'application/json']);
    } else {
      expect(body).toBe('');
      expect(shown.slice(0, 4)).toEqual([undefined, undefined, undefined, undefined]);
    }
  },
);

test('what is left out is not sent, and neither is the word that a currency is fiat', async () => {
  const { base, seen } = await note({ ...ORDER, side: 'sell', deal_stock: '0.5', client_order_id: '' });
  const client = openClient(base);
  await client.createStockMarketOrder({ market: 'BTC_USDT', side: 'sell', amount: 0.5, stp: undefined });
  const euros = { ticker: 'EUR', network: undefined, provider: 'SEPA', fiat: true };
  await client.withdrawPay({ ...WITHDRAWAL, ...euros });
  // No reply to this one.
  await errorOf(client.myCodes());
  expect(seen.map(({ body }) => nonceless(body))).toEqual([
    '{"request":"/api/v4/order/stock_market","nonce":"N","market":"BTC_USDT","side":"sell","amount":"0.5"}',
    '{"request":"/api/v4/main-account/withdraw-pay","nonce":"N","ticker":"EUR","amount":"10","address":"TXyz","unique_id":"w-1","provider":"SEPA"}',
    '{"request":"/api/v4/main-account/codes/my","nonce":"N"}',
  ]);
});

test('a request is sent as it was when it was checked', async () => {
  const { base, seen } = await note(ORDER);
  const order = { ...ORDER_REQUEST };
  const placed = openClient(base).createStockMarketOrder(order);
  Object.assign(order, { amount: '5000000' });
  await placed;
  expect(seen[0]?.body).toContain('"amount":"60"');
});

test('an order history takes the token of the call, reads no key, and comes as an object even where it is empty', async () => {
  const { base, seen } = await note([]);
  const client = openClient(base, { credentials: () => expect.fail('asked for the key') });
  expect(await client.orderHistory({}, { accessToken: 'another' })).toEqual({});
  expect(seen[0]?.headers['authorization']).toBe('Bearer another');
});
