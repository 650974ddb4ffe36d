import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createNonceSource, createServerClock } from '../../src/exchange/sign.ts';
import { createHandClock } from './servers.ts';

const WALL_MS = 1_700_000_000_000;
const DAY_MS = 86_400_000;

function increasing() {
  return createNonceSource('increasing', createServerClock());
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
      const clock = createHandClock(WALL_MS);
      const nonces = increasing();
      let last = '0';
      for (const { kind, byMs } of steps) {
        if (kind === 'step') clock.stepWall(byMs);
        if (kind === 'pass') clock.advance(byMs);
        if (kind === 'refused') nonces.refused(last, clock.now().wallMs + byMs, clock.now());
        if (kind === 'accepted') nonces.accepted(last);
        const next = nonces.next(clock.now());
        expect(BigInt(next)).toBeGreaterThan(BigInt(last));
        last = next;
      }
    }),
  );
});

test('a refusal makes the next nonce jump to the clock of the exchange where that is ahead', () => {
  const clock = createHandClock(WALL_MS);
  const nonces = increasing();
  nonces.refused(nonces.next(clock.now()), WALL_MS + 7_200_000, clock.now());
  const next = Number(nonces.next(clock.now()));
  expect(next).toBeGreaterThan(WALL_MS + 7_200_000);
  expect(next).toBeLessThanOrEqual(WALL_MS + 7_201_001);
});

test('refusals in a row jump 1 s, 1 min, 1 h and further ahead, and never more than 64 days ahead of the time', () => {
  const clock = createHandClock(WALL_MS);
  const nonces = increasing();
  const ahead: number[] = [];
  for (let refusal = 0; refusal < 60; refusal += 1) {
    nonces.refused(nonces.next(clock.now()), null, clock.now());
    ahead.push(Number(nonces.next(clock.now())) - WALL_MS);
  }
  expect(ahead[0]).toBeGreaterThanOrEqual(1_000);
  expect(ahead[1]).toBeGreaterThanOrEqual(61_000);
  expect(ahead[2]).toBeGreaterThanOrEqual(3_661_000);
  expect(ahead[2]).toBeLessThan(3_662_000);
  expect(ahead[7]).toBeGreaterThanOrEqual(64 * DAY_MS);
  expect(Math.max(...ahead)).toBeLessThan(64 * DAY_MS + 1_000);
});

test('refusals without end after an acceptance reach as far as those before any', () => {
  const clock = createHandClock(1_700_000_000_000);
  const nonces = createNonceSource('increasing', createServerClock());
  nonces.accepted(nonces.next(clock.now()));
  let last = 0;
  for (let refusal = 0; refusal < 8; refusal += 1) {
    const nonce = nonces.next(clock.now());
    nonces.refused(nonce, null, clock.now());
    last = Number(nonce);
  }
  expect(last - clock.now().wallMs).toBeGreaterThan(3_600_000);
});

test('an acceptance ends the row: the next refusal starts again with the small jump', () => {
  const clock = createHandClock(WALL_MS);
  const nonces = increasing();
  for (let refusal = 0; refusal < 3; refusal += 1)
    nonces.refused(nonces.next(clock.now()), null, clock.now());
  const accepted = nonces.next(clock.now());
  nonces.accepted(accepted);
  nonces.refused(nonces.next(clock.now()), null, clock.now());
  expect(Number(nonces.next(clock.now())) - Number(accepted)).toBeLessThan(2_000);
});

test('a request that was overtaken by a later one and refused for it does not make the nonces jump', () => {
  const clock = createHandClock(WALL_MS);
  const nonces = increasing();
  const slow = nonces.next(clock.now());
  const quick = nonces.next(clock.now());
  nonces.accepted(quick);
  nonces.refused(slow, null, clock.now());
  expect(Number(nonces.next(clock.now()))).toBe(Number(quick) + 1);
});

test('several requests in flight that are refused for one reason make one jump', () => {
  const clock = createHandClock(WALL_MS);
  const nonces = increasing();
  const inFlight = [0, 1, 2].map(() => nonces.next(clock.now()));
  for (const nonce of inFlight.reverse()) nonces.refused(nonce, null, clock.now());
  expect(Number(nonces.next(clock.now()))).toBeLessThan(WALL_MS + 2_000);
});

test('window nonces follow the exchange, stay unique, and are right after the wall clock was set', () => {
  const clock = createHandClock(WALL_MS);
  const serverClock = createServerClock();
  const nonces = createNonceSource('window', serverClock);
  const serverMs = () => clock.now().bootMs + WALL_MS + 1_800_000;
  const seen = new Set<string>();
  serverClock.observe(Math.floor(serverMs() / 1000), clock.now(), clock.now());
  for (let request = 0; request < 200; request += 1) {
    if (request === 100) clock.stepWall(-3_600_000);
    const nonce = nonces.next(clock.now());
    expect(Math.abs(Number(nonce) - serverMs())).toBeLessThan(2_000);
    seen.add(nonce);
    if (request % 3 === 0) clock.advance(40);
  }
  expect(seen.size).toBe(200);
});

function windowOf() {
  const clock = createHandClock(WALL_MS);
  const serverClock = createServerClock();
  serverClock.observe(Math.floor(WALL_MS / 1000), clock.now(), clock.now());
  return { clock, serverClock, nonces: createNonceSource('window', serverClock) };
}

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

test('an answer that contradicts the older ones replaces them', () => {
  const clock = createHandClock(WALL_MS);
  const serverClock = createServerClock();
  for (let answer = 0; answer < 5; answer += 1) serverClock.observe(WALL_MS / 1000, clock.now(), clock.now());
  serverClock.observe(WALL_MS / 1000 + 900, clock.now(), clock.now());
  expect(Math.abs(serverClock.estimateMs(clock.now()) - WALL_MS - 900_000)).toBeLessThanOrEqual(500);
});

test('an answer that was on its way through a suspend corrects nothing', () => {
  const clock = createHandClock(WALL_MS);
  const serverClock = createServerClock();
  serverClock.observe(WALL_MS / 1000, clock.now(), clock.now());
  const sent = clock.now();
  clock.advance(42_000);
  serverClock.observe(WALL_MS / 1000 - 5, sent, clock.now());
  expect(Math.abs(serverClock.estimateMs(clock.now()) - WALL_MS - 42_000)).toBeLessThanOrEqual(500);
});
