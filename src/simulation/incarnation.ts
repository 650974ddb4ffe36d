import type { CoreSettings } from '../core/settings.ts';
import type { CoreView } from '../core/view.ts';
import type { Keeper } from '../keeper.ts';
import type { HostClock } from '../simulator/virtual-clock.ts';
import type { PlannedMarket } from './plan.ts';

/** How long a beat counts as evidence that its bot lives. */
export const TTL_MS = 15_000;
/** For this long after its start a daemon renews without having heard of a bot. */
export const GRACE_MS = 20_000;
/** A stop may take this long. */
export const BUDGET_MS = 8000;
/** For this long a daemon guards a market that went to another one. */
export const HANDOVER_MS = 20_000;

/** The configured markets as one of the daemons sees them. */
export interface Shared {
  readonly own: readonly PlannedMarket[];
  /** Those of other daemons. */
  readonly elsewhere: readonly PlannedMarket[];
}

/** One life of one simulated daemon; a restart begins another. */
export interface Incarnation {
  readonly daemon: number;
  readonly life: number;
  readonly startedMs: number;
  readonly clock: HostClock;
  readonly keeper: Keeper;
  /** What it believes now. */
  readonly view: () => CoreView;
  /** The settings of this daemon with these markets. */
  readonly configure: (markets: Shared) => CoreSettings;
  /** True moment of the SIGTERM; null before it. */
  stoppingMs: number | null;
}

export function nameOf({ daemon, life }: Incarnation): string {
  return `daemon ${daemon} (life ${life})`;
}
