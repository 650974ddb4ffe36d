import type { OrderType } from '../core/outcome.ts';

type BodyValue = string | number | boolean | null | readonly string[];

/** A documented limit: at most `requests` in any `windowMs`. */
export interface Limit {
  readonly requests: number;
  readonly windowMs: number;
}

/** One operation of the API document: everything that is needed to send it. */
export interface Operation<Arguments> {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** `signed`: key, payload and signature headers, and a body with `request` and `nonce`. */
  readonly authentication: 'signed' | 'none';
  readonly limit: Limit;
  /** Fields of the body after `request` and `nonce`, in the order in which they are written. */
  readonly fields: (given: Arguments) => Readonly<Record<string, BodyValue>>;
}

export interface KillSwitchArguments {
  readonly market: string;
  /** Whole seconds 5 to 600, or null to delete the timer. */
  readonly timeoutSeconds: number | null;
  /** Null means all order types. A delete does not send them: it removes the timer of the market. */
  readonly types: readonly OrderType[] | null;
}

/** `POST /api/v4/order/kill-switch`: creates, updates or deletes the timer of a market. */
export const syncKillSwitch: Operation<KillSwitchArguments> = {
  name: 'syncKillSwitch',
  method: 'POST',
  path: '/api/v4/order/kill-switch',
  authentication: 'signed',
  limit: { requests: 10_000, windowMs: 10_000 },
  fields: ({ market, timeoutSeconds, types }) =>
    timeoutSeconds === null ? { market, timeout: null } : { market, timeout: String(timeoutSeconds), types },
};

/** `GET /api/v4/public/ping`: answers `["pong"]`. Limit: that of public endpoints in general. */
export const ping: Operation<null> = {
  name: 'ping',
  method: 'GET',
  path: '/api/v4/public/ping',
  authentication: 'none',
  limit: { requests: 2_000, windowMs: 10_000 },
  fields: () => ({}),
};
