import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createNonceSource, createServerClock } from '../../src/exchange/sign.ts';
import { createHandClock } from './servers.ts';

const WALL_MS = 1_700_000_000_000;
const DAY_MS = 86_400_000;

/** Rising nonces at a clock that stands still unless it is told otherwise. */
function increasing() {
  const clock = createHandClock(WALL_MS);
  const nonces = createNonceSource('increasing', createServerClock());
  return {
    clock,
    next: () => nonces.next(clock.now()),
    accepted: (nonce: string) => nonces.accepted(nonce),
    refused: (nonce: string, serverMs: number | null = null) => nonces.refused(nonce, serverMs, clock.now()),
  };
}

test('nonces keep increasing whatever anybody does to the wall clock and whatever is refused', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('step' as const), byMs: fc.integer({ min: -DAY_MS, max: DAY_MS }) }),
    fc.record({ kind: fc.constant('pass' as const), byMs: fc.nat(5_000) }),
    fc.record({ kind: fc.constant('refused' as const), byMs: fc.integer({ min: -DAY_MS, max: DAY_MS }) }),
    fc.record({ kind: fc.constant('accepted' as const), byMs: fc.constant(0) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { clock, next, accepted, refused } = increasing();
      let last = '0';
      for (const { kind, byMs } of steps) {
        if (kind === 'step') clock.stepWall(byMs);
        if (kind === 'pass') clock.advance(byMs);
        if (kind === 'refused') refused(last, clock.now().wallMs + byMs);
        if (kind === 'accepted') accepted(last);
        const nonce = next();
        expect(BigInt(nonce)).toBeGreaterThan(BigInt(last));
        last = nonce;
      }
    }),
  );
});

test('a refusal makes the next nonce jump to the clock of the exchange where that is ahead', () => {
  const { next, refused } = increasing();
  refused(next(), WALL_MS + 7_200_000);
  const nonce = Number(next());
  expect(nonce).toBeGreaterThan(WALL_MS + 7_200_000);
  expect(nonce).toBeLessThanOrEqual(WALL_MS + 7_201_001);
});

test('refusals in a row jump 1 s, 1 min, 1 h and further ahead, and never more than 64 days ahead of the time', () => {
  const { next, refused } = increasing();
  const ahead = Array.from({ length: 60 }, () => {
    refused(next());
    return Number(next()) - WALL_MS;
  });
  expect(ahead[0]).toBeGreaterThanOrEqual(1_000);
  expect(ahead[1]).toBeGreaterThanOrEqual(61_000);
  expect(ahead[2]).toBeGreaterThanOrEqual(3_661_000);
  expect(ahead[2]).toBeLessThan(3_662_000);
  expect(ahead[7]).toBeGreaterThanOrEqual(64 * DAY_MS);
  expect(Math.max(...ahead)).toBeLessThan(64 * DAY_MS + 1_000);
});

test('refusals without end after an acceptance reach as far as those before any', () => {
  const { next, accepted, refused } = increasing();
  accepted(next());
  for (let refusal = 0; refusal < 7; refusal += 1) refused(next());
  expect(Number(next()) - WALL_MS).toBeGreaterThan(3_600_000);
});

test('an acceptance ends the row: the next refusal starts again with the small jump', () => {
  const { next, accepted, refused } = increasing();
  for (let refusal = 0; refusal < 3; refusal += 1) refused(next());
  const good = next();
  accepted(good);
  refused(next());
  expect(Number(next()) - Number(good)).toBeLessThan(2_000);
});

test('a request that was overtaken by a later one and refused for it does not make the nonces jump', () => {
  const { next, accepted, refused } = increasing();
  const slow = next();
  const quick = next();
  accepted(quick);
  refused(slow);
  expect(Number(next())).toBe(Number(quick) + 1);
});

test('several requests in flight that are refused for one reason make one jump', () => {
  const { next, refused } = increasing();
  const inFlight = [next(), next(), next()];
  for (const nonce of inFlight.reverse()) refused(nonce);
  expect(Number(next())).toBeLessThan(WALL_MS + 2_000);
});

function windowOf(aheadMs = 0) {
  const clock = createHandClock(WALL_MS);
  const serverClock = createServerClock();
  serverClock.observe(Math.floor((WALL_MS + aheadMs) / 1000), clock.now(), clock.now());
  return { clock, serverClock, nonces: createNonceSource('window', serverClock) };
}

test('window nonces follow the exchange, stay unique, and are right after the wall clock was set', () => {
  const { clock, nonces } = windowOf(1_800_000);
  const aheadMs = WALL_MS + 1_800_000 - clock.now().bootMs;
  const seen = new Set<string>();
  for (let request = 0; request < 200; request += 1) {
    if (request === 100) clock.stepWall(-3_600_000);
    const nonce = nonces.next(clock.now());
    expect(Math.abs(Number(nonce) - clock.now().bootMs - aheadMs)).toBeLessThan(2_000);
    seen.add(nonce);
    if (request % 3 === 0) clock.advance(40);
  }
  expect(seen.size).toBe(200);
});

test('a burst of 7,500 requests at one moment gets as many window nonces, none further off than the exchange allows', () => {
  const { clock, serverClock, nonces } = windowOf();
  const burst = () => Array.from({ length: 7_500 }, () => Number(nonces.next(clock.now())));
  const first = burst();
  clock.advance(10_000);
  const second = burst();
  expect(new Set([...first, ...second]).size).toBe(15_000);
  for (const nonce of second) {
    expect(Math.abs(nonce - serverClock.estimateMs(clock.now()))).toBeLessThanOrEqual(4_001);
  }
});

test('without any answer the estimate is the local wall clock', () => {
  const clock = createHandClock(WALL_MS);
  expect(createServerClock().estimateMs(clock.now())).toBe(WALL_MS);
});

test('whole seconds of several answers narrow the estimate to a fraction of a second', () => {
  const clock = createHandClock(WALL_MS);
  const serverClock = createServerClock();
  const serverMs = () => clock.now().bootMs + 1_650_000_000_321;
  for (let answer = 0; answer < 8; answer += 1) {
    const sent = clock.now();
    clock.advance(20);
    const second = Math.floor(serverMs() / 1000);
    clock.advance(20);
    serverClock.observe(second, sent, clock.now());
    clock.advance(1_085);
  }
  expect(Math.abs(serverClock.estimateMs(clock.now()) - serverMs())).toBeLessThan(250);
});

test('an answer that contradicts the older ones replaces them, but not one that was on its way through a suspend', () => {
  const { clock, serverClock } = windowOf();
  const isOff = (ms: number) => Math.abs(serverClock.estimateMs(clock.now()) - ms);
  const sent = clock.now();
  clock.advance(42_000);
  serverClock.observe(WALL_MS / 1000 - 5, sent, clock.now());
  expect(isOff(WALL_MS + 42_000)).toBeLessThanOrEqual(500);
  for (let answer = 0; answer < 5; answer += 1)
    serverClock.observe(WALL_MS / 1000 + 42, clock.now(), clock.now());
  serverClock.observe(WALL_MS / 1000 + 900, clock.now(), clock.now());
  expect(isOff(WALL_MS + 900_000)).toBeLessThanOrEqual(500);
});
