import type { BotWord, Effect, Outcome, Pinged } from './core/events.ts';
import type { Notice } from './core/notice.ts';
import type { Instant } from './core/time.ts';

/** Undoes what it was returned for; calling it again, or too late, does nothing. */
export type Cancel = () => void;

/** Time as the daemon sees it. The only source of time and of timers in the program. */
export interface Clock {
  now(): Instant;
  /** Calls `run` once, not before `delayMs` of monotonic time have passed. Never calls it synchronously. */
  after(delayMs: number, run: () => void): Cancel;
}

/**
 * One kill-switch request, as the core asks for it: a timer of 5 to 600 s, or null to delete it, for some order types or,
 * with null, for all. `base` is an index. `fresh` asks for a new connection, because one that was used may hang.
 */
export interface SyncRequest extends Omit<Extract<Effect, { kind: 'write' }>, 'kind' | 'attempt'> {
  /** Called when the request takes its nonce, each time that it does. */
  readonly signed: () => void;
  /** Asked right before the first byte is written. False: it may no longer leave, and settles as not applied. */
  readonly mayWrite: () => boolean;
}

/** What a ping of one base address came to; `reason` and `detail` only where it failed. */
export type PingOutcome = Pick<Pinged, 'ok' | 'latencyMs'> & Partial<Pick<Pinged, 'reason' | 'detail'>>;

/**
 * Callbacks instead of promises: a renewal is written in the synchronous step in which the core allowed it, and virtual
 * time is exact only where nothing waits for a microtask.
 */
export interface Exchange {
  /**
   * Signs and writes one request, once a connection is open for it. Calls `settled` exactly once, never synchronously,
   * and never throws. It is given up by the returned function, or when its lifetime is over: `transient` with `timeout`.
   */
  sync(request: SyncRequest, settled: (outcome: Outcome) => void): Cancel;
  /** Pings one base address and gives up after `timeoutMs`. Calls `settled` exactly once, never synchronously. */
  ping(base: number, timeoutMs: number, settled: (outcome: PingOutcome) => void): Cancel;
}

/** Takes a bot's word in. `agoMs`: how old the word may be at most; 0 where it was heard the moment it was said. */
export type Hear = (bot: string, says: BotWord, agoMs: number) => void;

/** Where evidence that the bots live comes from, whatever the liveness mode. */
export interface Evidence {
  /** Begins to listen, look or probe, and calls `hear` for everything new. Returned function ends that. */
  start(hear: Hear): Cancel;
}

/** Told everything that happened. Must not throw and must not block: a slow observer delays renewals. */
export type Observer = (notice: Notice, now: Instant) => void;

/** What tells a beat from a copy of an older one. Both are the bot's own and optional. */
export interface BeatProof {
  /** Changes when the bot starts anew; at most 64 characters. */
  readonly session: string | null;
  /** Rises with every beat of a session. */
  readonly seq: number | null;
}

/** Whether a bot's word counted; `why` tells what was wrong with it where it did not. */
export type Heard = { readonly counted: true } | { readonly counted: false; readonly why: string };

/** Where a listener binds. `text` is the address as one string, in one form for one address. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly text: string; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly text: string; readonly path: string };

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type EventLevel = Exclude<LogLevel, 'fatal'>;

/** An event as the status page and the status document show it. */
export interface RecentEvent {
  readonly atWallMs: number;
  readonly level: EventLevel;
  readonly event: string;
  readonly market: string | null;
  readonly text: string;
}

/** A command, who sent it and why: what an audit asks for. */
export interface Commanded {
  readonly command: string;
  /** Null for all of them, and for commands that are not for markets. */
  readonly markets: readonly string[] | null;
  readonly reason: string | null;
  /** What the sender says of itself. Nobody checks it: Node cannot ask a socket for the user and process at its other end. */
  readonly sender: string | null;
  /** The listener, and who can use it: that is sure. */
  readonly via: string;
}
