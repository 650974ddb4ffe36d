import { type Answer, done, type Refusal } from './answer.ts';
import { type Asset, chooseNetwork } from './assets.ts';
import {
  add,
  compare,
  type Decimal,
  decimal,
  fitsScale,
  formatDecimal,
  parseDecimal,
  ZERO,
} from './decimal.ts';
import type { Call, ExchangeState } from './exchange-state.ts';
import type { Withdrawal } from './holdings.ts';
import {
  AMOUNT_VALIDATION,
  DEFAULT_VALIDATION,
  type Flaw,
  fieldOf,
  flawsAmong,
  optionalTextFlaw,
  refuseFields,
  textFlaw,
} from './wording.ts';

const MAX_UNIQUE_ID = 255;

/** Codes of the live exchange for what is wrong inside. */
const LIVE = { notWithdrawable: 1, tooSmall: 3, balance: 5, precision: 7 } as const;

interface Order {
  readonly kind: 'order';
  readonly ticker: string;
  readonly amount: Decimal;
  readonly address: string;
  readonly uniqueId: string;
  readonly provider: unknown;
  readonly network: unknown;
}

/**
 * `POST /api/v4/main-account/withdraw-pay`: the receiver gets the amount, and the fee is taken on top. The reply has no
 * documented field, so it is an empty array, as it is at the live exchange, there with 201. Documented: 422 for the
 * form, 400 for the rest.
 */
export function withdrawPay(call: Call): Answer {
  const { account, nowMs, state } = call;
  const { profile, holdings } = state;
  const order = readOrder(call);
  if (order.kind === 'refused') return order;
  const { ticker, amount, address, uniqueId } = order;
  if (holdings.withdrawals.find(account, uniqueId) !== undefined) {
    const messages = ['The unique_id has already been taken.'];
    const taken: Flaw = { field: 'unique_id', code: DEFAULT_VALIDATION, messages };
    return refuseFields(profile === 'live' ? 'form' : 'inner', [taken], profile);
  }
  const asset = holdings.assets.get(ticker);
  if (asset === undefined)
    return refuseFields('inner', [tickerFlaw('The selected ticker is invalid.')], profile);
  if (asset.providers.length > 0) {
    const missing = textFlaw('provider', order.provider);
    if (missing !== null) return refuseFields('form', [missing], profile);
  }
  const network = chooseNetwork(asset, order.network);
  const flaws = flawsAmong([
    asset.canDeposit ? null : tickerFlaw('The currency has can_deposit false and cannot be withdrawn.'),
    providerFlaw(asset, order.provider),
    network.kind === 'wrong' ? networkFlaw(network.problem) : null,
    amountFlaw(account, asset, amount, state),
  ]);
  if (flaws.length > 0 || network.kind === 'wrong') return refuseFields('inner', flaws, profile);
  const withdrawal: Withdrawal = {
    uniqueId,
    account,
    ticker,
    amount: formatDecimal(amount),
    fee: asset.withdrawFee,
    address,
    network: network.network,
    provider: asset.providers.find((provider) => provider === order.provider) ?? null,
    atMs: nowMs,
  };
  if (call.apply) carryOut(withdrawal, amount, state);
  return done([], profile === 'live' ? 201 : 200);
}

function carryOut(withdrawal: Withdrawal, amount: Decimal, state: ExchangeState): void {
  const { account, ticker, uniqueId, fee, network, atMs } = withdrawal;
  const { ledger, withdrawals } = state.holdings;
  ledger.move({ account }, 'withdrawn', ticker, amount);
  ledger.move({ account }, 'fees', ticker, decimal(fee));
  withdrawals.add(account, uniqueId, withdrawal);
  const { amount: text } = withdrawal;
  state.log.append(
    { kind: 'withdrawal-created', account, uniqueId, ticker, amount: text, fee, network },
    atMs,
  );
}

/** Every field is required but provider and network; the document says so of provider only. */
function readOrder({ body, state }: Call): Order | Refusal {
  const { profile } = state;
  const { ticker, address, provider, network } = body;
  const uniqueId = fieldOf(body, 'unique_id', profile);
  const amount = parseDecimal(typeof body['amount'] === 'string' ? body['amount'] : '');
  const flaws = flawsAmong([
    textFlaw('ticker', ticker),
    textFlaw('amount', body['amount']) ?? (amount === null ? notNumeric() : null),
    textFlaw('address', address),
    textFlaw('unique_id', uniqueId) ?? lengthFlaw(String(uniqueId)),
    optionalTextFlaw('provider', provider),
    optionalTextFlaw('network', network),
  ]);
  if (flaws.length > 0 || amount === null) return refuseFields('form', flaws, profile);
  return {
    kind: 'order',
    ticker: String(ticker),
    amount,
    address: String(address),
    uniqueId: String(uniqueId),
    provider,
    network,
  };
}

function notNumeric(): Flaw {
  return { field: 'amount', code: AMOUNT_VALIDATION, messages: ['The amount must be a numeric string.'] };
}

function lengthFlaw(uniqueId: string): Flaw | null {
  if (uniqueId.length <= MAX_UNIQUE_ID) return null;
  const messages = [`The unique_id may not be longer than ${MAX_UNIQUE_ID} characters.`];
  return { field: 'unique_id', code: DEFAULT_VALIDATION, messages };
}

function tickerFlaw(message: string): Flaw {
  const liveCode = LIVE.notWithdrawable;
  return { field: 'ticker', code: DEFAULT_VALIDATION, liveCode, messages: [message] };
}

function providerFlaw(asset: Asset, given: unknown): Flaw | null {
  if (asset.providers.length === 0 || asset.providers.some((provider) => provider === given)) return null;
  const messages = [`Unsupported provider. ${asset.ticker} has: ${asset.providers.join(', ')}.`];
  return { field: 'provider', code: DEFAULT_VALIDATION, messages };
}

function networkFlaw(message: string): Flaw {
  return { field: 'network', code: DEFAULT_VALIDATION, messages: [message] };
}

function amountFlaw(account: string, asset: Asset, amount: Decimal, state: ExchangeState): Flaw | null {
  const flaw = (liveCode: number, message: string): Flaw => ({
    field: 'amount',
    code: AMOUNT_VALIDATION,
    liveCode,
    messages: [message],
  });
  if (compare(amount, ZERO) <= 0) return flaw(LIVE.tooSmall, 'The amount must be greater than 0.');
  if (!fitsScale(amount, asset.precision)) {
    return flaw(LIVE.precision, `The amount may have at most ${asset.precision} digits after the point.`);
  }
  const balance = state.holdings.ledger.balance(account, asset.ticker);
  if (compare(balance, add(amount, decimal(asset.withdrawFee))) >= 0) return null;
  return flaw(
    LIVE.balance,
    `Not enough money, ${asset.ticker} balance = ${formatDecimal(balance)}, fee = ${asset.withdrawFee}`,
  );
}
