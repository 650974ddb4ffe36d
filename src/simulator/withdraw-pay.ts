import {
  type Answer,
  CODES,
  done,
  type Flaw,
  fieldOf,
  flaw,
  flawsAmong,
  optionalTextFlaw,
  refuseFields,
  textFlaw,
} from './answer.ts';
import {
  add,
  compare,
  type Decimal,
  decimal,
  fitsScale,
  formatDecimal,
  parseDecimal,
  subtract,
  ZERO,
} from './decimal.ts';
import { type Asset, addRecord, chooseNetwork, FEES, move, WITHDRAWN, type Withdrawal } from './holdings.ts';
import { availableOf, type Call, type ExchangeState } from './state.ts';

const MAX_UNIQUE_ID = 255;

/** Codes of the live exchange for what is wrong inside. */
const LIVE = { notWithdrawable: 1, tooSmall: 3, balance: 5, precision: 7 } as const;

/**
 * `POST /api/v4/main-account/withdraw-pay`: the receiver gets the amount, and the fee is taken on top. The reply has no
 * documented field, so it is an empty array, as it is at the live exchange, there with 201. Documented: 422 for the
 * form, 400 for the rest. Every field is required but provider and network; the document says so of provider only.
 */
export function withdrawPay(call: Call): Answer {
  return createWithdrawal(call, false);
}

/** `POST /api/v4/main-account/withdraw`: the same, and the fee is taken out of the amount. */
export function withdraw(call: Call): Answer {
  return createWithdrawal(call, true);
}

function createWithdrawal({ account, body, nowMs, state, apply }: Call, isFeeWithin: boolean): Answer {
  const { profile, data } = state;
  const { ticker, address, provider, network: givenNetwork } = body;
  const uniqueId = fieldOf(body, 'unique_id', profile);
  const amount = parseDecimal(typeof body['amount'] === 'string' ? body['amount'] : '');
  const numeric = flaw('amount', 'The amount must be a numeric string.', CODES.amount);
  const form = flawsAmong([
    textFlaw('ticker', ticker),
    textFlaw('amount', body['amount']) ?? (amount === null ? numeric : null),
    textFlaw('address', address),
    textFlaw('unique_id', uniqueId) ?? lengthFlaw(String(uniqueId)),
    optionalTextFlaw('provider', provider),
    optionalTextFlaw('network', givenNetwork),
  ]);
  if (form.length > 0 || amount === null) return refuseFields('form', form, profile);
  if (data.withdrawals.get(account)?.has(String(uniqueId)) === true) {
    const taken = flaw('unique_id', 'The unique_id has already been taken.');
    return refuseFields(profile === 'live' ? 'form' : 'inner', [taken], profile);
  }
  const asset = state.assets.get(String(ticker));
  if (asset === undefined)
    return refuseFields('inner', [tickerFlaw('The selected ticker is invalid.')], profile);
  const missing = asset.providers.length > 0 ? textFlaw('provider', provider) : null;
  if (missing !== null) return refuseFields('form', [missing], profile);
  const chosen = chooseNetwork(asset, givenNetwork);
  const flaws = flawsAmong([
    asset.canDeposit ? null : tickerFlaw('The currency has can_deposit false and cannot be withdrawn.'),
    providerFlaw(asset, provider),
    'problem' in chosen ? flaw('network', chosen.problem) : null,
    amountFlaw(account, asset, amount, isFeeWithin, state),
  ]);
  if (flaws.length > 0 || 'problem' in chosen) return refuseFields('inner', flaws, profile);
  const withdrawal: Withdrawal = {
    uniqueId: String(uniqueId),
    account,
    ticker: asset.ticker,
    amount: formatDecimal(isFeeWithin ? subtract(amount, decimal(asset.withdrawFee)) : amount),
    fee: asset.withdrawFee,
    address: String(address),
    network: chosen.network,
    provider: asset.providers.find((known) => known === provider) ?? null,
    atMs: nowMs,
  };
  if (apply) carryOut(withdrawal, state);
  return done([], profile === 'live' ? 201 : 200);
}

function carryOut(withdrawal: Withdrawal, { data, log }: ExchangeState): void {
  const { account, ticker, uniqueId, amount, fee, network, atMs } = withdrawal;
  move(data.purses, account, WITHDRAWN, ticker, decimal(amount));
  move(data.purses, account, FEES, ticker, decimal(fee));
  addRecord(data.withdrawals, account, uniqueId, withdrawal);
  log.append({ kind: 'withdrawal-created', account, uniqueId, ticker, amount, fee, network }, atMs);
}

function lengthFlaw(uniqueId: string): Flaw | null {
  if (uniqueId.length <= MAX_UNIQUE_ID) return null;
  return flaw('unique_id', `The unique_id may not be longer than ${MAX_UNIQUE_ID} characters.`);
}

function tickerFlaw(message: string): Flaw {
  return { ...flaw('ticker', message), liveCode: LIVE.notWithdrawable };
}

function providerFlaw({ ticker, providers }: Asset, given: unknown): Flaw | null {
  if (providers.length === 0 || providers.some((provider) => provider === given)) return null;
  return flaw('provider', `Unsupported provider. ${ticker} has: ${providers.join(', ')}.`);
}

function amountFlaw(
  account: string,
  { ticker, precision, withdrawFee }: Asset,
  amount: Decimal,
  isFeeWithin: boolean,
  state: ExchangeState,
): Flaw | null {
  const say = (liveCode: number, message: string) => ({ ...flaw('amount', message, CODES.amount), liveCode });
  const fee = decimal(withdrawFee);
  if (compare(amount, ZERO) <= 0) return say(LIVE.tooSmall, 'The amount must be greater than 0.');
  if (!fitsScale(amount, precision)) {
    return say(LIVE.precision, `The amount may have at most ${precision} digits after the point.`);
  }
  if (isFeeWithin && compare(amount, fee) <= 0) {
    return say(LIVE.tooSmall, `The amount must be greater than the fee ${withdrawFee}.`);
  }
  const balance = availableOf(state, account, ticker);
  if (compare(balance, isFeeWithin ? amount : add(amount, fee)) >= 0) return null;
  const held = formatDecimal(balance);
  return say(LIVE.balance, `Not enough money, ${ticker} balance = ${held}, fee = ${withdrawFee}`);
}
