import { describe, expect, test } from 'vitest';
import { dueAt } from '../../src/core/due.ts';
import { createDriver, type Driver, HTTP_500, NOT_SENT, type Write } from './driver.ts';

const names = (writes: readonly Write[]) => writes.map(({ market }) => market);

/** By name: seconds that are left (below 0: has lapsed; null: was never armed), and how many it has waited for its turn. */
type Left = Readonly<Record<string, readonly [leftSeconds: number | null, waitedSeconds: number]>>;

/** The first turns of an outage in which nothing that is tried comes through. */
function turnsOf(left: Left, count: number): string[] {
  const driver = createDriver({ markets: Object.keys(left), nonce: 'window' });
  driver.live(100_000);
  const { state } = driver;
  const nowMs = driver.now().monoMs;
  for (const [name, [leftSeconds, waitedSeconds]] of Object.entries(left)) {
    const market = driver.market(name);
    dueAt(driver.state, market, nowMs - waitedSeconds * 1000);
    market.confirmedOnce = leftSeconds !== null;
    market.belief.notBeforeLifeMs = leftSeconds === null ? null : state.lifeMs + leftSeconds * 1000;
    market.belief.notBeforeAwakeMs = leftSeconds === null ? null : nowMs + leftSeconds * 1000;
    market.canaryTries = 0;
  }
  const [base] = state.bases;
  if (base === undefined) throw new Error('no address');
  base.outage = { sinceMs: nowMs, attempts: 0, nextCanaryMs: nowMs, lastCanary: null };
  const { length } = driver.writes;
  driver.tick();
  driver.live(30_000, 20, (write) => driver.settle(write, NOT_SENT));
  return names(driver.writes.slice(length, length + count));
}

describe('in an outage in which nothing can be saved any more', () => {
  test('a market that was never armed is tried before one that has lapsed, however long that one has waited', () => {
    expect(turnsOf({ GONE: [-1, 9], NEW: [null, 0] }, 2)).toEqual(['NEW', 'GONE']);
  });

  test('of those that have lapsed the one that has waited longest is tried first', () => {
    expect(turnsOf({ ONE: [-9, 1], TWO: [-1, 5], THREE: [-5, 3] }, 3)).toEqual(['TWO', 'THREE', 'ONE']);
  });
});

test('a market that has lapsed does not hurry the canary of those that can still be saved', () => {
  const driver = createDriver({ markets: ['GONE:5', 'AAA:600', 'BBB:600', 'CCC:600'], nonce: 'window' });
  driver.live(12_000, 5);
  driver.live(20_000, 5, (write) => driver.settle(write, HTTP_500));
  expect(driver.notices('outage-began')).toHaveLength(1);
  const { length } = driver.writes;
  driver.live(60_000, 5, (write) => driver.settle(write, HTTP_500));
  expect(driver.writes.length - length).toBeLessThanOrEqual(16);
});

test('two addresses that are pinged well again, beside a third that works, are tried by a market each', () => {
  const bases = ['https://one.example', 'https://two.example', 'https://three.example'];
  const driver: Driver = createDriver({
    markets: ['AAA:10', 'BBB:10', 'CCC:10', 'DDD:10'],
    bases,
    sameAccount: true,
    nonce: 'window',
  });
  const ping = (base: number, ok: boolean) =>
    driver.feed({ kind: 'pinged', base, ok, latencyMs: 5, reason: ok ? null : 'network', detail: '' });
  const thirdWorks = (write: Write) =>
    write.base === 2 ? driver.apply(write) : driver.settle(write, HTTP_500);
  driver.live(3000);
  driver.live(20_000, 20, thirdWorks);
  expect(driver.notices('outage-began').map(({ base }) => base)).toEqual([0, 1]);
  for (const base of [0, 1]) ping(base, false);
  driver.live(5000, 20, thirdWorks);
  for (const market of driver.state.markets) dueAt(driver.state, market, driver.now().monoMs + 500);
  driver.live(400, 20, thirdWorks);
  driver.take();
  for (const { outage } of driver.state.bases)
    if (outage !== null) outage.nextCanaryMs = driver.now().monoMs + 100;
  for (const one of driver.state.bases) one.pingUp = true;
  driver.wait(150);
  const writes = driver.take();
  expect(new Set(writes.map(({ base }) => base))).toEqual(new Set([0, 1, 2]));
  expect(names(writes).toSorted()).toEqual(['AAA', 'BBB', 'CCC', 'DDD']);
});

test('an address that comes back lets what failed at the other one go at once', () => {
  const bases = ['https://one.example', 'https://two.example'];
  const driver = createDriver({
    markets: ['SICK:60', 'ILL:70', 'WELL:5'],
    bases,
    sameAccount: true,
    nonce: 'window',
  });
  const secondIsWellForOne = (write: Write) =>
    write.base === 1 && write.market === 'WELL' ? driver.apply(write) : driver.settle(write, HTTP_500);
  driver.live(3000);
  driver.live(30_000, 20, secondIsWellForOne);
  expect(driver.notices('outage-began').map(({ base }) => base)).toEqual([0]);
  const ping = (ok: boolean) =>
    driver.feed({ kind: 'pinged', base: 0, ok, latencyMs: 5, reason: ok ? null : 'network', detail: '' });
  ping(false);
  driver.live(1000, 20, secondIsWellForOne);
  ping(true);
  driver.wait(30);
  const canary = driver.take().find(({ base }) => base === 0);
  if (canary === undefined) throw new Error('nobody tried the address');
  for (const market of driver.state.markets) dueAt(driver.state, market, driver.now().monoMs + 4000);
  driver.wait(300);
  driver.take();
  driver.apply(canary);
  expect(names(driver.take())).toEqual(['SICK', 'ILL']);
});
