import { describe, expect, test } from 'vitest';
import { describe as describeState } from '../../src/core/describe.ts';
import { coreSettings, marketOf, type SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, LOST } from './driver.ts';

const FOR_MS = 60_000;

/** Two markets, of which AAA has gone to another shard for a second. */
function handingOver(options: SettingsOptions = {}, forMs = FOR_MS): Driver {
  const driver = createDriver({ markets: ['AAA', 'BBB'], ...options });
  driver.tick();
  driver.live(2000);
  const handover = { elsewhere: [marketOf('AAA')], forMs };
  driver.feed({ kind: 'reload', settings: coreSettings({ ...options, markets: ['BBB'], handover }) });
  driver.live(1000);
  return driver;
}
const names = (driver: Driver) => driver.state.markets.map(({ settings }) => settings.market);
const writtenFrom = (driver: Driver, from: number, market = 'AAA') =>
  driver.writes
    .slice(from)
    .filter((write) => write.market === market)
    .map(({ timeoutSeconds }) => timeoutSeconds);
/** What is written for AAA while `forMs` go by. */
function written(driver: Driver, forMs: number): (number | null)[] {
  const from = driver.writes.length;
  driver.live(forMs);
  return writtenFrom(driver, from);
}

test('a market that went to another shard is renewed here as before until the handover is over', () => {
  const driver = handingOver();
  expect(driver.notices('reloaded').at(-1)).toMatchObject({ removed: [], moved: ['AAA'] });
  expect(written(driver, FOR_MS - 8000).length).toBeGreaterThan(7);
  expect(names(driver)).toEqual(['BBB', 'AAA']);
});

test('it is renewed once more in full and left, and never deleted, whatever the policy is', () => {
  for (const policy of ['delete', 'keep', 'handoff'] as const) {
    const driver = handingOver({ shutdown: { policy } });
    const all = written(driver, FOR_MS + 20_000);
    expect(all).not.toContain(null);
    expect(names(driver)).toEqual(['BBB']);
    expect(driver.notices('handed-over')).toEqual([{ kind: 'handed-over', markets: ['AAA'] }]);
    expect(driver.notices('removed')).toEqual([
      { kind: 'removed', market: 'AAA', how: policy === 'keep' ? 'kept' : 'handed_off' },
    ]);
  }
});

test('without a handover time it is renewed once more, when it is due', () => {
  const driver = createDriver({ markets: ['AAA', 'BBB'] });
  driver.tick();
  driver.live(2000);
  const from = driver.writes.length;
  const handover = { elsewhere: [marketOf('AAA')], forMs: 0 };
  driver.feed({ kind: 'reload', settings: coreSettings({ markets: ['BBB'], handover }) });
  driver.live(20_000);
  expect(writtenFrom(driver, from)).toEqual([60]);
  expect(names(driver)).toEqual(['BBB']);
});

test('when the handover is over the last renewals of many markets come at their usual pace, within a cadence', () => {
  const many = Array.from({ length: 100 }, (_, index) => `M${index}`);
  const budget = { requests: 130, windowMs: 10_000 };
  const driver = createDriver({ nonce: 'window', budget, markets: ['STAYS', ...many] });
  driver.live(120_000);
  const handover = { elsewhere: many.map((market) => marketOf(market)), forMs: FOR_MS };
  const options = { nonce: 'window', budget, markets: ['STAYS'], handover } as const;
  driver.feed({ kind: 'reload', settings: coreSettings(options) });
  const endMs = driver.sinceStartMs() + FOR_MS;
  driver.live(FOR_MS + 30_000);
  const last = new Map(driver.writes.map(({ market, atMs }) => [market, atMs]));
  last.delete('STAYS');
  const moments = [...last.values()].sort((one, other) => one - other);
  expect(moments[0]).toBeGreaterThan(endMs - 100);
  expect(moments.at(-1)).toBeLessThan(endMs + 12_000);
  // A tenth of them a second would be the pace.
  const inOneSecond = moments.map((atMs, place) =>
    moments.filter((other, at) => at <= place && other > atMs - 1000),
  );
  expect(Math.max(...inOneSecond.map(({ length }) => length))).toBeLessThan(100 / 4);
  expect(names(driver)).toEqual(['STAYS']);
});

