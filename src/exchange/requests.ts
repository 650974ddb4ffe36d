import type { OrderType } from '../core/outcome.ts';

export const SIDES = ['buy', 'sell'] as const;
export type Side = (typeof SIDES)[number];

/** What happens where an order would meet another one of the same account. */
export const SELF_TRADE_MODES = ['no', 'cancel_both', 'cancel_new', 'cancel_old'] as const;
export type SelfTradeMode = (typeof SELF_TRADE_MODES)[number];

export const ADDRESS_TYPES = ['p2sh-segwit', 'bech32'] as const;
export type AddressType = (typeof ADDRESS_TYPES)[number];

export interface KillSwitchRequest {
  /** `BASE_QUOTE` in capitals. */
  readonly market: string;
  /** Whole seconds 5 to 600, or null to delete the timer. */
  readonly timeoutSeconds: number | null;
  /** At least one order type; null or left out means all. */
  readonly types?: readonly OrderType[] | null | undefined;
}

export interface StockMarketOrderRequest {
  /** `BASE_QUOTE` in capitals. */
  readonly market: string;
  readonly side: Side;
  /**
   * A decimal number, sent as text. For `buy` in the quote currency, for `sell` in the base currency. Write it as text:
   * a number has been rounded to binary before anybody sees it, and one that prints with an exponent is not taken.
   */
  readonly amount: string | number;
  /**
   * Letters, digits, dashes, dots and underscores; unique. Always give one: when the outcome of the call is unknown it
   * is what the order can be found by. None is made up here.
   */
  readonly clientOrderId?: string | undefined;
  /** Self trade prevention. */
  readonly stp?: SelfTradeMode | undefined;
}

/** The body of the order history request, sent as it is. The document does not show its fields. */
export type OrderHistoryRequest = Readonly<Record<string, unknown>>;

export interface WithdrawPayRequest {
  /** In capitals. The currency must have `can_deposit` in the asset status. */
  readonly ticker: string;
  /** A decimal number, sent as text: what the receiver gets. The fee comes on top of it. */
  readonly amount: string | number;
  /** Wallet address; for fiat currencies identifier or card token. */
  readonly address: string;
  /** A new one for every withdrawal: what the withdrawal can be found by, and what keeps it from being made twice. */
  readonly uniqueId: string;
  /** Required if the currency is fiat, from the asset status. */
  readonly provider?: string | undefined;
  /**
   * Not sent. Which currencies are fiat only the exchange knows: with true here a withdrawal without provider is not
   * sent at all, otherwise it is left to the exchange to refuse it.
   */
  readonly fiat?: boolean | undefined;
  /** For currencies of several networks. The exchange's default for USDT is `ERC20`. */
  readonly network?: string | undefined;
}

export interface CodesRequest {
  /** Number of records, 1 to 100. */
  readonly limit?: number | undefined;
  /** First record, 0 to 10 000. */
  readonly offset?: number | undefined;
}

/** Which fields are required is not shown in the document: what is left out is not sent. */
export interface HashrateRequest {
  /** Name of the mining account. */
  readonly account?: string | undefined;
  /** Unix seconds. */
  readonly from?: number | undefined;
  /** Unix seconds, not before `from`. */
  readonly to?: number | undefined;
  /** A number and a letter, such as `1h`. Which intervals there are is not shown in the document. */
  readonly interval?: string | undefined;
}

export interface NewAddressRequest {
  /** In capitals. */
  readonly ticker: string;
  /** For currencies of several networks, such as `TRC20`. The exchange's default for USDT is `ERC20`. */
  readonly network?: string | undefined;
  /** Of BTC and LTC only. The exchange's default is `bech32`. */
  readonly type?: AddressType | undefined;
}
