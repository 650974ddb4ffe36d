import { describe, expect, test } from 'vitest';
import type { Fault } from '../../src/simulator/faults.ts';
import { stageFor } from './harness.ts';
import { sleep } from './program.ts';
import { type ExchangeProcess, longestGapMs, ofKind } from './simulated-exchange.ts';

type Trouble = Fault extends infer F ? (F extends Fault ? Omit<F, 'match'> : never) : never;

const sickOf = (count: number) => Array.from({ length: count }, (_, index) => `SICK${index}_USDT`);

function strike(exchange: ExchangeProcess, markets: readonly string[], troubles: readonly Trouble[]) {
  const faults = markets.map((market, index) => ({
    ...troubles[index % troubles.length],
    match: { operation: 'kill-switch', market },
  }));
  return exchange.addFaults(...(faults as Fault[]));
}

/** Nonces rise: requests go one after the other, and each sick one may hold up the rest. */
describe.concurrent('with rising nonces', { timeout: 120_000 }, () => {
  for (const when of ['before', 'after'] as const)
    test(`two sick timers of 5 s that answer after 1 s cost healthy ones no third of their slack (${when} they are carried out)`, async (context) => {
      const stage = stageFor(context);
      const exchange = await stage.exchange();
      const sick = sickOf(2);
      const healthy = { TEN_USDT: 10, SIXTY_USDT: 60 };
      const daemon = await stage.daemon({
        exchange: exchange.url,
        markets: [
          ...sick.map((market) => ({ market, timeoutSeconds: 5 })),
          ...Object.entries(healthy).map(([market, timeoutSeconds]) => ({ market, timeoutSeconds })),
        ],
      });
      await daemon.ready(30_000);
      await strike(exchange, sick, [{ kind: 'latency', ms: 1000, when }]);
      const fromMs = await exchange.nowMs();
      await sleep(40_000);
      const events = await exchange.events();
      const toMs = await exchange.nowMs();
      for (const [market, timeoutSeconds] of Object.entries(healthy)) {
        const slackMs = (timeoutSeconds - 1) * 1000;
        const gapMs = longestGapMs(events, market, fromMs, toMs);
        expect(gapMs, market).toBeLessThanOrEqual(timeoutSeconds * 100 + slackMs / 3);
      }
    });

  test.for<readonly [string, readonly Trouble[]]>([
    ['that are never answered', [{ kind: 'hang', mode: 'drop' }]],
    ['that answer after 1 s', [{ kind: 'latency', ms: 1000 }]],
    ['whose nonces are called stale', [{ kind: 'stale-nonce' }]],
    ['for which the key is refused', [{ kind: 'forbidden' }]],
    [
      'that fail in many ways',
      [
        { kind: 'status', status: 500 },
        { kind: 'reset', when: 'before' },
        { kind: 'garbage' },
        { kind: 'cut-off' },
        { kind: 'unacknowledged' },
      ],
    ],
  ])('fifteen sick markets %s leave a healthy timer of 5 s its cadence', async ([, troubles], context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const sick = sickOf(15);
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: [...sick, 'WELL_USDT'].map((market) => ({ market, timeoutSeconds: 5 })),
    });
    await daemon.ready(30_000);
    await strike(exchange, sick, troubles);
    const fromMs = await exchange.nowMs();
    await sleep(20_000);
    const events = await exchange.events();
    expect(longestGapMs(events, 'WELL_USDT', fromMs, await exchange.nowMs())).toBeLessThanOrEqual(2500);
    expect(ofKind(events, 'timer-fired', 'WELL_USDT')).toEqual([]);
  });
});
