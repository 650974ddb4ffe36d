import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dueAt } from '../../src/core/due.ts';
import type { CoreEvent } from '../../src/core/events.ts';
import type { SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, LOST } from './driver.ts';

const many = (count: number, timeoutSeconds = 60) =>
  Array.from({ length: count }, (_, index) => `M${index}:${timeoutSeconds}`);
const asked = (driver: Driver) => driver.effects.filter((effect) => effect.kind === 'acquire');
const granted = (permits: number, how: 'in-turn' | 'overdue' = 'in-turn'): CoreEvent => ({
  kind: 'granted',
  permits,
  how,
});

/** A core whose key was accepted before, and whose limiter answers only when a test says so. */
function limited(options: SettingsOptions = {}) {
  const driver = createDriver({ markets: many(3), nonce: 'window', ...options }, 'manual');
  driver.state.authorisedOnce = true;
  return driver;
}

describe('permits', () => {
  test('come before anything is written', () => {
    const driver = limited();
    driver.tick();
    expect(driver.writes).toEqual([]);
    expect(asked(driver)).toEqual([{ kind: 'acquire', permits: 3, withinMs: 250 }]);
    driver.feed(granted(3));
    expect(driver.writes).toHaveLength(3);
  });

  test('are asked for once, however long the limiter takes', () => {
    const driver = limited();
    driver.live(5000);
    expect(asked(driver)).toHaveLength(1);
    expect(driver.writes).toEqual([]);
  });

  test('that are fewer than what is due let the most urgent go, and the rest is asked for', () => {
    const driver = limited();
    driver.tick();
    driver.feed(granted(1));
    expect(driver.writes.map(({ market }) => market)).toEqual(['M0']);
    expect(asked(driver).at(-1)).toMatchObject({ permits: 2 });
  });

  test('are asked for while a request is on its way, so that the next one follows its answer in the same turn', () => {
    const driver = limited({ nonce: 'increasing' });
    driver.tick();
    driver.feed(granted(1));
    const first = driver.takeOne();
    expect(asked(driver)).toHaveLength(2);
    driver.feed(granted(1));
    driver.apply(first);
    expect(driver.take()).toHaveLength(1);
  });

  test('that were not needed are not saved up', () => {
    const driver = limited({ markets: ['AAA:30'] });
    driver.tick();
    driver.feed(granted(3));
    driver.apply(driver.takeOne());
    driver.wait(3040);
    expect(driver.take()).toEqual([]);
    expect(asked(driver)).toHaveLength(2);
  });

  test('of before a stall are not used after it', () => {
    const driver = limited({ markets: ['AAA:60'] });
    driver.tick();
    driver.feed(granted(2));
    driver.take();
    driver.move({ monoMs: 10, bootMs: 500, wallMs: 500 });
    driver.tick();
    driver.wait(600);
    expect(driver.take()).toEqual([]);
    expect(asked(driver)).toHaveLength(2);
  });

  test('that came past the limiter are reported, and used all the same', () => {
    const driver = limited();
    driver.tick();
    driver.feed(granted(3, 'overdue'));
    expect(driver.notices('limiter-bypassed')).toEqual([{ kind: 'limiter-bypassed', permits: 3 }]);
    expect(driver.writes).toHaveLength(3);
  });

  test.each([
    [50_000, 250],
    [1600, 200],
    [800, 100],
    [100, 25],
    [0, 250],
    [-500, 250],
  ])('with %i ms of slack are waited for no longer than %i ms', (slackMs, withinMs) => {
    const driver = limited({ markets: ['AAA:60'] });
    driver.tick();
    driver.feed(granted(1));
    driver.apply(driver.takeOne());
    driver.wait(2000);
    const market = driver.market('AAA');
    market.belief.notBeforeLifeMs = driver.state.lifeMs + slackMs;
    dueAt(driver.state, market, driver.state.now.monoMs);
    const before = driver.state.lifeMs;
    driver.tick();
    expect(driver.state.lifeMs - before).toBeLessThan(250);
    const agedMs = driver.state.lifeMs - before;
    const expected = slackMs - agedMs <= 0 ? 250 : Math.min(250, Math.max(25, (slackMs - agedMs) / 8));
    expect(asked(driver)).toHaveLength(2);
    expect(asked(driver)[1]?.withinMs).toBeCloseTo(expected, 6);
    expect(asked(driver)[1]?.withinMs).toBeLessThanOrEqual(withinMs);
  });

  test('are asked for on behalf of the most urgent market', () => {
    const driver = limited({ markets: ['AAA:60', 'BBB:60'] });
    driver.tick();
    driver.feed(granted(2));
    for (const write of driver.take()) driver.apply(write, { timeout: write.market === 'BBB' ? 3 : 60 });
    driver.wait(1500);
    expect(asked(driver).at(-1)?.withinMs).toBeLessThan(150);
  });
});

