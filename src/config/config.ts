import type { OrderType } from '../core/outcome.ts';
import type { CoreSettings } from '../core/settings.ts';
import type { ListenAddress } from './addresses.ts';
import { DEFAULT_BOT } from './market-schema.ts';
import type { FileValues } from './schema.ts';
import type { Secret } from './secret.ts';
import type { Secrets } from './secrets.ts';
import type { Shard } from './shard.ts';

/** One market with everything that it inherits filled in. */
export interface MarketConfig {
  readonly market: string;
  readonly timeoutSeconds: number;
  /** Null means all order types. */
  readonly types: readonly OrderType[] | null;
  /** Null where the cadence follows from the timeout. */
  readonly renewEverySeconds: number | null;
  readonly bot: string;
}

/** A configuration without a mistake: file, environment, flags and defaults in one. */
export interface Config {
  /** Name of the file that was read, null where there was none. */
  readonly file: string | null;
  /** The daemon brings its own exchange. */
  readonly embeddedExchange: boolean;
  readonly exchange: {
    /** Origins without a trailing slash. Empty with an embedded exchange, whose address is not known yet. */
    readonly baseUrls: readonly string[];
    readonly sameAccount: boolean;
    readonly nonce: CoreSettings['nonce'];
    readonly budgetShare: number;
    readonly connections: number;
    readonly cancellationDelaySeconds: number;
    readonly requestLifetimeSeconds: number;
  };
  readonly secrets: Secrets;
  readonly defaults: Omit<MarketConfig, 'market' | 'bot'>;
  /** Those of this daemon's shard. */
  readonly markets: readonly MarketConfig[];
  /** Those of all shards. */
  readonly fleet: readonly MarketConfig[];
  readonly shard: Shard & { readonly handoverSeconds: number; readonly budget: 'shared' | 'own' };
  readonly liveness: {
    readonly mode: CoreSettings['liveness']['mode'];
    /** As written, with `{bot}` in it; given with mode file. */
    readonly file: string | null;
    /** As written, with `{bot}` in it; given with mode http. */
    readonly url: string | null;
    /** Of no meaning with modes beat and none. */
    readonly probeEverySeconds: number;
    readonly ttlSeconds: number;
    readonly startupGraceSeconds: number;
    readonly onStale: CoreSettings['liveness']['onStale'];
  };
  readonly onLapse: CoreSettings['onLapse'];
  readonly shutdown: {
    readonly policy: CoreSettings['shutdown']['policy'];
    readonly budgetSeconds: number;
  };
  readonly ping: { readonly everySeconds: number };
  readonly web: { readonly listen: readonly ListenAddress[] };
  readonly control: {
    readonly listen: readonly ListenAddress[];
    readonly access: 'owner' | 'group';
    readonly tokenFile: string | null;
    /** What the file holds. Null where none is named. */
    readonly token: Secret | null;
  };
  readonly reload: {
    /** 0 means never. */
    readonly pollSeconds: number;
    readonly allowRemoval: boolean;
  };
  readonly log: {
    readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';
    readonly format: 'json' | 'journal' | 'text';
  };
}

type Written<Key extends keyof FileValues> = NonNullable<FileValues[Key]>;
/** All keys have a value but those in `Unset`, which have no default. */
type Section<Key extends keyof FileValues, Unset extends keyof Written<Key> = never> = Required<
  Omit<Written<Key>, Unset>
> &
  Pick<Written<Key>, Unset>;

/** The values of all layers together: whatever has a default is there. */
export interface Settled {
  readonly exchange: Section<'exchange', 'baseUrls'>;
  readonly defaults: NonNullable<FileValues['defaults']> & { timeoutSeconds: number };
  /** Undefined where no source gives any. */
  readonly markets: FileValues['markets'];
  readonly shard: Section<'shard'>;
  readonly liveness: Section<'liveness', 'mode' | 'file' | 'url' | 'probeEverySeconds'>;
  readonly onLapse: NonNullable<FileValues['onLapse']>;
  readonly shutdown: Section<'shutdown'>;
  readonly ping: Section<'ping'>;
  readonly web: Section<'web'>;
  readonly control: Section<'control', 'tokenFile'>;
  readonly reload: Section<'reload'>;
  readonly log: Section<'log'>;
}

/** A market as it was written; undefined where it was so wrong that it was taken out. */
export type MarketEntry = NonNullable<FileValues['markets']>[number] | undefined;

/** Fills in what markets inherit. An entry that was taken out as wrong is left out. */
export function settleMarkets(
  entries: readonly MarketEntry[],
  defaults: Settled['defaults'],
): MarketConfig[] {
  return entries.flatMap((entry) => {
    const own = typeof entry === 'string' ? { market: entry } : entry;
    if (own?.market === undefined) return [];
    return {
      market: own.market,
      timeoutSeconds: own.timeoutSeconds ?? defaults.timeoutSeconds,
      types: own.types ?? defaults.types ?? null,
      renewEverySeconds: own.renewEverySeconds ?? defaults.renewEverySeconds ?? null,
      bot: own.bot ?? DEFAULT_BOT,
    };
  });
}
