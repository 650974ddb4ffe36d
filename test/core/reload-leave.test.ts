import { describe, expect, test } from 'vitest';
import { onTheirWay } from '../../src/core/state.ts';
import { createDriver, type Driver, LOST, NO_MARKET } from './driver.ts';
import { armed, idsInFlight, KEEP, removed } from './reloading.ts';

describe('a market that leaves', () => {
  test('comes last in the status, without a promise, for as long as its timer is there', () => {
    const driver = armed({ markets: ['AAA', 'CCC', 'BBB', 'DDD'] });
    driver.reload({ markets: ['BBB', 'DDD'] });
    const { markets } = driver.look();
    expect(markets.map(({ market, leaving, promise }) => [market, leaving, promise.length])).toEqual([
      ['BBB', false, 4],
      ['DDD', false, 4],
      ['AAA', true, 0],
      ['CCC', true, 0],
    ]);
  });

  test('goes with the daemon when that stops: the stop tells what became of it', () => {
    const driver = armed();
    driver.reload({ markets: ['BBB'] });
    driver.stop();
    driver.live(2000);
    expect(driver.finished()).toEqual([]);
    expect(driver.notices('deleted').map(({ market }) => market)).toEqual(['AAA', 'BBB']);
    expect(removed(driver)).toEqual([]);
  });

  test('is not said to have been deleted where no delete was answered until its time was up', () => {
    const lost = (driver: Driver) =>
      driver.live(80_000, 20, (write) =>
        write.market === 'BBB' ? driver.apply(write) : driver.settle(write, LOST),
      );
    const taken = armed();
    taken.reload({ markets: ['BBB'] });
    lost(taken);
    expect(removed(taken)).toEqual([['AAA', 'fired']]);

    const disarmed = armed();
    const disarm = () =>
      disarmed.feed({ kind: 'operate', command: { does: 'disarm', markets: ['AAA'], forMs: 0 } });
    disarm();
    lost(disarmed);
    disarm();
    disarmed.reload({ markets: ['BBB'] });
    disarmed.live(1000);
    expect(removed(disarmed)).toEqual([['AAA', 'fired']]);
  });

  test('that never had a timer is left as it is under policy keep', () => {
    const driver = createDriver({ ...KEEP, markets: ['AAA', 'BBB'] });
    driver.tick();
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.live(2000, 20, (write) =>
      write.market === 'BBB' ? driver.apply(write) : driver.settle(write, NO_MARKET),
    );
    driver.reload({ ...KEEP, markets: ['BBB'] });
    driver.live(1000);
    expect(removed(driver)).toEqual([['AAA', 'kept']]);
  });

  test('does not go before what is on its way is answered', () => {
    const driver = armed(KEEP);
    driver.live(5000, 20, () => {});
    expect(onTheirWay(driver.market('AAA')).length).toBeGreaterThan(0);
    driver.reload({ ...KEEP, markets: ['BBB'] });
    expect(removed(driver)).toEqual([]);
    for (const id of idsInFlight(driver)) driver.feed({ kind: 'settled', attempt: id, outcome: LOST });
    driver.live(1000);
    expect(removed(driver)).toEqual([['AAA', 'kept']]);
  });

  test('is not renewed where another shard takes it over while its timer is being deleted', () => {
    const driver = armed();
    driver.reload({ markets: ['BBB'] });
    driver.settle(driver.takeOne(), LOST);
    const { length } = driver.writes;
    for (const movedAway of [['AAA'], [], ['AAA']]) {
      driver.reload({ markets: ['BBB'], movedAway });
      driver.live(1000);
    }
    expect(driver.writes.slice(length).filter(({ market }) => market === 'AAA')).toEqual([]);
    expect(removed(driver)).toEqual([['AAA', 'kept']]);
  });

  test('goes at once where no timer of it can exist', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] });
    driver.tick();
    driver.apply(driver.takeOne());
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.reload({ markets: ['AAA'] });
    expect(removed(driver)).toEqual([['BBB', 'deleted']]);
  });

  test('is told of by a stop for as long as its timer can fire, through any number of reloads, and no longer', () => {
    const left = (afterMs: number) => {
      const driver = armed(KEEP);
      driver.reload({ ...KEEP, markets: ['BBB'] });
      driver.live(5000);
      driver.reload({ ...KEEP, markets: ['BBB'] });
      driver.live(afterMs);
      driver.stop('keep');
      return driver.finished()?.map(({ market }) => market);
    };
    expect(left(1000)).toEqual(['BBB', 'AAA']);
    expect(left(80_000)).toEqual(['BBB']);
  });

  test('is not remembered for ever: a hundred that came and went leave nothing behind', () => {
    const driver = armed(KEEP);
    for (let round = 0; round < 20; round += 1) {
      driver.reload({ ...KEEP, markets: ['BBB', `M${round}:5`] });
      driver.live(20_000);
    }
    expect(driver.state.leftBehind.size).toBeLessThanOrEqual(1);
  });

  test('has its timer fire when the daemon sees that of a dead bot, and nothing is said of a lapse', () => {
    const watched = { liveness: { mode: 'beat', ttlMs: 600_000 } } as const;
    const driver = createDriver({ ...watched, markets: ['AAA:10:maker', 'BBB'] });
    for (const bot of ['maker', 'bot']) driver.say('beat', bot);
    driver.live(2000);
    driver.say('fail', 'maker');
    driver.reload({ ...watched, markets: ['BBB'] });
    driver.live(30_000);
    expect(removed(driver)).toEqual([['AAA', 'kept']]);
    expect(driver.notices('lapsed')).toEqual([]);
  });
});

describe('a market that changes', () => {
  test('is not asked for before its slow probe where the exchange refuses it', () => {
    const driver = createDriver({ markets: ['AAA', 'BBB'] });
    driver.tick();
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.live(1000);
    driver.take();
    driver.reload({ markets: ['AAA:30', 'BBB'] });
    driver.live(20_000);
    expect(driver.writes.filter(({ market }) => market === 'AAA')).toHaveLength(1);
  });

  test('to a new bot keeps its full timer for as long as that one has its start-up grace', () => {
    const watched = { liveness: { mode: 'beat', onStale: 'trip' } } as const;
    const driver = createDriver({ ...watched, markets: ['AAA:60:old'] });
    driver.say('beat', 'old');
    driver.live(2000);
    const { length } = driver.writes;
    driver.reload({ ...watched, markets: ['AAA:60:new'] });
    driver.live(10_000);
    const asked = driver.writes.slice(length).map(({ timeoutSeconds }) => timeoutSeconds);
    expect(asked.length).toBeGreaterThan(1);
    expect(new Set(asked)).toEqual(new Set([60]));
  });

  test('in its timeout alone is not taken for one that has a new bot', () => {
    const watched = { liveness: { mode: 'beat', onStale: 'trip', ttlMs: 5000 } } as const;
    const driver = armed({ ...watched, markets: ['AAA:60'] });
    driver.say('fail');
    driver.live(2000);
    expect(driver.notices('tripped')).toHaveLength(1);
    driver.reload({ ...watched, markets: ['AAA:90'] });
    driver.live(5000);
    expect(driver.notices('tripped')).toHaveLength(1);
  });
});
