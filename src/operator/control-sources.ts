import type { BotWord, OperatorCommand, Progress } from '../core/events.ts';
import type { MarketSnapshot, Snapshot } from '../core/view.ts';
import type { BeatProof, Clock, Commanded, Heard, LogLevel } from '../ports.ts';
import type { Acknowledged } from './cancellations.ts';

export type ReloadReport =
  | { readonly kind: 'unchanged' }
  | {
      readonly kind: 'applied';
      readonly added: readonly string[];
      readonly removed: readonly string[];
      /** Another shard's from now on, and guarded here as well for a while. */
      readonly moved: readonly string[];
      readonly changed: readonly string[];
      readonly progress: readonly Progress[];
    }
  /** Nothing was changed. One sentence per mistake, as `check-config` says it. */
  | { readonly kind: 'rejected'; readonly problems: readonly string[] };

/** What a beat and a goodbye are told of a market. */
export type MarketGlance = Pick<MarketSnapshot, 'market' | 'state' | 'guaranteedMs' | 'firesByWallMs'>;

export interface ControlSources {
  readonly clock: Clock;
  readonly snapshot: () => Snapshot;
  /** The markets of one bot, but for those that leave, at a cost that each beat may pay. */
  readonly view: () => Pick<Snapshot, 'phase'> & { marketsOf(bot: string): readonly MarketGlance[] };
  /** The status document as JSON, as the web listener serves it. */
  readonly status: () => Promise<Buffer>;
  readonly markets: () => readonly string[];
  /** The other shard that guards the market; null where none does. */
  readonly elsewhere: (market: string) => { readonly index: number; readonly count: number } | null;
  readonly bots: () => readonly string[];
  readonly ttlMs: () => number;
  /** A bot's word, `agoMs` after its first byte was seen. It counts only in the mode that listens to bots. */
  readonly hear: (bot: string, says: BotWord, proof: BeatProof, agoMs: number) => Heard;
  /** Resolves when every timer of the bot is gone or will stay, at the latest after `waitMs`. */
  readonly afterGoodbye: (bot: string, waitMs: number) => Promise<readonly Progress[]>;
  /** Resolves when it has happened to every market, or cannot, at the latest after `waitMs`. Markets must be known. */
  readonly operate: (command: OperatorCommand, waitMs: number) => Promise<readonly Progress[]>;
  /** Markets of which it is on record that orders were cancelled; they may no longer be configured. */
  readonly cancelled: () => readonly string[];
  /** Somebody has seen that orders were cancelled; null means all markets. */
  readonly acknowledge: (markets: readonly string[] | null) => Acknowledged;
  readonly reload: (waitMs: number) => Promise<ReloadReport>;
  readonly logLevel: () => LogLevel;
  /** For `forMs`, after which the configured level is back; null for as long as the daemon runs. */
  readonly setLogLevel: (level: LogLevel, forMs: number | null) => void;
  /** Told of every command that changes something, before it begins. */
  readonly onCommand: (command: Commanded) => void;
  readonly onRefused: (reason: Refusal) => void;
  /** Blots secrets out of what is repeated of a request. */
  readonly hide: (text: string) => string;
}

/** Why a request is refused, with the HTTP status that says so. The codes are part of the interface. */
const STATUS_OF = {
  malformed_request: 400,
  malformed_json: 400,
  unknown_key: 400,
  invalid_value: 400,
  unauthorised: 401,
  foreign_origin: 403,
  unknown_path: 404,
  unknown_bot: 404,
  unknown_market: 404,
  wrong_method: 405,
  too_slow: 408,
  too_large: 413,
  wrong_content_type: 415,
  wrong_host: 421,
  headers_too_large: 431,
  internal_error: 500,
  too_many_connections: 503,
  too_many_requests: 503,
  too_many_commands: 503,
} as const;

export type Refusal = keyof typeof STATUS_OF;

export const REFUSALS = Object.keys(STATUS_OF) as readonly Refusal[];

/** A request that is answered with an error and changes nothing. The message is for whoever sent it. */
export class ControlRefusal extends Error {
  override readonly name = 'ControlRefusal';
  readonly code: Refusal;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  constructor(code: Refusal, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.code = code;
    this.status = STATUS_OF[code];
    this.headers = this.status === 503 ? { 'retry-after': '1', ...headers } : headers;
  }
}

export const errorBody = (code: string, message: string) =>
  `${JSON.stringify({ error: { code, message } })}\n`;
