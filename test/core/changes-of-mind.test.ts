import { describe, expect, it, test } from 'vitest';
import { type SettingsOptions } from './core-settings.ts';
import { BAD_KEY, createDriver, type Driver, LOST, NO_MARKET } from './driver.ts';

const TRIP = { mode: 'beat', ttlMs: 15_000, onStale: 'trip' } as const;

const asked = (driver: Driver) => driver.take().map(({ timeoutSeconds }) => timeoutSeconds);

function armed(options: SettingsOptions = {}): Driver {
  const driver = createDriver(options);
  driver.say('beat');
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
    driver.stop();
    driver.wait(1);
    driver.tick();
    driver.wait(1);
    driver.say('beat');
    return { driver, renewal };
  }

  it('leaves it to fire where no delete was written', () => {
    const { driver, renewal } = stopping();
    driver.say('fail');
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
    driver.say('fail');
    driver.wait(1000);
    expect(asked(driver)).toEqual([]);
    expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why: 'unconfirmed' })]);
  });
});

test('a stop that waits for a trip ends with its confirmation', () => {
  const driver = armed();
  driver.operate('trip');
  const trip = driver.takeOne();
  driver.stop();
  expect(driver.finished()).toBeNull();
  driver.apply(trip);
  expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why: 'policy' })]);
});

test('a market that is armed again after its delete is shown as arming', () => {
  const driver = armed();
  driver.operate('disarm');
  driver.settle(driver.takeOne(), { kind: 'deleted' });
  driver.operate('arm');
  expect(driver.statusOf()?.state).toBe('arming');
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
  expect(driver.statusOf()?.state).toBe('rejected');
  driver.take();
  driver.operate('arm');
  driver.settle(driver.takeOne(), NO_MARKET);
  expect(driver.statusOf()?.state).not.toBe('rejected');
});

test('a trip that is taken back before it could be written is not written, whatever became of the bot', () => {
  const { driver, renewal } = renewing({ liveness: { ...TRIP, onStale: 'expire' } });
  driver.say('fail');
  driver.operate('trip');
  driver.operate('arm');
  driver.apply(renewal);
  driver.live(5000);
  expect(driver.writes.filter(({ timeoutSeconds }) => timeoutSeconds === 5)).toEqual([]);
});

test("a dead bot's trip goes on when its market is given back into guard", () => {
  const { driver, renewal } = renewing({ liveness: TRIP });
  driver.say('fail');
  driver.operate('disarm');
  driver.apply(renewal);
  expect(asked(driver)).toEqual([]);
  driver.operate('arm');
  expect(asked(driver)).toEqual([5]);
});

test('a request is given up once, also when the end of a stop finds it', () => {
  const driver = armed({ shutdown: { budgetMs: 4000 } });
  driver.stop();
  driver.wait(6000);
  const aborted = driver.effects.flatMap((effect) => (effect.kind === 'abort' ? [effect.attempt] : []));
  expect(aborted.length).toBeGreaterThan(0);
  expect(new Set(aborted).size).toBe(aborted.length);
  expect(driver.finished()).toHaveLength(1);
});
