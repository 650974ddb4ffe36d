import { expect, test } from 'vitest';
import { createKeeper } from '../src/keeper.ts';
import { coreSettings } from './core/core-settings.ts';
import { LOST } from './core/driver.ts';
import { createStage } from './keeper-stage.ts';
import { createHostClock, createTimeline } from './simulation/virtual-clock.ts';

test('an error in a step ends the process, and is not left to whoever told the keeper something', () => {
  const timeline = createTimeline(0);
  const clock = createHostClock(timeline);
  const settings = coreSettings({ markets: ['AAA'] });
  const exchange = { sync: () => () => {}, ping: () => () => {}, acquire: () => () => {} };
  const keeper = createKeeper({
    settings,
    clock,
    exchange,
    observe: (notice) => {
      if (notice.kind === 'held') throw new Error('broken');
    },
  });
  keeper.start();
  expect(() => keeper.operate({ does: 'disarm', markets: null, forMs: 0 }, 0)).not.toThrow();
  expect(() => timeline.runUntil(100)).toThrow('broken');
  keeper.hear('bot', 'beat', 0);
  const { monoMs } = keeper.state.now;
  timeline.runUntil(10_000);
  expect(keeper.state.now.monoMs).toBe(monoMs);
});

test('an exchange that answers in the call itself ends no process', () => {
  const timeline = createTimeline(0);
  const clock = createHostClock(timeline);
  let asked = 0;
  const keeper = createKeeper({
    settings: coreSettings({ markets: ['AAA'] }),
    clock,
    exchange: {
      sync(_, settled) {
        asked += 1;
        settled(LOST);
        return () => {};
      },
      ping: () => () => {},
    },
    observe: () => {},
  });
  keeper.start();
  timeline.runUntil(5000);
  expect(asked).toBeGreaterThan(3);
});

test('a second answer to one request keeps no other from being given up', () => {
  const { keeper, calls, apply, run } = createStage({ markets: ['AAA:60', 'BBB:60'], nonce: 'window' });
  keeper.start();
  const [first] = calls;
  apply(first);
  expect(calls).toHaveLength(2);
  apply(first);
  run(11_000);
  expect(calls[1]?.aborted).toBe(true);
});
