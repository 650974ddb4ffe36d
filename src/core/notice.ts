import type { FailureReason, Pinged, Policy, Purpose } from './events.ts';

/** How sure it is that a timer fired. `possible` where a request whose answer got lost could have kept it alive, or deleted it. */
export const CERTAINTIES = ['certain', 'possible'] as const;
export type Certainty = (typeof CERTAINTIES)[number];

/** Why a market is deliberately not renewed. */
export const SUSPENSIONS = ['bot_stale', 'bot_goodbye', 'bot_failed'] as const;
export type Suspension = (typeof SUSPENSIONS)[number];

/** Why a market is left alone until an operator, or the end of a pause, says otherwise: `lapsed` by `onLapse: hold`. */
export const HOLDS = ['disarmed', 'paused', 'tripped', 'lapsed'] as const;
export type Hold = (typeof HOLDS)[number];

/**
 * Why a timer ran out while nobody wanted it renewed. `kept`: it was left on purpose, as after a goodbye under `keep`.
 * `undeleted`: it was to be deleted, and ran out before that was confirmed.
 */
export const FIRINGS = ['bot_stale', 'bot_failed', 'kept', 'tripped', 'disarmed', 'undeleted'] as const;
export type Firing = (typeof FIRINGS)[number];

/** How a bot is, as far as its evidence says. */
export type BotPhase = 'starting' | 'alive' | 'stale' | 'goodbye' | 'failed';

/** A timer that a stop left behind: what an operator must know about it. */
export interface LeftArmed {
  readonly market: string;
  /** Unix milliseconds: the latest moment at which the exchange cancels the market's orders. */
  readonly firesByWallMs: number;
  /**
   * `policy`: left on purpose (keep, handoff, dead bot). `unconfirmed`: a delete was wanted and not confirmed.
   * `unrenewed`: the last renewal of a handoff was wanted and not confirmed. `unheard`: a delete was wanted, and the bot
   * gave no sign of life in the stop, or fell silent in it. `may-have-fired`: the delete was confirmed, and may have come too late.
   */
  readonly why: 'policy' | 'unconfirmed' | 'unrenewed' | 'unheard' | 'may-have-fired';
  /** The exchange has confirmed a timer that may still fire; if not, and none runs, the orders stay. */
  readonly confirmed: boolean;
}

/** The stop was to delete the timer, and that failed or came too late: it ends with an error. */
export function isFailedDelete({ why }: LeftArmed): boolean {
  return why === 'unconfirmed' || why === 'unheard' || why === 'may-have-fired';
}

/** Why the exchange does not do what it is asked for. */
interface Refusal {
  detail: string;
  /** The first timer concerned is surely armed until then, Unix milliseconds; null where none is. */
  expiryWallMs: number | null;
}

