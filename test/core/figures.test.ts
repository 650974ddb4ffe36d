import { describe, expect, test } from 'vitest';
import { summarise } from '../../src/core/view.ts';
import { type SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, NOT_SENT } from './driver.ts';

const beat = (driver: Driver, ...bots: string[]) => {
  for (const bot of bots) driver.say('beat', bot);
};
const figuresOf = (driver: Driver) => summarise(driver.state, driver.now());

test('figures between two steps count the time since the last one', () => {
  const driver = createDriver({ markets: ['AAA'], liveness: { mode: 'beat' } });
  beat(driver, 'bot');
  driver.live(2000);
  driver.tick();
  const then = figuresOf(driver);
  driver.move({ monoMs: 200 });
  const { leastSlack, quietest } = figuresOf(driver);
  expect(leastSlack?.ms).toBeCloseTo((then.leastSlack?.ms ?? 0) - 200, 3);
  expect(quietest?.ageMs).toBeCloseTo((then.quietest?.ageMs ?? 0) + 200, 3);
});

test('a timer that has surely fired is none that may fire, and one that was never armed neither', () => {
  const driver = createDriver({ markets: ['AAA:10', 'BBB:60'] });
  expect(figuresOf(driver)).toMatchObject({ mayFire: 0, armed: 0, leastSlack: null });
  driver.live(1000);
  expect(figuresOf(driver)).toMatchObject({ mayFire: 2, armed: 2 });
  driver.live(30_000, 20, (write) => driver.settle(write, NOT_SENT));
  expect(figuresOf(driver)).toMatchObject({ mayFire: 1, armed: 1, wanted: 2 });
});

describe('a market that leaves', () => {
  test('is configured no longer, and neither is its bot one to listen for', () => {
    const options: SettingsOptions = { liveness: { mode: 'beat' } };
    const driver = createDriver({ ...options, markets: ['AAA:60:one', 'BBB:60:two'] });
    beat(driver, 'two');
    driver.live(1000);
    beat(driver, 'one');
    driver.live(1000);
    expect(figuresOf(driver)).toMatchObject({ configured: 2, quietest: { bot: 'two' } });
    driver.reload({ ...options, markets: ['AAA:60:one'] });
    expect(driver.state.markets).toHaveLength(2);
    expect(figuresOf(driver)).toMatchObject({ configured: 1, wanted: 1, quietest: { bot: 'one' } });
    driver.live(1000);
    expect(driver.state.markets).toHaveLength(1);
    expect(figuresOf(driver)).toMatchObject({ configured: 1, quietest: { bot: 'one' } });
  });
});

describe('the quietest bot', () => {
  const two = { markets: ['AAA:60:one', 'BBB:60:two'], liveness: { mode: 'beat' } } as const;

  test('is none where no bot is watched', () => {
    const driver = createDriver();
    driver.live(1000);
    expect(figuresOf(driver).quietest).toBeNull();
  });

  test('is none that said goodbye, which is silent on purpose, while another one is guarded for', () => {
    const driver = createDriver(two);
    beat(driver, 'one', 'two');
    driver.live(1000);
    driver.say('goodbye', 'one');
    driver.live(1000);
    beat(driver, 'two');
    expect(figuresOf(driver).quietest).toMatchObject({ bot: 'two', state: 'alive' });
  });
});
