import { expect, test } from 'vitest';
import { createKeeper } from '../src/keeper.ts';
import { createHostClock, createTimeline } from '../src/simulator/virtual-clock.ts';
import { coreSettings } from './core/core-settings.ts';

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
