import { hashText } from '../util/text.ts';
import {
  type Answer,
  done,
  type Flaw,
  flaw,
  flawsAmong,
  optionalTextFlaw,
  refuse,
  refuseFields,
  textFlaw,
} from './answer.ts';
import { type Asset, addRecord, chooseNetwork, type DepositAddress, recordsOf } from './holdings.ts';
import { createRandom, randomHex } from './random.ts';
import type { Call } from './state.ts';

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
  if (!call.state.mayCreateAddresses(call.account)) return DISABLED;
  return giveAddress(call, true);
}

/** `POST /api/v4/main-account/address` of the live exchange: the newest address, or a first one; for every account. */
export function readAddress(call: Call): Answer {
  return giveAddress(call, false);
}

function giveAddress(call: Call, isNew: boolean): Answer {
  const { account, body, nowMs, state } = call;
  const { profile, data } = state;
  const { ticker, network, type } = body;
  const form = flawsAmong([
    textFlaw('ticker', ticker),
    optionalTextFlaw('network', network),
    optionalTextFlaw('type', type),
  ]);
  if (form.length > 0) return refuseFields('form', form, profile);
  const asset = state.assets.get(String(ticker));
  if (asset === undefined)
    return refuseFields('inner', [flaw('ticker', 'The selected ticker is invalid.')], profile);
  const chosen = chooseNetwork(asset, network);
  const flaws = flawsAmong([
    depositFlaw(asset),
    'problem' in chosen ? flaw('network', chosen.problem) : null,
    typeFlaw(asset, type),
  ]);
  const name = 'problem' in chosen ? null : chosen.network;
  if (flaws.length > 0 || name === null) return refuseFields('inner', flaws, profile);
  const known = recordsOf(data.addresses, account).findLast(
    (one) => one.ticker === asset.ticker && one.network === name,
  );
  const made = isNew || known === undefined ? makeAddress(call, asset, name) : known;
  if (call.apply && made !== known) {
    data.lastAddress += 1;
    addRecord(data.addresses, account, made.address, made);
    const { type: kind, address } = made;
    const event = { account, ticker: asset.ticker, network: name, type: kind, address };
    state.log.append({ kind: 'address-created', ...event }, nowMs);
  }
  return done(recordOf(made, asset), profile === 'live' && isNew ? 201 : 200);
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
function makeAddress({ account, body, state }: Call, asset: Asset, network: string): DepositAddress {
  const { ticker, addressTypes = [] } = asset;
  const type = addressTypes.find((known) => known === body['type']) ?? addressTypes[0] ?? null;
  const kind = type === null ? network : `${network} ${type}`;
  const serial = state.data.lastAddress + 1;
  const random = createRandom(hashText(`${state.seed} address ${account} ${ticker} ${kind} ${serial}`));
  const address = `${PREFIXES[kind] ?? ''}simulated${randomHex(random, 24)}`;
  const memo = asset.hasMemo === true ? String(Math.floor(random() * 2 ** 32)) : null;
  return { account, ticker, network, type, address, memo };
}

function depositFlaw(asset: Asset): Flaw | null {
  if (!asset.canDeposit) return flaw('ticker', 'Currency is not depositable');
  if (asset.networks.length > 0) return null;
  return flaw('ticker', 'Fiat currencies are unavailable for this action');
}

function typeFlaw({ ticker, addressTypes = [] }: Asset, given: unknown): Flaw | null {
  if (given === undefined || addressTypes.some((type) => type === given)) return null;
  const problem = `${ticker} has one type of address; type must not be given.`;
  const allowed = `The type may hold only ${addressTypes.join(' or ')}.`;
  return flaw('type', addressTypes.length === 0 ? problem : allowed);
}
