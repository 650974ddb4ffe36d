import type { BotWord } from '../core/events.ts';
import type { OperatorCommand, Progress } from '../core/operate.ts';
import type { Snapshot } from '../core/snapshot.ts';
import type { Clock } from '../ports.ts';

/** What tells a beat from a copy of an older one. Both are the bot's own and optional. */
export interface BeatProof {
  /** Changes when the bot starts anew; at most 64 characters. */
  readonly session: string | null;
  /** Rises with every beat of a session. */
  readonly seq: number | null;
}

/** Whether a bot's word counted; `why` tells what was wrong with it where it did not. */
export type Heard = { readonly counted: true } | { readonly counted: false; readonly why: string };

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

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Everything that the control listener can bring about. */
export interface ControlSources {
  readonly clock: Clock;
  readonly version: string;
  readonly snapshot: () => Snapshot;
  /** Rises whenever what was seen of many markets may be untrue from one moment to the next; see `Keeper`. */
  readonly revision: () => number;
  /** The status document as JSON in pieces, as the web listener serves it. */
  readonly status: () => Promise<readonly string[]>;
  /** Names as the configuration in force has them. */
  readonly markets: () => readonly string[];
  /** The other shard that guards the market; null where none does. */
  readonly elsewhere: (market: string) => { readonly index: number; readonly count: number } | null;
  readonly bots: () => readonly string[];
  readonly ttlMs: () => number;
  /**
   * A bot's word, `agoMs` after its first byte was seen. With liveness modes that do not listen to bots it never
   * counts, and says so.
   */
  readonly hear: (bot: string, says: BotWord, proof: BeatProof, agoMs: number) => Heard;
  /** Resolves when every timer of the bot is gone or will stay, at the latest after `waitMs`. */
  readonly afterGoodbye: (bot: string, waitMs: number) => Promise<readonly Progress[]>;
  /** Resolves when it has happened to every market, or cannot, at the latest after `waitMs`. Markets must be known. */
  readonly operate: (command: OperatorCommand, waitMs: number) => Promise<readonly Progress[]>;
  /** One at a time: asking again joins the reload that is under way. */
  readonly reload: (waitMs: number) => Promise<ReloadReport>;
  readonly logLevel: () => LogLevel;
  /** For `forMs`, after which the configured level is back; null for as long as the daemon runs. */
  readonly setLogLevel: (level: LogLevel, forMs: number | null) => void;
  /** Counts refused requests by reason, for the metric. */
  readonly onRefused: (reason: string) => void;
}
