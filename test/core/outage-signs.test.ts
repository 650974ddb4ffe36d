import { expect, test } from 'vitest';
import type { SettingsOptions } from './core-settings.ts';
import { createDriver, type Driver, HTTP_500, NOT_SENT, ping } from './driver.ts';

/** Three armed markets whose next renewals are written and unanswered. */
function three(options: SettingsOptions = {}) {
  const driver = createDriver({ markets: ['AAA:10', 'BBB:10', 'CCC:10'], nonce: 'window', ...options });
  driver.arm();
  driver.wait(1300);
  return { driver, all: driver.take() };
}
const began = (driver: Driver) => driver.notices('outage-began').length;
const isOut = (driver: Driver) => driver.state.bases[0]?.outage !== null;

test('an address that says what is wrong with a request is well: the outage ends', () => {
  const { driver, all } = three();
  for (const write of all) driver.settle(write, HTTP_500);
  driver.wait(2500);
  const [canary] = driver.take();
  if (canary === undefined) throw new Error('a canary');
  const wrong = { kind: 'transient', reason: 'validation', detail: 'code 5' } as const;
  driver.settle(canary, { ...wrong, maybeApplied: true });
  expect(isOut(driver)).toBe(true);
  driver.wait(5000);
  driver.settle(driver.take()[0] ?? canary, { ...wrong, maybeApplied: false });
  expect(isOut(driver)).toBe(false);
});

test('one market that fails at the start, before anything was answered, is no outage', () => {
  const driver = createDriver({ markets: ['AAA'] });
  driver.live(20_000, 20, (write) => driver.settle(write, NOT_SENT));
  expect(driver.writes.length).toBeGreaterThan(10);
  expect(began(driver)).toBe(0);
});

test('two failures at the start are no outage yet, three of more than one market are', () => {
  const driver = createDriver({ markets: ['AAA', 'BBB'] });
  driver.tick();
  driver.settle(driver.takeOne(), NOT_SENT);
  driver.settle(driver.takeOne(), NOT_SENT);
  expect(began(driver)).toBe(0);
  driver.live(1500, 20, (write) => driver.settle(write, NOT_SENT));
  expect(began(driver)).toBe(1);
});

test('a market that fails alone is no outage because another one failed before the last answer', () => {
  const driver = createDriver({ markets: ['AAA:30', 'BBB:30'], nonce: 'window' });
  driver.arm();
  let answered = 0;
  driver.live(30_000, 20, (write) => {
    const { market } = write;
    // One failure of AAA, one answer to it, and from then on BBB alone fails, and nobody else is answered.
    if (market === 'AAA' && write.atMs >= 3000 && answered < 2) {
      answered += 1;
      if (answered === 1) driver.settle(write, NOT_SENT);
      else driver.apply(write);
    } else if (market === 'BBB' && answered === 2) driver.settle(write, NOT_SENT);
    else if (answered < 2) driver.apply(write);
  });
  expect(answered).toBe(2);
  expect(driver.notices('attempt-failed').filter(({ market }) => market === 'BBB').length).toBeGreaterThan(2);
  expect(began(driver)).toBe(0);
});

test('silence is an outage also where the first and the last of three requests are of one market', () => {
  const driver = createDriver({ markets: ['AAA:10', 'BBB:600'], nonce: 'window' });
  driver.live(4900);
  const { length } = driver.writes;
  while (driver.writes.length < length + 3) driver.wait(5);
  driver.wait(550);
  expect(driver.writes.slice(length, length + 3).map(({ market }) => market)).toEqual(['AAA', 'BBB', 'AAA']);
  expect(began(driver)).toBe(1);
});

test('a failed ping is followed by the next one half a second later, and not at once', () => {
  const { driver } = three();
  const pings = () => driver.effects.filter(({ kind }) => kind === 'ping').length;
  const before = pings();
  ping(driver, false);
  expect(pings()).toBe(before);
  driver.wait(510);
  expect(pings()).toBe(before + 1);
});

test('the second address is asked nothing but pings, canaries neither, where it is another account', () => {
  const { driver } = three({ bases: ['https://one.example', 'https://two.example'] });
  driver.live(30_000, 20, (write) => driver.settle(write, NOT_SENT));
  expect(began(driver)).toBe(1);
  expect(new Set(driver.writes.map(({ base }) => base))).toEqual(new Set([0]));
});
