import { describe, expect, test } from 'vitest';
import { summarise } from '../../src/core/view.ts';
import { createStage } from '../keeper-stage.ts';
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

/** Runs the keeper through a life with trouble, and looks after every turn of the loop. */
test('the figures say of readiness and timers what the full description says, whatever happens', () => {
  const stage = createStage({
    markets: ['AAA:10:maker', 'BBB:30:maker', 'CCC:60:taker'],
    liveness: { mode: 'beat', startupGraceMs: 20_000 },
  });
  const { keeper, calls, run } = stage;
  const verdicts: boolean[] = [];
  keeper.onTurn(() => {
    const summary = keeper.summary();
    const snapshot = keeper.snapshot();
    const wanted = snapshot.markets.filter((market) => market.wanted);
    expect(summary).toMatchObject({
      authorised: snapshot.authorised,
      configured: snapshot.markets.filter(({ leaving }) => !leaving).length,
      wanted: wanted.length,
      armed: wanted.filter(({ guaranteedMs }) => guaranteedMs !== null && guaranteedMs > 0).length,
      mayFire: snapshot.markets.filter(({ firesByWallMs }) => firesByWallMs !== null).length,
    });
    if (verdicts.at(-1) !== snapshot.ready) verdicts.push(snapshot.ready);
  });
  const answer = (until: number) => {
    for (let at = 0; at < until; at += 250) {
      for (const call of calls.splice(0)) stage.apply(call);
      run(250);
    }
  };
  const both = ['maker', 'taker'] as const;
  keeper.start();
  answer(3000);
  for (const bot of both) keeper.hear(bot, 'beat', 0);
  answer(5000);
  // An outage longer than the shortest timeout.
  run(12_000);
  answer(5000);
  for (const bot of both) keeper.hear(bot, 'beat', 0);
  answer(5000);
  calls.splice(0)[0]?.settle({ kind: 'unauthorised', status: 401, detail: 'no' });
  keeper.hear('taker', 'goodbye', 0);
  answer(5000);
  void keeper.stop('delete', 'test');
  answer(10_000);
  expect(verdicts).toEqual(expect.arrayContaining([false, true]));
  expect(verdicts.length).toBeGreaterThan(3);
  expect(keeper.snapshot().phase).toBe('stopped');
});

test('the figures name the market with the least slack and the bot that was silent for longest', () => {
  const { keeper, calls, run, apply } = createStage({
    markets: ['AAA:60:maker', 'BBB:30:maker', 'CCC:60:taker'],
    liveness: { mode: 'beat' },
  });
  keeper.start();
  expect(keeper.summary()).toMatchObject({ leastSlack: null, quietest: { ageMs: null, state: 'starting' } });
  for (const call of calls.splice(0)) apply(call);
  run(100);
  for (const call of calls.splice(0)) apply(call);
  keeper.hear('taker', 'beat', 0);
  expect(keeper.summary().quietest).toEqual({ bot: 'maker', state: 'starting', ageMs: null });
  run(2000);
  keeper.hear('maker', 'beat', 0);
  run(1000);
  const { quietest, leastSlack } = keeper.summary();
  expect(quietest).toMatchObject({ bot: 'taker', state: 'alive' });
  expect(quietest?.ageMs).toBeGreaterThanOrEqual(3000);
  expect(leastSlack?.market).toBe('BBB');
});
