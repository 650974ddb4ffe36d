import { expect, test } from 'vitest';
import type { Fault } from '../../src/simulator/faults.ts';
import { stageFor } from './harness.ts';
import { sleep } from './program.ts';
import { longestGapMs, ofKind } from './simulated-exchange.ts';

type Trouble = Fault extends infer F ? (F extends Fault ? Omit<F, 'match'> : never) : never;

const SICK = Array.from({ length: 15 }, (_, index) => `SICK${index}_USDT`);
const TROUBLES: readonly Trouble[] = [
  { kind: 'hang', mode: 'drop' },
  { kind: 'latency', ms: 1000 },
  { kind: 'stale-nonce' },
  { kind: 'forbidden' },
  { kind: 'status', status: 500 },
  { kind: 'reset', when: 'before' },
  { kind: 'garbage' },
  { kind: 'cut-off' },
  { kind: 'unacknowledged' },
];

// Nonces rise: requests go one after the other, and each sick one may hold up the rest.
test('fifteen sick markets that fail in many ways leave a healthy timer of 5 s its cadence', {
  timeout: 60_000,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: [...SICK, 'WELL_USDT'].map((market) => ({ market, timeoutSeconds: 5 })),
  });
  await daemon.ready(30_000);
  const faults = SICK.map((market, index) => ({
    ...TROUBLES[index % TROUBLES.length],
    match: { operation: 'kill-switch', market },
  }));
  await exchange.addFaults(...(faults as Fault[]));
  const fromMs = await exchange.nowMs();
  await sleep(15_000);
  const events = await exchange.events();
  expect(longestGapMs(events, 'WELL_USDT', fromMs, await exchange.nowMs())).toBeLessThanOrEqual(2500);
  expect(ofKind(events, 'timer-fired', 'WELL_USDT')).toEqual([]);
});
