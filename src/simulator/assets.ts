import type { Amounts } from './ledger.ts';

/** A currency at the exchange: what its asset status data says. Amounts are decimal strings. */
export interface Asset {
  readonly ticker: string;
  /** The API document ties withdrawals to this, too. */
  readonly canDeposit: boolean;
  /** Networks of a cryptocurrency, the default one first; none for fiat. */
  readonly networks: readonly string[];
  /** Without a default, a request must name its network. Default true. */
  readonly hasDefaultNetwork?: boolean;
  /** Who moves a fiat currency; none for cryptocurrencies. */
  readonly providers: readonly string[];
  /** Digits after the point of an amount that can be withdrawn. */
  readonly precision: number;
  /** What a withdrawal costs, on top of its amount. */
  readonly withdrawFee: string;
  readonly minDeposit: string;
  /** Kinds of deposit address, the default one first; none where there is only one. */
  readonly addressTypes?: readonly string[];
  /** Its deposit addresses come with a memo. */
  readonly hasMemo?: boolean;
}

const SEGWIT = ['bech32', 'p2sh-segwit'];

function coin(
  ticker: string,
  networks: readonly string[],
  precision: number,
  withdrawFee: string,
  more: Partial<Asset> = {},
): Asset {
  return {
    ticker,
    canDeposit: true,
    networks,
    providers: [],
    precision,
    withdrawFee,
    minDeposit: withdrawFee,
    ...more,
  };
}

/**
 * The currencies of the demonstration markets, and one for each rule: USDT has several networks and a default, USDC
 * several and none, XRP a memo, EUR is fiat, XMR cannot be deposited.
 */
export const DEMO_ASSETS: readonly Asset[] = [
  coin('BTC', ['BTC'], 8, '0.0004', { addressTypes: SEGWIT }),
  coin('ETH', ['ERC20'], 8, '0.003'),
  coin('USDT', ['ERC20', 'TRC20', 'OMNI'], 6, '3.2'),
  coin('USDC', ['ERC20', 'SOL'], 6, '2.5', { hasDefaultNetwork: false }),
  coin('SOL', ['SOL'], 8, '0.01'),
  coin('XRP', ['XRP'], 6, '0.25', { hasMemo: true }),
  coin('LTC', ['LTC'], 8, '0.001', { addressTypes: SEGWIT }),
  coin('DBTC', ['DBTC'], 8, '0'),
  coin('DUSDT', ['DUSDT'], 6, '0'),
  coin('XMR', ['XMR'], 8, '0.0001', { canDeposit: false }),
  coin('EUR', [], 2, '1.5', { providers: ['VISAMASTER', 'SEPA'] }),
];

/** What an account begins with unless told otherwise. */
export const DEMO_BALANCES: Amounts = {
  BTC: '10',
  ETH: '100',
  USDT: '1000000',
  USDC: '10000',
  SOL: '1000',
  XRP: '100000',
  LTC: '1000',
  DBTC: '10',
  DUSDT: '1000000',
  XMR: '100',
  EUR: '10000',
};

/** `network` is null where the currency has none: fiat. */
export type ChosenNetwork =
  | { readonly kind: 'chosen'; readonly network: string | null }
  | { readonly kind: 'wrong'; readonly problem: string };

/** The network that `given` means, or the default one where nothing is given. */
export function chooseNetwork(
  { ticker, networks, hasDefaultNetwork = true }: Asset,
  given: unknown,
): ChosenNetwork {
  const [first] = networks;
  if (first === undefined) return { kind: 'chosen', network: null };
  const network = networks.find((known) => known === (given ?? (hasDefaultNetwork ? first : null)));
  if (network !== undefined) return { kind: 'chosen', network };
  const problem = given === undefined ? 'Cannot extract default network' : 'Unsupported network';
  return { kind: 'wrong', problem: `${problem}. ${ticker} has: ${networks.join(', ')}.` };
}