/** What the core tells of one market, by its kind. Durations in milliseconds. */
interface OfMarket {
  /** A request is being written. */
  attempt: { purpose: Purpose; base: number; delayMs: number };
  /** A renewal was confirmed. `cycleMs` counts from when it was due, `durationMs` from when it was written. */
  renewed: {
    durationMs: number;
    cycleMs: number;
    /** Time that was left on the previous belief when the confirmation came, as a share of the timeout; null for a first arming. */
    slackRatio: number | null;
    /** First confirmation after the market was not armed. */
    first: boolean;
    /** Server's cancellationTime, Unix seconds. */
    cancellationTime: number;
    /** Unix milliseconds, conservative local estimate of the expiry: time of writing + timeout. */
    expiryWallMs: number;
    /** startTime minus the local wall clock at the middle of the request, milliseconds. */
    skewMs: number;
  };
  'attempt-failed': {
    purpose: Purpose;
    reason: FailureReason;
    detail: string;
    streak: number;
    durationMs: number;
  };
  /** The first confirmation after a streak of failures. */
  recovered: { failures: number };
  /**
   * The timer's guarantee ran out while it should be armed; whether it fired is not known yet. `leftToFire`: it was left to
   * fire and wanted again too late, so that this will not be known: a new timer then tells of no lapse.
   */
  overdue: { expiryWallMs: number; leftToFire: boolean };
  lapsed: {
    certainty: Certainty;
    /** Since the last confirmed renewal was written; null where none was since the market came (back) to this daemon. */
    gapMs: number | null;
    unresolved: number;
    /** It is armed again as soon as possible; if not, `onLapse: hold` or something before holds it. */
    rearms: boolean;
    held: boolean;
  };
  /** `probeInMs`: when it is tried again; null where nobody wants its timer. */
  refused: Refusal & { code: number; probeInMs: number | null };
  'accepted-again': object;
  /** The exchange answered with another timeout or other types than asked for. */
  altered: { detail: string };
  /**
   * Renewed no longer. `firesByWallMs`: a timer that may exist fires by then, Unix milliseconds; null where it has none.
   * `confirmed`: it has one, so that its orders are cancelled; if not, they stay where none runs.
   */
  suspended: { why: Suspension; firesByWallMs: number | null; confirmed: boolean };
  resumed: object;
  /**
   * An operator, or a lapse under `onLapse: hold`, took the market out of guard; until when, in Unix milliseconds.
   * `firesByWallMs`: until then it may have a timer, Unix milliseconds; null where it has none.
   */
  held: { why: Hold; untilWallMs: number | null; firesByWallMs: number | null };
  released: { why: 'operator' | 'pause-over' };
  /** A timer that was left to fire, or tripped, has surely fired: the market's orders were cancelled by then. */
  fired: { why: Firing; firedByWallMs: number };
  /**
   * The timer was cut to its shortest: the orders are cancelled by `firesByWallMs`, Unix milliseconds. An operator asked
   * for it, or the bot died under `onStale: trip`.
   */
  tripped: {
    why: Extract<Firing, 'tripped' | 'bot_stale' | 'bot_failed'>;
    durationMs: number;
    firesByWallMs: number;
    /** No renewal without an answer can make it longer again. */
    isFinal: boolean;
  };
  /**
   * A market that a reload took out is gone: its timer was deleted, left on purpose, renewed once more for another shard,
   * or had surely fired. `deleted_late`: it may have fired before the delete. `firesByWallMs`: a timer that may be left
   * fires by then unless somebody renews it, Unix milliseconds; null where none is. `confirmed`: the exchange
   * has confirmed one.
   */
  removed: {
    how: 'deleted' | 'deleted_late' | 'kept' | 'handed_off' | 'fired';
    firesByWallMs: number | null;
    confirmed: boolean;
  };
  /**
   * `mayHaveFired`: the timer may have run out before; then its orders were cancelled. `isFinal`: no renewal without an
   * answer can arm it again.
   */
  deleted: { durationMs: number; mayHaveFired: boolean; isFinal: boolean };
}

/** What it tells of the daemon, the key, the addresses and the bots. Durations in milliseconds. */
interface OfDaemon {
  unauthorised: Refusal & { status: number; probeInMs: number };
  'authorised-again': object;
  'outage-began': {
    base: number;
    /** The address that renewals take meanwhile; null where none is left. */
    standsIn: number | null;
    detail: string;
    /** The first timer is surely armed until then, Unix milliseconds; null where none is. */
    expiryWallMs: number | null;
  };
  'outage-ended': { base: number; lastedMs: number; attempts: number };
  throttled: { factor: number };
  /** `answerMs`: null where none was measured. */
  cadence: { detail: string; capacityPerSecond: number; answerMs: number | null };
  stall: { what: 'stall' | 'suspend' | 'clock-step'; byMs: number };
  reloaded: { added: readonly string[]; removed: readonly string[]; changed: readonly string[] };
  /**
   * When it died: `firesByWallMs`: the orders of its markets with a confirmed timer are cancelled by then, Unix
   * milliseconds; null where there are none. `unconfirmed`: its markets that nobody holds and that have no confirmed timer.
   */
  bot: { bot: string; state: BotPhase; firesByWallMs: number | null; unconfirmed: number };
  'all-armed': { markets: number; sinceStartMs: number };
  stopping: { policy: Policy; budgetMs: number; why: string };
  stopped: { left: readonly LeftArmed[] };
}

type Told<Kinds> = { [Kind in keyof Kinds]: { readonly kind: Kind } & Readonly<Kinds[Kind]> }[keyof Kinds];

/**
 * What the core tells the world. Metrics, log, status page and tests all live on these; nothing else leaves the core
 * but effects.
 */
export type Notice =
  | (Told<OfMarket> & { readonly market: string })
  | Told<OfDaemon>
  | (Pinged & { readonly changed: boolean });
