import { describe, expect, test } from 'vitest';
import { assertBelief, assertMayFollow } from '../../src/core/invariants.ts';
import { roomInWindow } from '../../src/core/rate.ts';
import type { Attempt } from '../../src/core/state.ts';
import { createDriver, type Driver } from './driver.ts';

/** The only request of the market that is on its way. */
function inFlight(driver: Driver): Attempt {
  const [attempt] = driver.market('AAA').inFlight;
  if (attempt === undefined) throw new Error('nothing is on its way');
  return attempt;
}

/** A market that is armed, with its next renewal on its way. */
function renewing(): Driver {
  const driver = createDriver({ budget: { requests: 50, windowMs: 10_000 } });
  driver.arm();
  driver.wait(6000);
  return driver;
}

function alsoInFlight(driver: Driver, purpose: Attempt['purpose']): void {
  driver.market('AAA').inFlight.push({ ...inFlight(driver), id: 999, purpose });
}

describe('the core throws, which ends the process, when', () => {
  test('a timer is believed to be armed at a moment when it must have fired', () => {
    const driver = renewing();
    const [write] = driver.take();
    if (write === undefined) throw new Error('no renewal');
    const { belief } = driver.market('AAA');
    belief.notBeforeLifeMs = driver.state.lifeMs + 600_000;
    expect(() => driver.settle(write, { kind: 'nonce', detail: 'stale' })).toThrow(
      /^AAA is believed armed for 600000 ms more, and to have fired within \d+/,
    );
  });

  test('a timer is believed to be armed where none can be', () => {
    const driver = renewing();
    const market = driver.market('AAA');
    market.belief.notAfterMs = null;
    expect(() => assertBelief(driver.state, market)).toThrow('AAA is believed armed for');
    market.belief.notAfterMs = driver.state.now.monoMs + 1000;
    expect(() => assertBelief(driver.state, market)).toThrow('to have fired within 1000 ms');
    market.belief.notBeforeLifeMs = driver.state.lifeMs + 1000;
    expect(() => assertBelief(driver.state, market)).not.toThrow();
  });

  test('a renewal is written for a market that is out of guard', () => {
    const driver = renewing();
    driver.market('AAA').exit = { want: 'keep', done: false };
    expect(() => assertMayFollow(driver.state, inFlight(driver))).toThrow(
      'AAA is renewed although it is guarded no longer',
    );
  });

  test('the last renewal of a handoff is written a second time', () => {
    const driver = renewing();
    const market = driver.market('AAA');
    market.exit = { want: 'handoff', done: false };
    expect(() => assertMayFollow(driver.state, inFlight(driver))).not.toThrow();
    market.exit = { want: 'handoff', done: true };
    expect(() => assertMayFollow(driver.state, inFlight(driver))).toThrow('guarded no longer');
  });

  test.each(['delete', 'trip'] as const)('a renewal is written while a %s is on its way', (purpose) => {
    const driver = renewing();
    const renewal = inFlight(driver);
    alsoInFlight(driver, 'renew');
    expect(() => assertMayFollow(driver.state, renewal)).not.toThrow();
    alsoInFlight(driver, purpose);
    expect(() => assertMayFollow(driver.state, renewal)).toThrow(
      'AAA is renewed beside what ends or shortens its timer',
    );
  });

  test('a timer is cut short while a renewal is on its way', () => {
    const driver = renewing();
    const trip: Attempt = { ...inFlight(driver), id: 1000, purpose: 'trip' };
    expect(() => assertMayFollow(driver.state, trip)).toThrow('AAA is cut short beside another request');
    driver.market('AAA').inFlight.length = 0;
    expect(() => assertMayFollow(driver.state, trip)).not.toThrow();
  });

  test('a delete is written that nobody asked for, or that is done', () => {
    const driver = renewing();
    const market = driver.market('AAA');
    const deletion: Attempt = { ...inFlight(driver), purpose: 'delete' };
    const asked = 'AAA is deleted, and nobody asked for it';
    expect(() => assertMayFollow(driver.state, deletion)).toThrow(asked);
    market.exit = { want: 'keep', done: false };
    expect(() => assertMayFollow(driver.state, deletion)).toThrow(asked);
    market.exit = { want: 'delete', done: true };
    expect(() => assertMayFollow(driver.state, deletion)).toThrow(asked);
    market.exit = { want: 'delete', done: false };
    expect(() => assertMayFollow(driver.state, deletion)).not.toThrow();
  });

  test('a delete is written beside a renewal, and not beside another delete', () => {
    const driver = renewing();
    driver.market('AAA').exit = { want: 'delete', done: false };
    const deletion: Attempt = { ...inFlight(driver), id: 1000, purpose: 'delete' };
    expect(() => assertMayFollow(driver.state, deletion)).toThrow(
      'AAA is deleted beside a renewal in flight',
    );
    driver.market('AAA').inFlight.splice(0, 1, { ...deletion, id: 999 });
    expect(() => assertMayFollow(driver.state, deletion)).not.toThrow();
  });

  test('one request more leaves than the budget allows', () => {
    const driver = renewing();
    const now = driver.state.now.monoMs;
    driver.state.settled.push(...Array.from({ length: roomInWindow(driver.state) }, () => now));
    expect(() => assertMayFollow(driver.state, inFlight(driver))).not.toThrow();
    driver.state.settled.push(now);
    expect(() => assertMayFollow(driver.state, inFlight(driver))).toThrow(
      'AAA is one request more than the budget allows',
    );
  });
});