test('its last renewal is tried again until it is confirmed', () => {
  const driver = handingOver({}, 1500);
  const from = driver.writes.length;
  let tries = 0;
  driver.live(30_000, 20, (write) => {
    if (write.market === 'AAA' && (tries += 1) < 3) driver.settle(write, LOST);
    else driver.apply(write);
  });
  expect(writtenFrom(driver, from)).toEqual([60, 60, 60]);
  expect(names(driver)).toEqual(['BBB']);
});

test('a market that comes back within the handover stays, and is this daemon’s own again', () => {
  const driver = handingOver();
  driver.feed({ kind: 'reload', settings: coreSettings({ markets: ['AAA', 'BBB'] }) });
  expect(written(driver, FOR_MS * 2)).not.toContain(null);
  expect(names(driver)).toEqual(['AAA', 'BBB']);
  expect(driver.market('AAA').movedUntilAwakeMs).toBeNull();
  driver.feed({ kind: 'reload', settings: coreSettings({ markets: ['BBB'] }) });
  expect(driver.takeOne()).toMatchObject({ market: 'AAA', timeoutSeconds: null });
});

test('a second reload does not prolong the handover, and takes over what changed', () => {
  const driver = handingOver();
  driver.live(FOR_MS / 2);
  const from = driver.writes.length;
  const handover = { elsewhere: [marketOf('AAA:30')], forMs: FOR_MS };
  driver.feed({ kind: 'reload', settings: coreSettings({ markets: ['BBB'], handover }) });
  driver.live(FOR_MS / 2 + 10_000);
  expect(new Set(writtenFrom(driver, from))).toEqual(new Set([30]));
  expect(names(driver)).toEqual(['BBB']);
});

test('a market that no shard has any more is deleted as the policy says', () => {
  const driver = handingOver();
  driver.feed({ kind: 'reload', settings: coreSettings({ markets: ['BBB'] }) });
  expect(driver.takeOne()).toMatchObject({ market: 'AAA', timeoutSeconds: null });
});

test('a stop during the handover hands the timer off, and deletes only those of its own', () => {
  const driver = handingOver();
  const from = driver.writes.length;
  driver.feed({ kind: 'stop', policy: 'delete', why: 'test' });
  driver.live(2000);
  expect(writtenFrom(driver, from, 'AAA')).toEqual([60]);
  expect(writtenFrom(driver, from, 'BBB')).toEqual([null]);
});

test('during the handover a dead bot is a dead bot: nothing is renewed, and nothing deleted', () => {
  const liveness = { mode: 'beat', ttlMs: 15_000 } as const;
  const driver = createDriver({ markets: ['AAA', 'BBB'], liveness });
  driver.tick();
  driver.feed({ kind: 'evidence', bot: 'bot', says: 'beat', agoMs: 0 });
  driver.live(2000);
  const handover = { elsewhere: [marketOf('AAA')], forMs: FOR_MS };
  driver.feed({ kind: 'reload', settings: coreSettings({ markets: ['BBB'], liveness, handover }) });
  driver.live(16_000);
  expect(driver.market('AAA').suspended).toBe('bot_stale');
  expect(written(driver, FOR_MS * 2)).toEqual([]);
});

test('a disarmed market that goes to another shard is not deleted from here once that one has it', () => {
  const driver = handingOver();
  driver.feed({ kind: 'operate', command: { does: 'disarm', markets: ['AAA'], forMs: 0 } });
  expect(written(driver, FOR_MS * 2)).toEqual([]);
  expect(names(driver)).toEqual(['BBB']);
});

test('the cadence reckons with a market for as long as it is guarded, and the status tells for how long that is', () => {
  const driver = handingOver();
  const seen = () => describeState(driver.state, driver.now()).markets;
  const moved = seen().find(({ market }) => market === 'AAA');
  expect(moved).toMatchObject({ state: 'armed', leaving: false, timeoutMs: 60_000 });
  expect(moved?.handedOverInMs).toBeGreaterThan(FOR_MS - 2000);
  expect(moved?.survivesMs).toBe(seen().find(({ market }) => market === 'BBB')?.survivesMs);
  driver.live(FOR_MS + 10_000);
  expect(seen().map(({ market, handedOverInMs }) => [market, handedOverInMs])).toEqual([['BBB', null]]);
});

