import { expect } from 'vitest';
import { type AnySide, but, type Case, done, type Refusal, refuses, refusesWithout } from './steps.ts';

const OPERATION = 'syncKillSwitch';
const row = (kindAndName: string) => `${OPERATION} ${kindAndName}`;

interface Timer {
  readonly startTime: number;
  readonly cancellationTime: number;
  readonly types: readonly string[] | null;
}

const sync = async (side: AnySide, fields: object) =>
  (await done(side, OPERATION, { market: 'BTC_USDT', timeout: '60', ...fields })) as Timer;

function refusal(title: string, rows: readonly string[], fields: object, expected: Partial<Refusal>): Case {
  return {
    title,
    rows: rows.map(row),
    options: { markets: ['BTC_USDT'] },
    check: (side) =>
      refuses(side, OPERATION, but(OPERATION, { ...fields }), {
        status: 422,
        code: 30,
        field: 'timeout',
        ...expected,
      }),
  };
}

const required = (field: string): Case => ({
  title: `a timer without ${field} is refused with code 30`,
  rows: [row(`code 30 ${field}`), row(`request ${field}`)],
  check: (side) => refusesWithout(side, OPERATION, field),
});

function firing(title: string, name: string, types: readonly string[] | null, left: readonly string[]): Case {
  return {
    title,
    rows: [row(`state ${name}`), row('request types')],
    async check(side) {
      const order = { side: 'buy', amount: '1', price: '1' } as const;
      for (const type of ['spot', 'margin', 'futures'] as const) {
        side.exchange.placeOrder({ ...order, market: 'BTC_USDT', type }, Date.now());
      }
      side.exchange.placeOrder({ ...order, market: 'ETH_USDT', type: 'spot' }, Date.now());
      const { cancellationTime } = await sync(side, { types });
      side.exchange.advance(cancellationTime * 1000);
      expect(side.exchange.orders().map(({ market, type }) => `${market} ${type}`)).toEqual([
        ...left,
        'ETH_USDT spot',
      ]);
    },
  };
}

export const TIMER_CASES: readonly Case[] = [
  required('market'),
  required('timeout'),
  ...['5', '600'].map(
    (timeout): Case => ({
      title: `a timer of ${timeout} s is made and ends ${timeout} s after its start`,
      rows: [row('request timeout'), row('limit timeout'), row('state none to active')],
      async check(side) {
        const { startTime, cancellationTime } = await sync(side, { timeout });
        expect(cancellationTime - startTime).toBe(Number(timeout));
        expect(side.exchange.timers()).toMatchObject([{ market: 'BTC_USDT', startTime, cancellationTime }]);
      },
    }),
  ),
  {
    title: 'a second request updates the timer',
    rows: [row('state active to active')],
    async check(side) {
      await sync(side, { timeout: '60' });
      const { startTime, cancellationTime } = await sync(side, { timeout: '30' });
      expect(cancellationTime - startTime).toBe(30);
      expect(side.exchange.timers()).toMatchObject([{ cancellationTime }]);
    },
  },
  {
    title: 'a timeout of null deletes the timer of the market and no other',
    rows: [row('state active to none'), row('limit timeout'), row('request timeout')],
    async check(side) {
      await sync(side, { market: 'ETH_USDT' });
      await sync(side, {});
      await sync(side, { timeout: null });
      expect(side.exchange.timers()).toMatchObject([{ market: 'ETH_USDT' }]);
    },
  },
  firing('a timer with types null cancels orders of all types', 'fires for all types', null, []),
  firing(
    'a timer with types cancels orders of those',
    'fires for its types',
    ['spot'],
    ['BTC_USDT margin', 'BTC_USDT futures'],
  ),
  {
    title: 'a timer that was made with types null is told with all order types',
    rows: [row('reply types[]'), row('request types')],
    async check(side) {
      expect((await sync(side, { types: null })).types).toEqual(['spot', 'margin', 'futures']);
    },
  },
  {
    title: 'the timeout is sent as a string, and a number is refused',
    rows: [row('request timeout')],
    async check(side) {
      if (side.kind === 'raw') {
        const expected = { status: 422, code: 30, field: 'timeout', message: /numeric string or null/ };
        await refuses(side, OPERATION, but(OPERATION, { timeout: 60 }), expected);
        return;
      }
      await sync(side, { timeout: '60' });
      expect(JSON.parse(String(side.sent[0]?.body))).toMatchObject({ timeout: '60' });
    },
  },
  refusal(
    'a timeout below 5 is refused with code 30',
    ['code 30 below 5', 'limit timeout'],
    { timeout: '4' },
    {
      message: /should be at least 5/,
    },
  ),
  refusal('a timeout above 600 is refused', ['limit timeout'], { timeout: '601' }, {}),
  refusal(
    'an order type that is none is refused',
    ['request types'],
    { types: ['spot', 'options'] },
    { field: 'types' },
  ),
  refusal(
    'a timer of a market that is not available is refused with code 31',
    ['code 31 not available', 'request market'],
    { market: 'NO_MARKET' },
    { code: 31, field: 'market', message: /not available/, sent: true },
  ),
];
