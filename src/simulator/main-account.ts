import { hashText } from '../util/text.ts';
import { CODES, done, flaw, flawsAmong, readForm, refuse, refuseFields, unless } from './answer.ts';
import { type Decimal, decimal, fitsDigits, formatDecimal, parseDecimal, stepOf } from './decimal.ts';
import { type Asset, addRecord, chooseNetwork, FEES, move, recordsOf, WITHDRAWN } from './holdings.ts';
import { createRandom, randomHex } from './random.ts';
import { availableOf, type Call } from './state.ts';

const MAX_UNIQUE_ID = 255;
const LENGTH = `may not be longer than ${MAX_UNIQUE_ID} characters.`;
const isShort = (id: string) => unless(id.length <= MAX_UNIQUE_ID, 'unique_id', LENGTH);
const isNumeric = (text: string) =>
  unless(parseDecimal(text) !== null, 'amount', 'must be a numeric string.', { code: CODES.amount });

const UNKNOWN_TICKER = flaw('ticker', 'The selected ticker is invalid.');
const CANNOT_WITHDRAW = 'The currency has can_deposit false and cannot be withdrawn.';

/** Codes of the live exchange for what is wrong inside. */
const LIVE = { notWithdrawable: 1, tooSmall: 3, balance: 5, precision: 7 } as const;

/** The document shows no field of the reply: it is an empty array, as at the live exchange, there with 201. */
export const createWithdrawal = (fee: 'on top' | 'within') => (call: Call) => {
  const { account, nowMs, profile, data } = call;
  const isFeeWithin = fee === 'within';
  const form = readForm(call);
  const ticker = form.text('ticker');
  const given = form.text('amount', isNumeric);
  const address = form.text('address');
  const uniqueId = form.text('unique_id', isShort);
  const provider = form.optionalText('provider');
  const givenNetwork = form.optionalText('network');
  if (form.flaws.length > 0) return refuseFields('form', form.flaws, profile);
  if (data.withdrawals.get(account)?.has(uniqueId) === true) {
    const taken = flaw('unique_id', 'has already been taken.');
    return refuseFields(profile === 'live' ? 'form' : 'inner', [taken], profile);
  }
  const asset = call.assets.get(ticker);
  const liveCode = LIVE.notWithdrawable;
  if (asset === undefined) return refuseFields('inner', [{ ...UNKNOWN_TICKER, liveCode }], profile);
  if (asset.providers.length > 0 && provider === undefined)
    return refuseFields('form', [flaw('provider', 'field is required.')], profile);
  const amount = decimal(given);
  const { network, problem } = chooseNetwork(asset, givenNetwork);
  const flaws = flawsAmong([
    unless(asset.canDeposit, 'ticker', CANNOT_WITHDRAW, { liveCode }),
    providerFlaw(asset, provider),
    unless(problem === null, 'network', String(problem)),
    amountFlaw(call, asset, amount, isFeeWithin),
  ]);
  if (flaws.length > 0) return refuseFields('inner', flaws, profile);
  const paid = isFeeWithin ? amount - decimal(asset.withdrawFee) : amount;
  const withdrawal = {
    uniqueId,
    account,
    ticker: asset.ticker,
    amount: formatDecimal(paid),
    fee: asset.withdrawFee,
    address,
    network,
    provider: asset.providers.find((known) => known === provider) ?? null,
    atMs: nowMs,
  };
  move(data.purses, account, WITHDRAWN, asset.ticker, paid);
  move(data.purses, account, FEES, asset.ticker, decimal(asset.withdrawFee));
  addRecord(data.withdrawals, account, uniqueId, withdrawal);
  const { account: _account, address: _address, provider: _provider, atMs: _atMs, ...told } = withdrawal;
  call.log.append({ kind: 'withdrawal-created', account, ...told }, nowMs);
  return done([], profile === 'live' ? 201 : 200);
};

function providerFlaw({ ticker, providers }: Asset, given: unknown) {
  const isKnown = providers.length === 0 || providers.some((provider) => provider === given);
  return unless(isKnown, 'provider', `Unsupported provider. ${ticker} has: ${providers.join(', ')}.`);
}

function amountFlaw(call: Call, asset: Asset, amount: Decimal, isFeeWithin: boolean) {
  const { ticker, precision, withdrawFee } = asset;
  const fee = decimal(withdrawFee);
  const balance = availableOf(call, call.account, ticker);
  const isEnough = balance >= (isFeeWithin ? amount : amount + fee);
  const lacking = `Not enough money, ${ticker} balance = ${formatDecimal(balance)}, fee = ${withdrawFee}`;
  const digits = `may have at most ${precision} digits after the point.`;
  const demands: readonly (readonly [isRight: boolean, liveCode: number, message: string])[] = [
    [amount > 0n, LIVE.tooSmall, 'must be greater than 0.'],
    [fitsDigits(amount, precision), LIVE.precision, digits],
    [!isFeeWithin || amount > fee, LIVE.tooSmall, `must be greater than the fee ${withdrawFee}.`],
    [isEnough, LIVE.balance, lacking],
  ];
  const missed = demands.find(([isRight]) => !isRight);
  return missed ? flaw('amount', missed[2], { code: CODES.amount, liveCode: missed[1] }) : null;
}

/** As the live exchange words it; the document says only that the endpoint is disabled by default. */
const DISABLED = refuse(403, 4, "You don't have permission to use this endpoint.");

