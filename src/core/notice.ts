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
}

/** The stop was to delete the timer, and that failed or came too late: it ends with an error. */
export function isFailedDelete({ why }: LeftArmed): boolean {
  return why === 'unconfirmed' || why === 'unheard' || why === 'may-have-fired';
}

/** What the core tells of one market. Durations in milliseconds. `attempt`: a request is being written. */
type MarketNotice = { readonly market: string } & (
  | { readonly kind: 'attempt'; readonly purpose: Purpose; readonly base: number; readonly delayMs: number }
  /** A renewal was confirmed. `cycleMs` counts from when it was due, `durationMs` from when it was written. */
  | {
      readonly kind: 'renewed';
      readonly durationMs: number;
      readonly cycleMs: number;
      /** Time that was left on the previous belief when the confirmation came, as a share of the timeout; null for a first arming. */
      readonly slackRatio: number | null;
      /** First confirmation after the market was not armed. */
      readonly first: boolean;
      /** Server's cancellationTime, Unix seconds. */
      readonly cancellationTime: number;
      /** Unix milliseconds, conservative local estimate of the expiry: time of writing + timeout. */
      readonly expiryWallMs: number;
      /** startTime minus the local wall clock at the middle of the request, milliseconds. */
      readonly skewMs: number;
    }
  | {
      readonly kind: 'attempt-failed';
      readonly purpose: Purpose;
      readonly reason: FailureReason;
      readonly detail: string;
      readonly streak: number;
      readonly durationMs: number;
    }
  /** The first confirmation after a streak of failures. */
  | { readonly kind: 'recovered'; readonly failures: number }
  /**
   * The timer's guarantee ran out while it should be armed; whether it fired is not known yet. `leftToFire`: it was left to
   * fire and wanted again too late, so that this will not be known: a new timer then tells of no lapse.
   */
  | { readonly kind: 'overdue'; readonly expiryWallMs: number; readonly leftToFire: boolean }
  | {
      readonly kind: 'lapsed';
      readonly certainty: Certainty;
      /** Since the last confirmed renewal was written; null where none was since the market came (back) to this daemon. */
      readonly gapMs: number | null;
      readonly unresolved: number;
      /** It is armed again as soon as possible; if not, `onLapse: hold` or something before holds it. */
      readonly rearms: boolean;
      readonly held: boolean;
    }
  /** `probeInMs`: when it is tried again; null where nobody wants its timer. */
  | (Refusal & { readonly kind: 'refused'; readonly code: number; readonly probeInMs: number | null })
  | { readonly kind: 'accepted-again' }
  /** The exchange answered with another timeout or other types than asked for. */
  | { readonly kind: 'altered'; readonly detail: string }
  /** Renewed no longer. `firesByWallMs`: its orders are cancelled by then, Unix milliseconds; null where it has no timer. */
  | { readonly kind: 'suspended'; readonly why: Suspension; readonly firesByWallMs: number | null }
  | { readonly kind: 'resumed' }
  /** An operator, or a lapse under `onLapse: hold`, took the market out of guard; until when, in Unix milliseconds. */
  | {
      readonly kind: 'held';
      readonly why: Hold;
      readonly untilWallMs: number | null;
      /** Until then it may have a timer, Unix milliseconds; null where it has none. */
      readonly firesByWallMs: number | null;
    }
  | { readonly kind: 'released'; readonly why: 'operator' | 'pause-over' }
  /** A timer that was left to fire, or tripped, has surely fired: the market's orders were cancelled by then. */
  | { readonly kind: 'fired'; readonly why: Firing; readonly firedByWallMs: number }
  /** The timer was cut to its shortest: the orders are cancelled by `firesByWallMs`, Unix milliseconds. */
  | {
      readonly kind: 'tripped';
      /** An operator asked for it, or the bot died under `onStale: trip`. */
      readonly why: Extract<Firing, 'tripped' | 'bot_stale' | 'bot_failed'>;
      readonly durationMs: number;
      readonly firesByWallMs: number;
    }
  /**
   * A market that a reload took out is gone: its timer was deleted, left on purpose, renewed once more for another shard,
   * or had surely fired.
   */
  | {
      readonly kind: 'removed';
      readonly how: 'deleted' | 'kept' | 'handed_off' | 'fired';
      /** Its orders are cancelled by then unless somebody renews the timer, Unix milliseconds; null where none may be left. */
      readonly firesByWallMs: number | null;
    }
  /**
   * `mayHaveFired`: the timer may have run out before; then its orders were cancelled. `isFinal`: no renewal without an
   * answer can arm it again.
   */
  | {
      readonly kind: 'deleted';
      readonly durationMs: number;
      readonly mayHaveFired: boolean;
      readonly isFinal: boolean;
    }
);

/** Why the exchange does not do what it is asked for. */
interface Refusal {
  readonly detail: string;
  /** The first timer concerned is surely armed until then, Unix milliseconds; null where none is. */
  readonly expiryWallMs: number | null;
}

/**
 * What the core tells the world. Metrics, log, status page and tests all live on these; nothing else leaves the core
 * but effects. Durations in milliseconds.
 */
export type Notice =
  | MarketNotice
  | (Refusal & { readonly kind: 'unauthorised'; readonly status: number; readonly probeInMs: number })
  | { readonly kind: 'authorised-again' }
  /** `expiryWallMs`: the first timer is surely armed until then, Unix milliseconds; null where none is. */
  | {
      readonly kind: 'outage-began';
      readonly base: number;
      /** The address that renewals take meanwhile; null where none is left. */
      readonly standsIn: number | null;
      readonly detail: string;
      readonly expiryWallMs: number | null;
    }
  | {
      readonly kind: 'outage-ended';
      readonly base: number;
      readonly lastedMs: number;
      readonly attempts: number;
    }
  | { readonly kind: 'throttled'; readonly factor: number }
  /** `answerMs`: milliseconds; null where none was measured. */
  | {
      readonly kind: 'cadence';
      readonly detail: string;
      readonly capacityPerSecond: number;
      readonly answerMs: number | null;
    }
  | { readonly kind: 'stall'; readonly what: 'stall' | 'suspend' | 'clock-step'; readonly byMs: number }
  | {
      readonly kind: 'reloaded';
      readonly added: readonly string[];
      readonly removed: readonly string[];
      readonly changed: readonly string[];
    }
  | {
      readonly kind: 'bot';
      readonly bot: string;
      readonly state: BotPhase;
      /** Of a bot that died: by then the orders of its markets are cancelled, Unix milliseconds; null where none has a timer. */
      readonly firesByWallMs: number | null;
    }
  | (Pinged & { readonly changed: boolean })
  | { readonly kind: 'all-armed'; readonly markets: number; readonly sinceStartMs: number }
  | {
      readonly kind: 'stopping';
      readonly policy: Policy;
      readonly budgetMs: number;
      readonly why: string;
    }
  | { readonly kind: 'stopped'; readonly left: readonly LeftArmed[] };
