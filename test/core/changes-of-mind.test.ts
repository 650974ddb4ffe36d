import { describe, expect, it, test } from 'vitest';
import type { CommandName } from '../../src/core/events.ts';
import { describe as describeState } from '../../src/core/view.ts';
import { coreSettings, type SettingsOptions } from './core-settings.ts';
import { BAD_KEY, createDriver, type Driver, LOST, NO_MARKET } from './driver.ts';

const TRIP = { mode: 'beat', ttlMs: 15_000, onStale: 'trip' } as const;

const say = (driver: Driver, says: 'beat' | 'fail') =>
  driver.feed({ kind: 'evidence', bot: 'bot', says, agoMs: 0 });
const operate = (driver: Driver, does: CommandName) =>
  driver.feed({ kind: 'operate', command: { does, markets: null, forMs: 0 } });
const stateOf = (driver: Driver) => describeState(driver.state, driver.now()).markets[0]?.state;
const asked = (driver: Driver) => driver.take().map(({ timeoutSeconds }) => timeoutSeconds);

function armed(options: SettingsOptions = {}): Driver {
  const driver = createDriver(options);
  say(driver, 'beat');
  driver.live(1000);
  driver.take();
  return driver;
}

/** Armed, with a renewal on its way. */
function renewing(options: SettingsOptions = {}) {
  const driver = armed(options);
  driver.wait(5500);
  return { driver, renewal: driver.takeOne() };
}

describe('a bot that fails while a stop waits to delete its timer', () => {
  function stopping() {
    const { driver, renewal } = renewing({ liveness: TRIP });
    driver.feed({ kind: 'stop', policy: 'delete', why: 'SIGTERM' });
    driver.wait(1);
    driver.tick();
    driver.wait(1);
    say(driver, 'beat');
    return { driver, renewal };
  }

  it('leaves it to fire where no delete was written', () => {
    const { driver, renewal } = stopping();
    say(driver, 'fail');
    driver.apply(renewal);
    driver.wait(1000);
    expect(asked(driver)).toEqual([]);
    expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why: 'policy' })]);
  });

  it('names it as unconfirmed where a delete may be on its way, and writes no other one', () => {
    const { driver, renewal } = stopping();
    driver.apply(renewal);
    const written = driver.takeOne();
    driver.settle(written, LOST);
    say(driver, 'fail');
    driver.wait(1000);
    expect(asked(driver)).toEqual([]);
    expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why: 'unconfirmed' })]);
  });
});

test('a stop that waits for a trip ends with its confirmation', () => {
  const driver = armed();
  operate(driver, 'trip');
  const trip = driver.takeOne();
  driver.feed({ kind: 'stop', policy: 'delete', why: 'SIGTERM' });
  expect(driver.finished()).toBeNull();
  driver.apply(trip);
  expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why: 'policy' })]);
});

test('a market that is armed again after its delete is shown as arming', () => {
  const driver = armed();
  operate(driver, 'disarm');
  driver.settle(driver.takeOne(), { kind: 'deleted' });
  operate(driver, 'arm');
  expect(stateOf(driver)).toBe('arming');
});

test('two refusals of the key with a success between them are no two in a row', () => {
  const driver = armed();
  for (const outcome of [BAD_KEY, null, BAD_KEY]) {
    driver.wait(6500);
    const [write] = driver.take();
    if (write === undefined) throw new Error('no renewal');
    if (outcome === null) driver.apply(write);
    else driver.settle(write, outcome);
  }
  expect(driver.notices('unauthorised')).toEqual([]);
});

test('a refused market that an operator arms gets its second look again', () => {
  const driver = armed();
  driver.live(20_000, 20, (write) => driver.settle(write, NO_MARKET));
  expect(stateOf(driver)).toBe('rejected');
  driver.take();
  operate(driver, 'arm');
  driver.settle(driver.takeOne(), NO_MARKET);
  expect(stateOf(driver)).not.toBe('rejected');
});

test('a trip that is taken back before it could be written is not written, whatever became of the bot', () => {
  const { driver, renewal } = renewing({ liveness: { ...TRIP, onStale: 'expire' } });
  say(driver, 'fail');
  operate(driver, 'trip');
  operate(driver, 'arm');
  driver.apply(renewal);
  driver.live(5000);
  expect(driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === 5)).toEqual([]);
});

test("a dead bot's trip goes on when its market is given back into guard", () => {
  const { driver, renewal } = renewing({ liveness: TRIP });
  say(driver, 'fail');
  operate(driver, 'disarm');
  driver.apply(renewal);
  expect(asked(driver)).toEqual([]);
  operate(driver, 'arm');
  expect(asked(driver)).toEqual([5]);
});

test('a timer that a reload left behind is named by the stop, until it has surely fired', () => {
  const leave = { markets: ['AAA', 'BBB'], shutdown: { policy: 'keep' } } as const;
  for (const [waitMs, named] of [
    [20_000, ['AAA']],
    [80_000, []],
  ] as const) {
    const driver = createDriver(leave);
    driver.arm();
    driver.feed({ kind: 'reload', settings: coreSettings({ ...leave, markets: ['BBB'] }) });
    driver.live(waitMs);
    driver.feed({ kind: 'stop', policy: 'delete', why: 'SIGTERM' });
    driver.live(1000);
    const left = driver.finished()?.filter(({ market }) => market === 'AAA');
    expect(left?.map(({ market }) => market)).toEqual(named);
    // It was armed at the very start.
    const firesMs = (left?.[0]?.firesByWallMs ?? 0) - (driver.now().wallMs - driver.sinceStartMs());
    if (named.length > 0) expect(firesMs).toBeCloseTo(61_000 + 12, 0);
  }
});

test('a request is given up once, also when the end of a stop finds it', () => {
  const driver = armed({ shutdown: { budgetMs: 4000 } });
  driver.feed({ kind: 'stop', policy: 'delete', why: 'SIGTERM' });
  driver.wait(6000);
  const aborted = driver.effects.flatMap((effect) => (effect.kind === 'abort' ? [effect.attempt] : []));
  expect(aborted.length).toBeGreaterThan(0);
  expect(new Set(aborted).size).toBe(aborted.length);
  expect(driver.finished()).toHaveLength(1);
});

test('a market that comes back before it was gone counts as added', () => {
  const driver = armed({ markets: ['AAA', 'BBB'] });
  driver.feed({ kind: 'reload', settings: coreSettings({ markets: ['BBB'] }) });
  driver.settle(driver.takeOne(), LOST);
  driver.feed({ kind: 'reload', settings: coreSettings({ markets: ['AAA', 'BBB'] }) });
  expect(driver.notices('reloaded').map(({ added, removed }) => [added, removed])).toEqual([
    [[], ['AAA']],
    [['AAA'], []],
  ]);
});
