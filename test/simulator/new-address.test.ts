import { expect, test } from 'vitest';
import { createTrader, invalid, PATHS } from './trader.ts';

const { newAddress } = PATHS;
const enabled = { newAddresses: true };
const addressIn = (answer: { value: unknown }) =>
  (answer.value as { account: { address: string; memo?: string } }).account.address;

test('it is disabled until the account is enabled for it', () => {
  const keys = [
    { key: 'demo-key', secret: 'demo-secret', account: 'main' },
    { key: 'b', secret: 'demo-secret', account: 'other' },
  ];
  const disabled = {
    status: 403,
    value: { code: 4, message: "You don't have permission to use this endpoint.", errors: {} },
  };
  expect(createTrader().ask(newAddress, { ticker: 'BTC' })).toEqual(disabled);
  const trader = createTrader({ keys, newAddresses: ['other'] });
  expect(trader.ask(newAddress, { ticker: 'BTC' })).toEqual(disabled);
  expect(trader.ask(newAddress, { ticker: 'BTC' }, { key: 'b' }).status).toBe(200);
});

test('the record has every documented field', () => {
  expect(createTrader(enabled).ask(newAddress, { ticker: 'BTC' })).toEqual({
    status: 200,
    value: {
      account: { address: expect.stringMatching(/^bc1q/) },
      required: {
        fixedFee: '0',
        flexFee: { maxFee: '0', minFee: '0', percent: '0' },
        maxAmount: '0',
        minAmount: '0.0004',
      },
    },
  });
});

test.each([
  [{ ticker: 'BTC' }, /^bc1q/],
  [{ ticker: 'BTC', type: 'bech32' }, /^bc1q/],
  [{ ticker: 'BTC', type: 'p2sh-segwit' }, /^3/],
  [{ ticker: 'LTC' }, /^ltc1q/],
  [{ ticker: 'LTC', type: 'p2sh-segwit' }, /^M/],
  [{ ticker: 'USDT' }, /^0x/],
  [{ ticker: 'USDT', network: 'ERC20' }, /^0x/],
  [{ ticker: 'USDT', network: 'TRC20' }, /^T/],
  [{ ticker: 'USDT', network: 'OMNI' }, /^1/],
  [{ ticker: 'SOL', network: 'SOL' }, /^simulated/],
])('%j begins with %s, and no wallet would take it for a real address', (fields, beginning) => {
  const address = addressIn(createTrader(enabled).ask(newAddress, fields));
  expect(address).toMatch(beginning);
  expect(address).toContain('simulated');
});

test('a memo is there for currencies that use one', () => {
  const { value } = createTrader(enabled).ask(newAddress, { ticker: 'XRP' });
  expect(value).toMatchObject({ account: { memo: expect.stringMatching(/^\d+$/) } });
});

test('every address is new, and the same again in a run with the same seed', () => {
  const run = (seed: number) => {
    const trader = createTrader({ ...enabled, seed });
    return [1, 2, 3].map(() => addressIn(trader.ask(newAddress, { ticker: 'ETH' })));
  };
  expect(new Set([...run(1), ...run(2)]).size).toBe(6);
  expect(run(1)).toEqual(run(1));
});

test('what was created can be seen, what was pretended was not created', () => {
  const trader = createTrader(enabled);
  trader.ask(newAddress, { ticker: 'LTC' }, { pretend: 'pretend' });
  expect(trader.exchange.addresses()).toEqual([]);
  const address = addressIn(trader.ask(newAddress, { ticker: 'LTC' }));
  expect(trader.exchange.addresses()).toEqual([
    { account: 'main', ticker: 'LTC', network: 'LTC', type: 'bech32', address, memo: null },
  ]);
  expect(trader.exchange.log.since(0)).toMatchObject([{ kind: 'address-created', ticker: 'LTC', address }]);
});

test.each<[object, number, object]>([
  [{}, 422, { ticker: ['The ticker field is required.'] }],
  [
    { ticker: 7, network: {}, type: 1 },
    422,
    {
      ticker: ['The ticker must be a string.'],
      network: ['The network must be a string.'],
      type: ['The type must be a string.'],
    },
  ],
  [{ ticker: 'NOPE' }, 400, { ticker: ['The selected ticker is invalid.'] }],
  [{ ticker: 'XMR' }, 400, { ticker: ['Currency is not depositable'] }],
  [{ ticker: 'EUR' }, 400, { ticker: ['Fiat currencies are unavailable for this action'] }],
  [
    { ticker: 'USDT', network: 'BTC' },
    400,
    { network: ['Unsupported network. USDT has: ERC20, TRC20, OMNI.'] },
  ],
  [{ ticker: 'USDC' }, 400, { network: ['Cannot extract default network. USDC has: ERC20, SOL.'] }],
  [{ ticker: 'BTC', type: 'legacy' }, 400, { type: ['The type may hold only bech32 or p2sh-segwit.'] }],
  [
    { ticker: 'ETH', type: 'bech32' },
    400,
    { type: ['ETH has one type of address; type must not be given.'] },
  ],
])('%j is refused with %i', (fields, status, errors) => {
  const trader = createTrader(enabled);
  expect(trader.ask(newAddress, fields)).toEqual(invalid(status, 30, errors));
  expect(trader.exchange.addresses()).toEqual([]);
});

test('the live profile answers 201, and 422 for what is not possible', () => {
  const trader = createTrader({ ...enabled, profile: 'live' });
  expect(trader.ask(newAddress, { ticker: 'BTC' }).status).toBe(201);
  expect(trader.ask(newAddress, {})).toMatchObject({ status: 400, value: { code: 0 } });
  expect(trader.ask(newAddress, { ticker: 'EUR' })).toMatchObject({
    status: 422,
    value: { code: 0, message: 'Inner validation failed' },
  });
});
