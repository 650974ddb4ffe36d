import { expect } from 'vitest';
import { type Limit, OPERATIONS, type Operation, type OperationName } from '../../src/exchange/operations.ts';
import { OPERATIONS as SIMULATED } from '../../src/simulator/operations.ts';
import { requestOf } from './sides.ts';
import { type Case, done, SAMPLES } from './steps.ts';

const NAMES = Object.keys(OPERATIONS) as OperationName[];
const OPTIONS = { newAddresses: true };

/** Once more with nothing changed but what must be new. */
const AGAIN: Partial<Record<OperationName, object>> = { withdrawPay: { unique_id: 'w-again' } };

const uncached: readonly Case[] = (
  ['withdrawPay', 'myCodes', 'miningHashrate', 'createNewAddress'] as const
).map((operation) => ({
  title: `an answer of ${operation} may not be kept, and the next request is answered anew`,
  rows: [`${operation} rule not cached`],
  options: OPTIONS,
  async check(side) {
    const fields = SAMPLES[operation];
    const again = { ...fields, ...AGAIN[operation] };
    if (side.kind === 'client') {
      await done(side, operation, fields);
      await done(side, operation, again);
      expect(side.sent).toHaveLength(2);
      return;
    }
    const { status, headers } = side.exchange.handle(requestOf(operation, fields), Date.now());
    expect(status).toBe(200);
    expect(headers['cache-control']).toBe('no-store');
    await done(side, operation, again);
  },
}));

/** In process: all of the limit and one more. The client: its own limit is the same, and it tells such a refusal. */
const limits: readonly Case[] = NAMES.filter((name) => name !== 'orderHistory').map((name) => {
  const operation: Operation<never> = OPERATIONS[name];
  const { requests, windowMs } = operation.limit as Limit;
  const id = `${name} limit ${requests} in ${windowMs / 1000} s`;
  const simulated = SIMULATED.find(({ path }) => path === operation.path);
  return {
    title: `${name} is limited to ${requests} requests in ${windowMs / 1000} s`,
    rows: [id],
    options: { checkSignatures: false },
    async check(side) {
      expect(simulated?.limit).toEqual({ requests, windowMs });
      if (side.kind === 'client') return;
      const nowMs = Date.now();
      const refused = { request: operation.path, market: '' };
      const ask = (atMs: number) => side.exchange.handle(requestOf(name, refused), atMs).status;
      for (let times = 1; times < requests; times += 1) ask(nowMs);
      expect(ask(nowMs)).not.toBe(429);
      expect(ask(nowMs + windowMs - 1)).toBe(429);
      expect(ask(nowMs + windowMs + 1)).not.toBe(429);
    },
  };
});

export const REPEAT_CASES: readonly Case[] = [...uncached, ...limits];
