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
  overdue: { kind: 'overdue', market, expiryWallMs: 1_795_000_000_000, leftToFire: false },
  lapsed: {
    kind: 'lapsed',
    market,
    certainty: 'certain',
    gapMs: 12_300,
    unresolved: 0,
    rearms: true,
    held: false,
  },
  fired: { kind: 'fired', market, why: 'bot_stale', firedByWallMs: 1_794_999_999_700 },
  refused: {
    kind: 'refused',
    market,
    code: 31,
    detail: 'market not available',
    probeInMs: 60_000,
    expiryWallMs: null,
  },
  'accepted-again': { kind: 'accepted-again', market },
  unauthorised: {
    kind: 'unauthorised',
    status: 401,
    detail: 'invalid key',
    probeInMs: 60_000,
    expiryWallMs: 1_795_000_020_000,
  },
  'authorised-again': { kind: 'authorised-again' },
  altered: { kind: 'altered', market, detail: 'timeout 30 instead of 60' },
  'outage-began': { kind: 'outage-began', base: 0, standsIn: null, detail, expiryWallMs: 1_795_000_020_000 },
  'outage-ended': { kind: 'outage-ended', base: 0, lastedMs: 31_000, attempts: 14 },
  throttled: { kind: 'throttled', factor: 1.5 },
  cadence: {
    kind: 'cadence',
    detail: 'every market is renewed 10 times per timeout',
    capacityPerSecond: 100,
    answerMs: 20,
  },
  stall: { kind: 'stall', what: 'stall', byMs: 2500 },
  suspended: { kind: 'suspended', market, why: 'bot_stale', firesByWallMs: 1_795_000_020_000 },
  resumed: { kind: 'resumed', market },
  held: { kind: 'held', market, why: 'paused', untilWallMs: 1_795_000_600_000, firesByWallMs: null },
  released: { kind: 'released', market, why: 'pause-over' },
  tripped: {
    kind: 'tripped',
    market,
    why: 'tripped',
    durationMs: 18,
    firesByWallMs: 1_795_000_006_000,
    isFinal: true,
  },
  reloaded: { kind: 'reloaded', added: ['SOL_USDT'], removed: ['ETH_USDT'], changed: [market] },
  removed: { kind: 'removed', market: 'ETH_USDT', how: 'deleted', firesByWallMs: null },
  bot: { kind: 'bot', bot: 'maker', state: 'stale', firesByWallMs: 1_795_000_020_000 },
  pinged: { kind: 'pinged', base: 0, ok: false, latencyMs: 2000, reason: 'timeout', detail, changed: true },
  'all-armed': { kind: 'all-armed', markets: 3, sinceStartMs: 412 },
  stopping: { kind: 'stopping', policy: 'delete', budgetMs: 8000, why: 'SIGTERM' },
  deleted: { kind: 'deleted', market, durationMs: 15, mayHaveFired: false, isFinal: true },
  stopped: {
    kind: 'stopped',
    left: [
      { market, firesByWallMs: 1_795_000_063_000, why: 'unconfirmed' },
      { market: 'ETH_USDT', firesByWallMs: 1_795_000_030_000, why: 'policy' },
    ],
  },
};

/** The same kinds where another code or level follows from what happened. */
export const OTHER_NOTICES: readonly Notice[] = [
  { ...EVERY_NOTICE.renewed, first: true },
  { ...EVERY_NOTICE['attempt-failed'], purpose: 'trip' },
  { ...EVERY_NOTICE['attempt-failed'], purpose: 'delete' },
  { ...EVERY_NOTICE.stall, what: 'suspend' },
  { ...EVERY_NOTICE.stall, what: 'clock-step' },
  { ...EVERY_NOTICE.suspended, why: 'bot_goodbye' },
  { ...EVERY_NOTICE.held, why: 'disarmed', untilWallMs: null },
  { ...EVERY_NOTICE.held, why: 'tripped', untilWallMs: null },
  { ...EVERY_NOTICE.held, why: 'lapsed', untilWallMs: null },
  { ...EVERY_NOTICE.held, why: 'lapsed', untilWallMs: null, firesByWallMs: 1_795_000_060_000 },
  { ...EVERY_NOTICE.released, why: 'operator' },
  { ...EVERY_NOTICE.removed, how: 'kept', firesByWallMs: 1_795_000_060_000 },
  { ...EVERY_NOTICE.removed, how: 'fired' },
  { ...EVERY_NOTICE.bot, state: 'failed' },
  { ...EVERY_NOTICE.bot, state: 'goodbye', firesByWallMs: null },
  { ...EVERY_NOTICE.bot, state: 'alive', firesByWallMs: null },
  { ...EVERY_NOTICE.pinged, ok: true, latencyMs: 20, reason: null, detail: '' },
];
