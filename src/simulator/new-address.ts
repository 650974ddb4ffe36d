import { hashText } from '../util/hash.ts';
import { type Answer, done, refuse } from './answer.ts';
import { type Asset, chooseNetwork } from './assets.ts';
import type { Call, ExchangeState } from './exchange-state.ts';
import type { DepositAddress } from './holdings.ts';
import { createRandom, randomHex } from './random.ts';
import {
  DEFAULT_VALIDATION,
  type Flaw,
  flawsAmong,
  optionalTextFlaw,
  refuseFields,
  textFlaw,
} from './wording.ts';

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

/**
 * `POST /api/v4/main-account/create-new-address`: a new address every time, for accounts that it is enabled for. The
 * memo is there for currencies that use one.
 */
export function createNewAddress(call: Call): Answer {
  const { account, body, nowMs, state } = call;
  const { profile, holdings } = state;
  if (!holdings.mayCreateAddresses(account)) return DISABLED;
  const { ticker, network: givenNetwork, type: givenType } = body;
  const form = flawsAmong([
    textFlaw('ticker', ticker),
    optionalTextFlaw('network', givenNetwork),
    optionalTextFlaw('type', givenType),
  ]);
  if (form.length > 0) return refuseFields('form', form, profile);
  const asset = holdings.assets.get(String(ticker));
  if (asset === undefined)
    return refuseFields('inner', [flawOf('ticker', 'The selected ticker is invalid.')], profile);
  const network = chooseNetwork(asset, givenNetwork);
  const flaws = flawsAmong([
    depositFlaw(asset),
    network.kind === 'wrong' ? flawOf('network', network.problem) : null,
    typeFlaw(asset, givenType),
  ]);
  const name = network.kind === 'wrong' ? null : network.network;
  if (flaws.length > 0 || name === null) return refuseFields('inner', flaws, profile);
  const made = makeAddress(account, asset, name, givenType, state);
  if (call.apply) {
    holdings.addresses.add(account, made.address, made);
    const { type, address } = made;
    state.log.append(
      { kind: 'address-created', account, ticker: asset.ticker, network: name, type, address },
      nowMs,
    );
  }
  return done(recordOf(made, asset), profile === 'live' ? 201 : 200);
}

function recordOf({ address, memo }: DepositAddress, asset: Asset): unknown {
  return {
    account: { address, ...(memo !== null && { memo }) },
    required: {
      fixedFee: '0',
      flexFee: { maxFee: '0', minFee: '0', percent: '0' },
      maxAmount: '0',
      minAmount: asset.minDeposit,
    },
  };
}

/**
 * The word in the middle has letters that no alphabet of addresses has all of: whoever sends real money there is told
 * so by the wallet.
 */
function makeAddress(
  account: string,
  asset: Asset,
  network: string,
  givenType: unknown,
  { holdings }: ExchangeState,
): DepositAddress {
  const { ticker, addressTypes = [] } = asset;
  const type = addressTypes.find((known) => known === givenType) ?? addressTypes[0] ?? null;
  const kind = type === null ? network : `${network} ${type}`;
  const serial = holdings.addresses.added(account);
  const random = createRandom(hashText(`${holdings.seed} address ${account} ${ticker} ${kind} ${serial}`));
  const address = `${PREFIXES[kind] ?? ''}simulated${randomHex(random, 24)}`;
  const memo = asset.hasMemo === true ? String(Math.floor(random() * 2 ** 32)) : null;
  return { account, ticker, network, type, address, memo };
}

function flawOf(field: string, message: string): Flaw {
  return { field, code: DEFAULT_VALIDATION, messages: [message] };
}

function depositFlaw(asset: Asset): Flaw | null {
  if (!asset.canDeposit) return flawOf('ticker', 'Currency is not depositable');
  return asset.networks.length > 0
    ? null
    : flawOf('ticker', 'Fiat currencies are unavailable for this action');
}

function typeFlaw({ ticker, addressTypes = [] }: Asset, given: unknown): Flaw | null {
  if (given === undefined || addressTypes.some((type) => type === given)) return null;
  return flawOf(
    'type',
    addressTypes.length === 0
      ? `${ticker} has one type of address; type must not be given.`
      : `The type may hold only ${addressTypes.join(' or ')}.`,
  );
}
