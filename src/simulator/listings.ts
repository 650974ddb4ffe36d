import { type Answer, done, refuse } from './answer.ts';
import { formatDecimal, stepOf } from './decimal.ts';
import { type Asset, balanceOf } from './holdings.ts';
import { PLAIN_TERMS } from './markets.ts';
import { availableOf, type Call, frozenOf } from './state.ts';

/** `GET /api/v4/public/markets`. This and what follows has the fields of the live exchange. */
export function listMarkets({ listedMarkets, termsOf }: Call): Answer {
  const entries = listedMarkets.map((name) => {
    const [stock = '', money = ''] = name.split('_');
    const terms = termsOf(name);
    const { stockPrecision, moneyPrecision, feeRate, minAmount, minTotal } = terms ?? PLAIN_TERMS;
    const digits = { stockPrec: String(stockPrecision), moneyPrec: String(moneyPrecision), feePrec: '4' };
    const fee = formatDecimal(feeRate * 100n);
    const least = { minAmount: formatDecimal(minAmount), minTotal: formatDecimal(minTotal) };
    const bounds = { makerFee: fee, takerFee: fee, ...least, maxTotal: '1000000000' };
    const kind = { tradesEnabled: true, isCollateral: true, type: terms === null ? 'futures' : 'spot' };
    return { name, stock, money, ...digits, ...bounds, ...kind };
  });
  return done(entries);
}

/** `GET /api/v4/public/assets`. */
export function listAssets({ assets }: Call): Answer {
  return done(Object.fromEntries(Array.from(assets, ([ticker, asset]) => [ticker, assetEntry(asset)])));
}

/** Withdrawals need what the API document ties them to: `can_deposit`. */
function assetEntry(asset: Asset): unknown {
  const { ticker, canDeposit, networks, providers, precision, minDeposit } = asset;
  const isFiat = providers.length > 0;
  const names = isFiat ? [ticker] : networks;
  const [first = null] = names;
  const limits = Object.fromEntries(names.map((name) => [name, { min: minDeposit }]));
  const may = { can_withdraw: canDeposit, can_deposit: canDeposit, min_withdraw: '0', max_withdraw: '0' };
  const bounds = { maker_fee: '0.1', taker_fee: '0.1', min_deposit: minDeposit, max_deposit: '0' };
  const networkDefault = asset.hasDefaultNetwork !== false && { default: first };
  return {
    name: ticker,
    unified_cryptoasset_id: 0,
    ...may,
    ...bounds,
    networks: { deposits: names, withdraws: names, ...networkDefault },
    ...(isFiat && { providers: { deposits: providers, withdraws: providers } }),
    limits: { deposit: limits, withdraw: {} },
    currency_precision: precision,
    is_memo: asset.hasMemo === true,
  };
}

/** `GET /api/v1/public/ticker?market=`: the price, with bid and ask a step beside it. Nothing else is ever traded. */
export function readTicker({ body, termsOf }: Call): Answer {
  const terms = termsOf(String(body['market']));
  if (terms === null) return refuse(422, 31, 'Market is not available');
  const step = stepOf(terms.moneyPrecision);
  const [bid, last, ask] = [-step, 0n, step].map((aside) => formatDecimal(terms.price + aside));
  const traded = { volume: '0', deal: '0', change: '0' };
  const result = { bid, ask, open: last, high: last, low: last, last, ...traded };
  return done({ success: true, message: '', result });
}

/** `GET /api/v4/public/ticker`: the prices of all listed spot markets. */
export function readTickers({ listedMarkets, termsOf }: Call): Answer {
  const entries = listedMarkets.flatMap((market) => {
    const terms = termsOf(market);
    if (terms === null) return [];
    const traded = { quote_volume: '0', base_volume: '0', isFrozen: false, change: '0' };
    return [[market, { last_price: formatDecimal(terms.price), ...traded }] as const];
  });
  return done(Object.fromEntries(entries));
}

/** `main` is the money of `trade` once more: the simulator has no transfers between two balances. */
export const readBalances = (which: 'trade' | 'main') => (call: Call) => {
  const balanceFor = (currency: string) =>
    which === 'main'
      ? { main_balance: formatDecimal(balanceOf(call.data.purses, call.account, currency)) }
      : {
          available: formatDecimal(availableOf(call, call.account, currency)),
          freeze: formatDecimal(frozenOf(call, call.account, currency)),
        };
  const { ticker } = call.body;
  if (typeof ticker === 'string') return done(balanceFor(ticker));
  return done(Object.fromEntries(Array.from(call.assets.keys(), (name) => [name, balanceFor(name)])));
};
