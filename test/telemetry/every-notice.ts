import type { Notice } from '../../src/core/notice.ts';

type Kind = Notice['kind'];

const market = 'BTC_USDT';
const detail = 'no answer after 3 s';

/** One notice of every kind; the type makes a new kind an error here. */
export const EVERY_NOTICE: { readonly [K in Kind]: Extract<Notice, { kind: K }> } = {
  attempt: { kind: 'attempt', market, purpose: 'renew', base: 0, delayMs: 4 },
  renewed: {
    kind: 'renewed',
    market,
    durationMs: 20,
    cycleMs: 30,
    slackRatio: 0.87,
    first: false,
    cancellationTime: 1_795_000_060,
    expiryWallMs: 1_795_000_060_000,
    skewMs: -120,
  },
  'attempt-failed': {
    kind: 'attempt-failed',
    market,
    purpose: 'renew',
    reason: 'timeout',
    detail,
    streak: 1,
    durationMs: 3000,
  },
  recovered: { kind: 'recovered', market, failures: 12 },
  overdue: { kind: 'overdue', market, expiryWallMs: 1_795_000_000_000 },
  lapsed: { kind: 'lapsed', market, certainty: 'certain', gapMs: 12_300, unresolved: 0, rearms: true },
  refused: { kind: 'refused', market, code: 31, detail: 'market not available', probeInMs: 60_000 },
  'accepted-again': { kind: 'accepted-again', market },
  unauthorised: { kind: 'unauthorised', status: 401, detail: 'invalid key', probeInMs: 60_000 },
  'authorised-again': { kind: 'authorised-again' },
  altered: { kind: 'altered', market, detail: 'timeout 30 instead of 60' },
  'outage-began': { kind: 'outage-began', base: 0, detail },
  'outage-ended': { kind: 'outage-ended', base: 0, lastedMs: 31_000, attempts: 14 },
  throttled: { kind: 'throttled', factor: 1.5 },
  cadence: {
    kind: 'cadence',
    detail: 'every market is renewed 10 times per timeout',
    capacityPerSecond: 100,
  },
  stall: { kind: 'stall', what: 'stall', byMs: 2500 },
  suspended: { kind: 'suspended', market, why: 'bot_stale' },
  resumed: { kind: 'resumed', market },
  bot: { kind: 'bot', bot: 'maker', state: 'stale' },
  'limiter-bypassed': { kind: 'limiter-bypassed', permits: 3 },
  pinged: {
    kind: 'pinged',
    base: 0,
    ok: false,
    latencyMs: 2000,
    reason: 'timeout',
    detail,
    changed: true,
  },
  'all-armed': { kind: 'all-armed', markets: 3, sinceStartMs: 412 },
  stopping: { kind: 'stopping', policy: 'delete', budgetMs: 8000, why: 'SIGTERM' },
  deleted: { kind: 'deleted', market, durationMs: 15 },
  stopped: {
    kind: 'stopped',
    left: [
      { market, firesByWallMs: 1_795_000_063_000, why: 'unconfirmed' },
      { market: 'ETH_USDT', firesByWallMs: 1_795_000_030_000, why: 'policy' },
    ],
  },
};
