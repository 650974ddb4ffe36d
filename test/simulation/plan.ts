export type { Fault, Plan, PlannedDaemon, PlannedMarket } from './plan-reader.ts';

import type { Plan } from './plan-reader.ts';

/** What a fault strikes, and so what its `target` is an index of. */
export type Struck =
  | 'requests' // On the wire: of one market, or with -1 of all and the pings too.
  | 'base'
  | 'daemon'
  | 'bot'
  | 'market'
  | 'exchange'; // As a whole; the target is always -1.

/** What can go wrong, or is done on purpose while it does. All of it is data: a failing run is a list of these. */
export const FAULTS = {
  'lose-request': 'requests',
  'lose-reply': 'requests',
  delay: 'requests',
  duplicate: 'requests',
  'black-hole': 'requests',
  'refuse-connections': 'requests',
  'reset-before': 'requests',
  'reset-after': 'requests',
  'slow-body': 'requests',
  'cut-off': 'requests',
  'error-in-200': 'requests',
  'bad-request': 'requests',
  unauthorised: 'requests',
  'throttled-page': 'requests',
  'throttled-json': 'requests',
  'server-error': 'requests',
  'gateway-page': 'requests',
  unacknowledged: 'requests',
  lie: 'requests',
  'forget-timers': 'exchange',
  'server-clock-step': 'exchange',
  'wall-step': 'daemon',
  stall: 'daemon',
  suspend: 'daemon',
  crash: 'daemon',
  terminate: 'daemon',
  'bot-silent': 'bot',
  'bot-goodbye': 'bot',
  'actor-deletes': 'market',
  'actor-changes': 'market',
  reorder: 'requests', // Each takes its own time, up to the size: later ones overtake earlier ones.
  'bad-payload': 'requests', // A 400 with code 9, as for a payload that cannot be read.
  forbidden: 'requests', // A 403: the key may not do this.
  'base-silent': 'base', // One of several addresses answers nothing.
  'base-refuses': 'base', // It refuses connections.
  neighbour: 'exchange', // Somebody else uses up this share of the exchange's limit.
  'bot-fails': 'bot',
  'bot-flaps': 'bot', // It beats and falls silent in turns of the size.
  'reload-timeout': 'market', // A reload gives it another timeout: the size.
  'reload-remove': 'market', // A reload takes it out, and another one brings it back.
  // Reloads give it to one daemon alone, which follows from the share, and later back to all; with a single one, to nobody
  // in the run. The others learn of it one after the other within the size.
  'reload-moves': 'market',
  'operator-pauses': 'market',
  'operator-disarms': 'market',
  'operator-trips': 'market',
  stutters: 'daemon', // Short stalls of the size, one after the other, with half as long between them.
  reconnect: 'requests', // Idle connections were closed: it has to open one before it can leave.
  'unacknowledged-page': 'requests', // It is carried out, and a gateway answers 429 with a page of its own.
  // The next request within the length has to open a connection, and the host stands still for the size meanwhile; with a
  // share below a half it sleeps.
  'halts-connecting': 'daemon',
  restart: 'daemon', // SIGTERM, and the length after its end the next life: old requests may be on their way.
  'new-key': 'daemon', // The key is revoked, and the daemon reads another one after the length.
  'new-budget': 'daemon', // A reload gives it a budget of the size, in requests per 10 s, and its old one back.
  'refusal-page': 'requests', // A page of a gateway says 401, 403 or 422, by the size; nothing was carried out.
  'grants-less': 'requests', // The exchange grants a shorter timer than it was asked for: the size.
  'base-slow': 'base', // It answers later by the size.
  'base-errors': 'base', // It answers with errors.
} as const satisfies Readonly<Record<string, Struck>>;
export type FaultKind = keyof typeof FAULTS;
export const FAULT_KINDS = Object.keys(FAULTS) as readonly FaultKind[];

/** Where a watched bot's signs of life come from. */
export const EVIDENCE_MODES = ['beat', 'file', 'http', 'process'] as const;
/** Two clocks drift apart by at most this: what belief gives away on both sides. */
export const DRIFT_PPM = 200;
/** Longest time that a request travels in a simulated network: what `requestLifetimeSeconds` promises. */
export const REQUEST_LIFETIME_MS = 10_000;

/** Do several daemons of the plan use one API key? */
export function sharesKeys({ daemons }: Plan): boolean {
  return new Set(daemons.map(({ key }) => key)).size < daemons.length;
}

/** What the configuration calls a bot of the plan. */
export function botName(bot: number): string {
  return `bot-${bot}`;
}
