import { type Answer, done } from './answer.ts';
import type { Call } from './exchange-state.ts';
import { syncKillSwitch } from './kill-switch.ts';
import type { RateLimit } from './rate-window.ts';

/** One operation of the API document. */
export interface Operation {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** `signed`: the signed-request headers of the document; decides the shape of errors, too. */
  readonly auth: 'none' | 'signed';
  /** From the table "Limits" of the document. */
  readonly limit: RateLimit;
  readonly run: (call: Call) => Answer;
}

const WINDOW_MS = 10_000;

export const OPERATIONS: readonly Operation[] = [
  {
    name: 'kill-switch',
    method: 'POST',
    path: '/api/v4/order/kill-switch',
    auth: 'signed',
    limit: { requests: 10_000, windowMs: WINDOW_MS },
    run: syncKillSwitch,
  },
  {
    name: 'ping',
    method: 'GET',
    path: '/api/v4/public/ping',
    auth: 'none',
    limit: { requests: 2000, windowMs: WINDOW_MS },
    run: () => done(['pong']),
  },
];
