import { createSystemClock } from '../../src/clock.ts';
import type { MarketSnapshot, Snapshot } from '../../src/core/view.ts';
import type { Cancellation } from '../../src/operator/cancellations.ts';
import { describeStatus, type StatusDocument } from '../../src/operator/status.ts';
import { sampleMarket, sampleSnapshot } from '../operator/sample-snapshot.ts';

const NOW_MS = 1_795_000_006_000;

/** The document that a daemon in this state serves, up for 2 h 5 min. */
export function statusOf(
  markets: readonly Partial<MarketSnapshot>[],
  changes: Partial<Snapshot> = {},
  cancellations: readonly Cancellation[] = [],
): StatusDocument {
  const snapshot = sampleSnapshot({ ...changes, markets: markets.map((market) => sampleMarket(market)) });
  const sources = {
    clock: { ...createSystemClock(), now: () => ({ monoMs: 0, bootMs: 0, wallMs: NOW_MS }) },
    snapshot: () => snapshot,
    recentEvents: () => [],
    cancellations: () => cancellations,
    version: '1.2.3',
    startedAtWallMs: NOW_MS - 7_500_000,
  };
  return describeStatus(sources, Number.POSITIVE_INFINITY);
}

/** Unix milliseconds so long after the moment of the document. */
export const inMs = (ms: number): number => NOW_MS + ms;