describe('under onStale: trip', () => {
  const liveness = { mode: 'beat', ttlMs: 15_000, onStale: 'trip' } as const;
  const beat = { kind: 'evidence', bot: 'bot', says: 'beat', agoMs: 0 } as const;
  /** The markets of this daemon, and those of the other shard. */
  const reload = (driver: Driver, markets: string[], elsewhere: string[]) => {
    const handover = { elsewhere: elsewhere.map((market) => marketOf(market)), forMs: FOR_MS };
    driver.feed({ kind: 'reload', settings: coreSettings({ markets, liveness, handover }) });
  };
  function armed(): Driver {
    const driver = createDriver({ markets: ['AAA', 'BBB:60:other'], liveness });
    driver.tick();
    driver.feed(beat);
    driver.live(2000);
    return driver;
  }

  test('a bot that beats to the new shard only is not dead: its timer is left to that one', () => {
    const driver = armed();
    reload(driver, ['BBB:60:other'], ['AAA']);
    expect(new Set(written(driver, 14_000))).toEqual(new Set([60]));
    expect(written(driver, 40_000)).toEqual([]);
    expect(driver.market('AAA').suspended).toBe('bot_stale');
  });

  test('a bot that says that it failed has its orders cancelled by whomever it tells', () => {
    const driver = armed();
    reload(driver, ['BBB:60:other'], ['AAA']);
    driver.live(2000);
    driver.feed({ kind: 'evidence', bot: 'bot', says: 'fail', agoMs: 0 });
    expect(written(driver, 2000)).toEqual([5]);
  });

  test('a market that comes back from another shard waits for its bot, which nobody watched here meanwhile', () => {
    const driver = armed();
    reload(driver, ['BBB:60:other'], ['AAA']);
    for (let second = 0; second < 70; second += 5) {
      driver.feed(beat);
      driver.live(5000);
    }
    expect(names(driver)).toEqual(['BBB']);
    driver.live(20_000);
    const from = driver.writes.length;
    reload(driver, ['AAA', 'BBB:60:other'], []);
    driver.live(5000);
    expect(writtenFrom(driver, from)).toEqual([]);
    driver.feed(beat);
    driver.live(1000);
    expect(writtenFrom(driver, from)).toEqual([60]);
  });
});

test('a delete that is still tried ends when the market goes to another shard: that one renews its timer', () => {
  for (const what of ['disarm', 'goodbye'] as const) {
    const liveness = { mode: 'beat', ttlMs: 15_000 } as const;
    const driver = createDriver({ markets: ['AAA', 'BBB'], liveness });
    driver.tick();
    driver.feed({ kind: 'evidence', bot: 'bot', says: 'beat', agoMs: 0 });
    driver.live(2000);
    if (what === 'disarm')
      driver.feed({ kind: 'operate', command: { does: 'disarm', markets: ['AAA'], forMs: 0 } });
    else driver.feed({ kind: 'evidence', bot: 'bot', says: 'goodbye', agoMs: 0 });
    driver.live(1000, 20, (write) => driver.settle(write, LOST));
    const from = driver.writes.length;
    const handover = { elsewhere: [marketOf('AAA')], forMs: FOR_MS };
    driver.feed({ kind: 'reload', settings: coreSettings({ markets: ['BBB'], liveness, handover }) });
    driver.live(FOR_MS);
    expect(writtenFrom(driver, from), what).toEqual([]);
  }
});

describe('a market that is on its way out when the shards change', () => {
  const reload = (driver: Driver, markets: string[], elsewhere: string[]) => {
    const handover = { elsewhere: elsewhere.map((market) => marketOf(market)), forMs: FOR_MS };
    driver.feed({ kind: 'reload', settings: coreSettings({ markets, handover }) });
  };

  test('is left alone where it came into the configuration of another shard: nothing is written after a delete that may still be carried out', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] });
    driver.tick();
    driver.live(2000);
    reload(driver, ['BBB'], []);
    driver.live(1000, 20, (write) => driver.settle(write, LOST));
    const from = driver.writes.length;
    reload(driver, ['BBB'], ['AAA']);
    driver.live(20_000);
    expect(writtenFrom(driver, from)).toEqual([]);
    expect(names(driver)).toEqual(['BBB']);
  });

  test('is deleted where it was being handed over, and no shard has it any more', () => {
    const driver = handingOver({}, 1500);
    driver.live(7000, 20, (write) => driver.settle(write, LOST));
    expect(driver.market('AAA').leaving).toBe(true);
    const from = driver.writes.length;
    reload(driver, ['BBB'], []);
    driver.live(20_000);
    expect(writtenFrom(driver, from)).toEqual([null]);
  });
});
