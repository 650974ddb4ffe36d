import { expect, test } from 'vitest';
import { createDriver, NOT_SENT } from './driver.ts';

/** New markets of 60 s, as many connections as anybody needs, and a key that was accepted before. */
function fresh(count: number, requests: number, limiter?: 'open' | 'manual') {
  const driver = createDriver(
    {
      markets: Array.from({ length: count }, (_, index) => `M${index}:60`),
      nonce: 'window',
      connections: 1000,
      budget: { requests, windowMs: 10_000 },
    },
    limiter,
  );
  driver.state.authorisedOnce = true;
  driver.tick();
  return driver;
}

test('what has time goes at once as far as the budget is free of planned renewals, and the rest in turns', () => {
  const requests = 200;
  // A renewal of each every 6 s: five sixths of the budget.
  const driver = fresh(95, requests);
  const { length } = driver.writes;
  expect(length).toBeGreaterThan(requests * 0.15);
  expect(length).toBeLessThan(requests * 0.2);
  // From then on as fast as the whole budget allows, 20 a second.
  driver.live(2000);
  const turns = driver.writes.length - length;
  expect(turns).toBeGreaterThanOrEqual(38);
  expect(turns).toBeLessThanOrEqual(42);
  const moments = driver.writes.slice(length).map(({ atMs }) => atMs);
  expect(Math.max(...moments.slice(1).map((atMs, place) => atMs - (moments[place] ?? 0)))).toBeLessThan(100);
});

test('the limiter is asked once for all that may go at once', () => {
  const { length } = fresh(95, 200).writes;
  const asked = fresh(95, 200, 'manual').effects.filter(({ kind }) => kind === 'acquire');
  expect(asked).toMatchObject([{ permits: length }]);
});

test('one goes at a time where the planned renewals need the whole budget, as evenly as it allows', () => {
  const driver = fresh(30, 9);
  driver.live(5000);
  const moments = driver.writes.map(({ atMs }) => atMs);
  expect(moments).toHaveLength(5);
  for (const [place, atMs] of moments.entries()) expect(Math.abs(atMs - place * 1115)).toBeLessThan(60);
});

test('whoever waited for its turn keeps it, and is renewed one period later', () => {
  const driver = fresh(15, 10);
  driver.live(55_000);
  const { periodMs } = driver.market('M0');
  for (const { settings } of driver.state.markets) {
    const moments = driver.writes.filter(({ market }) => market === settings.market).map(({ atMs }) => atMs);
    const gaps = moments.slice(1).map((atMs, place) => atMs - (moments[place] ?? 0));
    expect(gaps.length).toBeGreaterThanOrEqual(2);
    for (const gapMs of gaps) expect(Math.abs(gapMs / periodMs - 1)).toBeLessThan(0.1);
  }
});

test('a budget that becomes smaller holds for what the limiter was asked for before: one goes at a time', () => {
  const driver = fresh(15, 400, 'manual');
  driver.feed({ kind: 'budget', budget: { requests: 10, windowMs: 10_000 } });
  driver.feed({ kind: 'granted', permits: 15, how: 'in-turn' });
  expect(driver.take()).toHaveLength(1);
});

test('whoever waited for its turn once keeps that one, also after a renewal that failed', () => {
  const driver = fresh(95, 200);
  driver.live(9000);
  let failed = false;
  driver.live(18_000, 20, (write) => {
    if (write.market !== 'M94' || failed) driver.apply(write);
    else {
      failed = true;
      driver.settle(write, NOT_SENT);
    }
  });
  const moments = driver.writes.filter(({ market }) => market === 'M94').map(({ atMs }) => atMs);
  const { periodMs } = driver.market('M94');
  const [first = Number.NaN] = moments;
  expect(first).toBeGreaterThan(1000);
  const periods = ((moments.at(-1) ?? Number.NaN) - first) / periodMs;
  expect(periods).toBeGreaterThan(2);
  expect(Math.abs(periods - Math.round(periods))).toBeLessThan(0.02);
});

test('a budget that is told again and again changes nothing', () => {
  const driver = fresh(95, 200, 'manual');
  const [asked] = driver.effects.filter((effect) => effect.kind === 'acquire');
  for (let again = 0; again < 5; again += 1)
    driver.feed({ kind: 'budget', budget: { requests: 200, windowMs: 10_000 } });
  driver.feed({ kind: 'granted', permits: asked?.permits ?? 0, how: 'in-turn' });
  expect(driver.take()).toHaveLength(asked?.permits ?? 0);
});

test('what is to be cut or deleted waits for no turn', () => {
  const driver = createDriver({
    markets: ['DEAD:60:dead', ...Array.from({ length: 14 }, (_, index) => `M${index}:60`)],
    budget: { requests: 10, windowMs: 10_000 },
    liveness: { mode: 'beat', ttlMs: 60_000, onStale: 'trip' },
  });
  for (const bot of ['dead', 'bot']) driver.feed({ kind: 'evidence', bot, says: 'beat', agoMs: 0 });
  driver.live(2500);
  const { length } = driver.writes;
  driver.feed({ kind: 'evidence', bot: 'dead', says: 'fail', agoMs: 0 });
  driver.live(50);
  driver.feed({ kind: 'operate', command: { does: 'disarm', markets: ['M0'], forMs: 0 } });
  driver.live(50);
  expect(driver.writes.slice(length).map(({ market, timeoutSeconds }) => [market, timeoutSeconds])).toEqual([
    ['DEAD', 5],
    ['M0', null],
  ]);
});