describe('requests one after the other, as rising nonces want them', () => {
  const serial = (options: SettingsOptions = {}) => createDriver({ markets: many(4), ...options });

  test('wait for the answer to the one before', () => {
    const driver = serial();
    driver.tick();
    expect(driver.take()).toHaveLength(1);
    driver.wait(400);
    expect(driver.take()).toEqual([]);
  });

  test('follow it in the same turn', () => {
    const driver = serial();
    driver.tick();
    driver.apply(driver.takeOne());
    expect(driver.takeOne().market).toBe('M1');
  });

  test('do not wait longer than half a second where no round trip was measured yet', () => {
    const driver = serial();
    driver.tick();
    driver.take();
    driver.wait(510);
    expect(driver.take().map(({ market }) => market)).toContain('M1');
  });

  test.each([
    [20, 130],
    [5, 100],
    [60, 290],
    [300, 500],
  ])('at a round trip of %i ms do not wait longer than %i ms', (roundTripMs, patienceMs) => {
    const driver = serial({ markets: ['AAA:60', 'BBB:60'] });
    driver.live(20_000, roundTripMs);
    // A short sleep makes both due at once; nothing is answered any more.
    driver.move({ monoMs: 10, bootMs: 400, wallMs: 400 });
    const { length } = driver.writes;
    driver.tick();
    driver.wait(1000);
    const [first, second] = driver.writes.slice(length);
    const waitedMs = (second?.atMs ?? 0) - (first?.atMs ?? 0);
    expect(waitedMs).toBeGreaterThanOrEqual(patienceMs - 1);
    expect(waitedMs).toBeLessThanOrEqual(patienceMs + 2);
  });

  test('over a connection of their own wait for nobody', () => {
    const driver = serial({ markets: ['AAA:60', 'BBB:60'] });
    driver.arm();
    driver.wait(3100);
    const hung = driver.takeOne();
    driver.wait(3000);
    driver.settle(hung, LOST);
    driver.take();
    driver.wait(4000);
    const detached = driver.writes.filter(({ fresh }) => fresh);
    expect(detached.length).toBeGreaterThan(0);
  });
});

describe('requests in a nonce window', () => {
  test('go together, as many as there are connections', () => {
    const driver = createDriver({ markets: many(10), nonce: 'window', connections: 4 });
    driver.tick();
    driver.apply(driver.takeOne());
    const [second, ...more] = driver.take();
    expect(more).toHaveLength(3);
    if (second !== undefined) driver.apply(second);
    expect(driver.take()).toHaveLength(1);
  });
});

describe('the rate', () => {
  const budget = { requests: 50, windowMs: 10_000 };

  test('is held without asking the limiter for what there is no room for', () => {
    const driver = createDriver({ markets: many(80, 600), nonce: 'window', budget });
    driver.tick();
    driver.apply(driver.takeOne());
    driver.live(5000);
    const permits = asked(driver).reduce((sum, { permits: some }) => sum + some, 0);
    expect(driver.writes.length).toBeGreaterThan(10);
    expect(permits - driver.writes.length).toBeLessThanOrEqual(1);
  });

  test('goes on as soon as the window has room, until all are armed', () => {
    const driver = createDriver({ markets: many(60, 600), nonce: 'window', budget });
    driver.live(60_000);
    expect(driver.notices('all-armed')).toHaveLength(1);
    expect(driver.notices('all-armed')[0]?.sinceStartMs).toBeGreaterThan(10_000);
    expect(driver.notices('all-armed')[0]?.sinceStartMs).toBeLessThan(60_000);
  });

  test('leaves room for the deletes of a stop, whatever renewals would like to do', () => {
    const driver = createDriver({
      markets: many(300, 600),
      nonce: 'window',
      budget: { requests: 200, windowMs: 10_000 },
    });
    driver.live(3000);
    driver.feed({ kind: 'stop', policy: 'delete', why: 'SIGTERM' });
    expect(
      driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === null).length,
    ).toBeGreaterThanOrEqual(3);
  });

  test('is the budget at most, in every sliding window, whatever happens', () => {
    const chance = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 5, max: 60 }),
        fc.constantFrom('window' as const, 'increasing' as const),
        fc.infiniteStream(chance),
        (count, requests, nonce, chances) => {
          const windowMs = 2000;
          const driver = createDriver({ markets: many(count, 5), nonce, budget: { requests, windowMs } });
          const draw = () => chances.next().value ?? 0;
          for (let round = 0; round < 12; round += 1) {
            driver.live(700, 1 + 50 * draw(), (write) => {
              if (draw() < 0.5) driver.apply(write);
              else driver.settle(write, LOST);
            });
          }
          driver.feed({ kind: 'stop', policy: 'delete', why: 'SIGTERM' });
          driver.live(2000, 5, (write) => driver.settle(write, LOST));
          const moments = driver.writes.map(({ atMs }) => atMs);
          const tooClose = moments.filter(
            (atMs, place) => atMs - (moments[place - requests] ?? -windowMs) < windowMs,
          );
          expect(tooClose).toEqual([]);
        },
      ),
      { numRuns: 40 },
    );
  });
});
