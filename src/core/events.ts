import type { LeftArmed, Notice } from './notice.ts';

/** What an order type is called in the API document. */
export const ORDER_TYPES = ['spot', 'margin', 'futures'] as const;
export type OrderType = (typeof ORDER_TYPES)[number];

/** A timer as the exchange reports it. Times are whole Unix seconds of the exchange's clock. */
export interface ServerTimer {
  readonly market: string;
  readonly startTime: number;
  readonly cancellationTime: number;
  /** Null where the timer covers all order types. */
  readonly types: readonly string[] | null;
}

/** Why a request came to nothing, as a bounded set fit for a metric label. */
export const FAILURE_REASONS = [
  'timeout',
  'network',
  'dns',
  'tls',
  'http_5xx',
  'rate_limited',
  'nonce',
  'validation',
  'auth',
  'parse',
  'aborted',
] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/** What a ping of one base address came to. */
export interface Pinged {
  readonly kind: 'pinged';
  readonly base: number;
  readonly ok: boolean;
  readonly latencyMs: number;
  readonly reason: FailureReason | null;
  readonly detail: string;
}

/**
 * What became of one kill-switch request.
 *
 * `maybeApplied` is the question that belief turns on: could the exchange have carried the request out although no
 * good reply arrived? Only an answer of the API itself that refuses, or a failure before the first byte left, says no.
 */
export type Outcome =
  | { readonly kind: 'applied'; readonly timer: ServerTimer }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'protocol'; readonly detail: string }
  | { readonly kind: 'nonce'; readonly detail: string }
  | { readonly kind: 'throttled'; readonly detail: string }
  | {
      readonly kind: 'transient';
      readonly reason: FailureReason;
      readonly detail: string;
      readonly maybeApplied: boolean;
    }
  | { readonly kind: 'refused'; readonly code: number; readonly detail: string }
  | { readonly kind: 'unauthorised'; readonly status: number; readonly detail: string };

export interface MarketSettings {
  readonly market: string;
  /** Whole seconds 5 to 600, in milliseconds. */
  readonly timeoutMs: number;
  /** Null means all order types. */
  readonly types: readonly OrderType[] | null;
  /** Given where the configuration fixes the cadence; else null and the cadence follows from the timeout. */
  readonly renewEveryMs: number | null;
  readonly bot: string;
}

/** Everything the core must know before its first step. Durations in milliseconds. */
export interface CoreSettings {
  readonly markets: readonly MarketSettings[];
  readonly nonce: 'increasing' | 'window';
  /** Base addresses; only the first is used for renewals unless `sameAccount`. */
  readonly bases: readonly string[];
  readonly sameAccount: boolean;
  /** Documented limit of the kill-switch operation times the share of it that this daemon may use. */
  readonly budget: { readonly requests: number; readonly windowMs: number };
  /** Most requests in flight at a time in nonce mode `window`. */
  readonly connections: number;
  readonly liveness: {
    readonly mode: 'none' | 'beat' | 'file' | 'http' | 'process';
    readonly ttlMs: number;
    readonly startupGraceMs: number;
    readonly onStale: 'expire' | 'trip';
  };
  readonly onLapse: 'rearm' | 'hold';
  readonly shutdown: { readonly policy: Policy; readonly budgetMs: number };
  readonly ping: { readonly everyMs: number; readonly timeoutMs: number };
  /** Longest time that a timer may take to fire after its cancellationTime. */
  readonly cancellationDelayMs: number;
  /** Longest time that a written request can travel and still be carried out. */
  readonly requestLifetimeMs: number;
  /**
   * Markets that belong to another shard: one that leaves and is named here is renewed once more and left to the other
   * shard, whatever the policy.
   */
  readonly elsewhere: readonly Pick<MarketSettings, 'market'>[];
}

/** What a bot says of itself: it lives, it ends on purpose, or it is broken and nothing shall be renewed for it. */
export type BotWord = 'beat' | 'goodbye' | 'fail';
export type Purpose = 'renew' | 'trip' | 'delete';
/** What a stop does with the timers. */
export type Policy = 'delete' | 'keep' | 'handoff';

/** What happened outside, as the core is told it. */
export type CoreEvent =
  | { readonly kind: 'tick' }
  | { readonly kind: 'settled'; readonly attempt: number; readonly outcome: Outcome }
  | Pinged
  /** `agoMs`: how old it may be at most, on the monotonic clock. */
  | { readonly kind: 'evidence'; readonly bot: string; readonly says: BotWord; readonly agoMs: number }
  | { readonly kind: 'operate'; readonly command: OperatorCommand }
  /** The configuration was read again. It differs only in what may change while the daemon runs. */
  | { readonly kind: 'reload'; readonly settings: CoreSettings }
  /** The secret files were read again and hold something new. */
  | { readonly kind: 'credentials-changed' }
  | { readonly kind: 'stop'; readonly policy: Policy; readonly why: string };

/** What the keeper carries out, in the order given. */
export type Effect =
  | {
      readonly kind: 'write';
      readonly attempt: number;
      readonly market: string;
      readonly timeoutSeconds: number | null;
      readonly types: readonly OrderType[] | null;
      readonly base: number;
      readonly fresh: boolean;
    }
  | { readonly kind: 'abort'; readonly attempt: number }
  | { readonly kind: 'ping'; readonly base: number; readonly timeoutMs: number }
  | { readonly kind: 'notice'; readonly notice: Notice }
  | { readonly kind: 'finished'; readonly left: readonly LeftArmed[] };

/** What an operator may ask for while the daemon runs. */
export const COMMANDS = ['arm', 'disarm', 'pause', 'resume', 'trip'] as const;
export type CommandName = (typeof COMMANDS)[number];

/** `markets` null means all of them. `forMs` is the length of a pause and of no meaning elsewhere. */
export interface OperatorCommand {
  readonly does: CommandName;
  readonly markets: readonly string[] | null;
  readonly forMs: number;
}

/** How far a market has come with a command. */
export interface Progress {
  readonly market: string;
  /** `impossible`: it will not happen as things stand; `says` tells why. */
  readonly state: 'done' | 'waiting' | 'impossible';
  /** The exchange refuses the market, or the key: that is why it is impossible. */
  readonly refused?: true;
  /** One sentence for a person, with the market's name and the moments that matter. */
  readonly says: string;
}
