import { type Answer, done } from './answer.ts';
import type { Asset } from './assets.ts';
import { decimal, formatDecimal, multiply } from './decimal.ts';
import type { Call } from './exchange-state.ts';
import { PLAIN_TERMS } from './market-terms.ts';
import type { Operation } from './operations.ts';

const GENERAL_LIMIT = { requests: 2000, windowMs: 10_000 };
const PERCENT = decimal('100');

/**
 * What the API document does not have, and libraries of the live exchange ask for before they do anything else: which
 * markets and currencies there are, and the time. Public, and only read. The fields are those of the live exchange.
 */
export const LISTINGS: readonly Operation[] = [
  listing('markets', listMarkets),
  listing('assets', listAssets),
  listing('time', ({ nowMs }) => done({ time: Math.floor(nowMs / 1000) })),
];

function listing(name: string, run: Operation['run']): Operation {
  const path = `/api/v4/public/${name}`;
  return { name, method: 'GET', path, auth: { kind: 'none' }, limit: GENERAL_LIMIT, run };
}

function listMarkets({ state }: Call): Answer {
  return done(
    state.listedMarkets.map((name) => {
      const [stock = '', money = ''] = name.split('_');
      const terms = state.holdings.markets.terms(name);
      const { stockPrecision, moneyPrecision } = terms ?? PLAIN_TERMS;
      const fee = formatDecimal(multiply(terms?.feeRate ?? decimal(PLAIN_TERMS.feeRate), PERCENT));
      return {
        name,
        stock,
        money,
        stockPrec: String(stockPrecision),
        moneyPrec: String(moneyPrecision),
        feePrec: '4',
        makerFee: fee,
        takerFee: fee,
        minAmount: terms === null ? PLAIN_TERMS.minAmount : formatDecimal(terms.minAmount),
        minTotal: terms === null ? PLAIN_TERMS.minTotal : formatDecimal(terms.minTotal),
        maxTotal: '1000000000',
        tradesEnabled: true,
        isCollateral: true,
        type: terms === null ? 'futures' : 'spot',
      };
    }),
  );
}

function listAssets({ state }: Call): Answer {
  return done(
    Object.fromEntries(Array.from(state.holdings.assets, ([ticker, asset]) => [ticker, assetEntry(asset)])),
  );
}

/** Withdrawals need what the API document ties them to: `can_deposit`. */
function assetEntry(asset: Asset): unknown {
  const { ticker, canDeposit, networks, providers, precision, minDeposit } = asset;
  const isFiat = providers.length > 0;
  const names = isFiat ? [ticker] : networks;
  const [first = null] = names;
  const limits = Object.fromEntries(names.map((name) => [name, { min: minDeposit }]));
  return {
    name: ticker,
    unified_cryptoasset_id: 0,
    can_withdraw: canDeposit,
    can_deposit: canDeposit,
    min_withdraw: '0',
    max_withdraw: '0',
    maker_fee: '0.1',
    taker_fee: '0.1',
    min_deposit: minDeposit,
    max_deposit: '0',
    networks: {
      deposits: names,
      withdraws: names,
      ...(asset.hasDefaultNetwork !== false && { default: first }),
    },
    ...(isFiat && { providers: { deposits: providers, withdraws: providers } }),
    limits: { deposit: limits, withdraw: {} },
    currency_precision: precision,
    is_memo: asset.hasMemo === true,
  };
}
