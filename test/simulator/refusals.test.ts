import { expect, test } from 'vitest';
import { signed } from './raw-client.ts';
import { createTrader, PATHS, rowsOf } from './trader.ts';

/** Path of an operation, and a good request. */
const BASES: Readonly<Record<string, readonly [path: string, fields: object]>> = {
  buy: [PATHS.stockMarket, { market: 'BTC_USDT', side: 'buy', amount: '100' }],
  withdraw: [PATHS.withdrawPay, { ticker: 'BTC', amount: '1', address: 'somewhere', unique_id: 'w-1' }],
  address: [PATHS.newAddress, {}],
  codes: [PATHS.codes, {}],
  hashrate: [PATHS.hashrate, { account: 'rig' }],
  history: [PATHS.history, {}],
  timer: [PATHS.killSwitch, { market: 'BTC_USDT', timeout: '60' }],
};

/** A good request | what is changed about it | status and code | field: message, and further ones after a / */
const DOCUMENTED = String.raw`
buy      | {"market":7}                                | 422 31 | market: Market must be a string.
buy      | {"market":"BTC_PERP"}                       | 400 31 | market: Market is not available.
buy      | {"amount":" 1"}                             | 422 32 | amount: The amount must be a numeric string or number.
buy      | {"amount":1e-7}                             | 400 32 | amount: Given amount is less than min amount 5, Min amount step = 0.01
buy      | {"market":"","amount":"x","client_order_id":1} | 422 31 | market: Market must not be an empty string. / amount: The amount must be a numeric string or number. / client_order_id: The client_order_id must be a string.
withdraw | {"address":7,"ticker":{}}                   | 422 30 | ticker: The ticker must be a string. / address: The address must be a string.
withdraw | {"amount":"1e3"}                            | 422 32 | amount: The amount must be a numeric string.
withdraw | {"network":""}                              | 422 30 | network: The network must not be an empty string.
withdraw | {"ticker":"NOPE"}                           | 400 30 | ticker: The selected ticker is invalid.
withdraw | {"ticker":"USDC"}                           | 400 30 | network: Cannot extract default network. USDC has: ERC20, SOL.
withdraw | {"amount":"0"}                              | 400 32 | amount: The amount must be greater than 0.
withdraw | {"amount":"0.000000001"}                    | 400 32 | amount: The amount may have at most 8 digits after the point.
address  | {"ticker":"XMR"}                            | 400 30 | ticker: Currency is not depositable
address  | {"ticker":"EUR"}                            | 400 30 | ticker: Fiat currencies are unavailable for this action
hashrate | {"from":"1","to":1.5}                       | 422 30 | from: The from must be an integer. / to: The to must be an integer.
hashrate | {"to":1e300}                                | 422 30 | to: The to must be an integer.
hashrate | {"interval":"99999m"}                       | 422 30 | interval: The interval must be minutes, hours or days, such as 5m, 1h or 1d.
history  | {"offset":-1,"limit":1.5}                   | 422 30 | limit: The limit must be an integer. / offset: The offset must be at least 0.
history  | {"market":7}                                | 422 30 | market: The market must be a string.
timer    | {"timeout":"5.5"}                           | 422 30 | timeout: The timeout should be a whole number of seconds.
timer    | {"timeout":"600.00000000000001"}            | 422 30 | timeout: The timeout should be a whole number of seconds.
timer    | {"timeout":"null"}                          | 422 30 | timeout: The timeout must be a numeric string or null: "null" in quotes is a string.
timer    | {"types":"spot"}                            | 422 30 | types: The types must be an array or null.
timer    | {"types":[]}                                | 422 30 | types: The types should have from 1 to 3 items, or be null for all order types.
timer    | {"market":"nope","timeout":"4"}             | 422 30 | market: Market is not available. / timeout: The timeout should be at least 5.
`;

/** The same of profile live, with its words, spelling, statuses and codes. */
const LIVE = String.raw`
buy      | {"market":null,"side":null,"amount":null}   | 422 30 | market: Market field is required. / side: Side field is required. / amount: Amount field is required.
buy      | {"market":"","side":"x","amount":"x","clientOrderId":1} | 422 30 | market: Market field should not be empty string. / side: Side field should contain only 'buy' or 'sell' values. / amount: Amount field should be numeric string or number. / clientOrderId: ClientOrderId field should be a string.
buy      | {"amount":"0.00001"}                        | 400 32 | amount: Given amount is less than min amount 0.0001, Min amount step = 0.000001
withdraw | {"unique_id":null}                          | 400 0  | uniqueId: The unique id field is required.
withdraw | {"amount":"10"}                             | 422 5  | amount: Not enough money, BTC balance = 10, fee = 0.0004
withdraw | {"ticker":"XMR"}                            | 422 1  | ticker: The currency has can_deposit false and cannot be withdrawn.
withdraw | {"amount":"0"}                              | 422 3  | amount: The amount must be greater than 0.
withdraw | {"amount":"0.000000001"}                    | 422 7  | amount: The amount may have at most 8 digits after the point.
address  | {}                                          | 400 0  | ticker: The ticker field is required.
address  | {"ticker":"EUR"}                            | 422 0  | ticker: Fiat currencies are unavailable for this action
codes    | {"limit":0}                                 | 400 0  | limit: The limit must be at least 1.
hashrate | {"interval":"30m"}                          | 400 0  | interval: The interval must be one of 5m, 1h, 24h.
timer    | {"market":null,"timeout":"4"}               | 422 30 | market: Market field is required. / timeout: Timeout should be at least 5.
timer    | {"timeout":5.5}                             | 422 30 | timeout: Timeout should be a whole number of seconds.
`;

for (const [profile, table] of [['documented', DOCUMENTED] as const, ['live', LIVE] as const]) {
  const { exchange, handle } = createTrader({ newAddresses: true, profile });

  test.each(rowsOf(table))(
    `${profile} %s with %s is refused with %s, and changes nothing`,
    (base, changes, codes, errors) => {
      const [path, fields] = BASES[base] ?? expect.fail(base);
      const sent = signed({ ...fields, ...(JSON.parse(changes) as object) }, { path });
      const headers = { ...sent.headers, authorization: 'Bearer demo-token' };
      const named = errors.split(' / ').map((error) => {
        const [field = '', message = ''] = error.split(/: (.*)/s);
        return [field, message.split(/, (?=Min )/)];
      });
      const [status, code] = codes.split(/ +/).map(Number);
      const value = { code, errors: Object.fromEntries(named) as unknown };
      expect(handle({ ...sent, headers })).toEqual({ status, value: expect.objectContaining(value) });
      expect(exchange.books().market).toEqual({});
      expect([exchange.timers(), exchange.withdrawals(), exchange.addresses()]).toEqual([[], [], []]);
    },
  );
}