/** How addresses begin, by network and type. */
const PREFIXES: Readonly<Record<string, string>> = {
  'BTC bech32': 'bc1q',
  'BTC p2sh-segwit': '3',
  'LTC bech32': 'ltc1q',
  'LTC p2sh-segwit': 'M',
  ERC20: '0x',
  TRC20: 'T',
  OMNI: '1',
  XRP: 'r',
};

/** A deposit address: a new one every time, for accounts that this is enabled for; or the newest, or a first one. */
export const giveAddress = (which: 'new' | 'newest') => (call: Call) => {
  const { account, nowMs, profile, data } = call;
  const isNew = which === 'new';
  if (isNew && !call.mayCreateAddresses(account)) return DISABLED;
  const form = readForm(call);
  const ticker = form.text('ticker');
  const givenNetwork = form.optionalText('network');
  const type = form.optionalText('type');
  if (form.flaws.length > 0) return refuseFields('form', form.flaws, profile);
  const asset = call.assets.get(ticker);
  if (asset === undefined) return refuseFields('inner', [UNKNOWN_TICKER], profile);
  const { network, problem } = chooseNetwork(asset, givenNetwork);
  const flaws = flawsAmong([
    unless(asset.canDeposit, 'ticker', 'Currency is not depositable') ??
      unless(asset.networks.length > 0, 'ticker', 'Fiat currencies are unavailable for this action'),
    unless(problem === null, 'network', String(problem)),
    typeFlaw(asset, type),
  ]);
  if (flaws.length > 0 || network === null) return refuseFields('inner', flaws, profile);
  const given = isNew ? [] : recordsOf(data.addresses, account);
  const known = given.findLast((one) => one.ticker === asset.ticker && one.network === network);
  const made = known ?? makeAddress(call, asset, network, type);
  if (known === undefined) {
    data.lastAddress += 1;
    addRecord(data.addresses, account, made.address, made);
    const { memo: _memo, ...event } = made;
    call.log.append({ kind: 'address-created', ...event }, nowMs);
  }
  const { address, memo } = made;
  const flexFee = { maxFee: '0', minFee: '0', percent: '0' };
  const required = { fixedFee: '0', flexFee, maxAmount: '0', minAmount: asset.minDeposit };
  const record = { account: { address, ...(memo !== null && { memo }) }, required };
  return done(record, profile === 'live' && isNew ? 201 : 200);
};

/** No alphabet of addresses has all letters of the word in the middle: a wallet refuses to send real money there. */
function makeAddress({ account, data, seed }: Call, asset: Asset, network: string, given?: string) {
  const { ticker, addressTypes = [] } = asset;
  const type = addressTypes.find((known) => known === given) ?? addressTypes[0] ?? null;
  const kind = type === null ? network : `${network} ${type}`;
  const serial = data.lastAddress + 1;
  const random = createRandom(hashText(`${seed} address ${account} ${ticker} ${kind} ${serial}`));
  const address = `${PREFIXES[kind] ?? ''}simulated${randomHex(random, 24)}`;
  const memo = asset.hasMemo === true ? String(Math.floor(random() * 2 ** 32)) : null;
  return { account, ticker, network, type, address, memo };
}

function typeFlaw({ ticker, addressTypes = [] }: Asset, given: unknown) {
  const isKnown = given === undefined || addressTypes.some((type) => type === given);
  const problem = `${ticker} has one type of address; type must not be given.`;
  const allowed = `The type may hold only ${addressTypes.join(' or ')}.`;
  return unless(isKnown, 'type', addressTypes.length === 0 ? problem : allowed);
}

/** `POST /api/v4/main-account/codes/my`: the account's codes, newest first. */
export function listMyCodes(call: Call) {
  const { account, profile, seed, codes } = call;
  const form = readForm(call);
  const { limit, offset } = form.page(30);
  if (profile === 'live' && limit + offset > 10_000)
    form.flaws.push(flaw('offset', 'and limit may not be greater than 10000 together.'));
  if (form.flaws.length > 0) return refuseFields('form', form.flaws, profile);
  const all = codesOf(seed, account, codes);
  const page = { total: all.length, data: all.slice(offset, offset + limit), limit, offset };
  return done(page, profile === 'live' ? 201 : 200);
}

/** Unix seconds of an account's newest code; each one before it is up to a day older. */
const NEWEST = 1_700_000_000;
const DAY_SECONDS = 86_400;
const TICKERS = ['BTC', 'ETH', 'USDT'] as const;

/** The code records of an account, newest first: `count` of them, which follow from the seed and its name alone. */
function codesOf(seed: number, account: string, count: number): readonly unknown[] {
  const random = createRandom(hashText(`${seed} codes ${account}`));
  let date = NEWEST;
  return Array.from({ length: count }, () => {
    const ticker = TICKERS[Math.floor(random() * TICKERS.length)] ?? 'BTC';
    const amount = formatDecimal(BigInt(1 + Math.floor(random() * 99_999)) * stepOf(4));
    const code = `SIM${uuid(random)}${ticker}`;
    const made = { amount, code, date, status: 'Activated', ticker, external_id: uuid(random) };
    date -= 1 + Math.floor(random() * DAY_SECONDS);
    return made;
  });
}

function uuid(random: () => number): string {
  return [8, 4, 4, 4, 12].map((digits) => randomHex(random, digits)).join('-');
}
