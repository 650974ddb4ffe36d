/**
 * Known bugs of lease keepers, to plant on purpose: the simulation must find every one of them, or it could not be
 * trusted to find the next. No configuration, flag or variable reaches this switch.
 */
export const FLAWS = [
  'no-sleep-in-backoff',
  'backoff-longer-than-timer',
  'deadline-from-reply',
  'delete-beside-renewal',
  'limiter-on-wall-clock',
  'not-gated-on-evidence',
  'timeout-means-not-applied',
  'belief-of-two-timeouts',
  'wall-clock-nonce',
  'retry-waits-for-hung-attempt',
  'streak-reset-by-others',
  'silent-rearm',
] as const;
export type Flaw = (typeof FLAWS)[number];
