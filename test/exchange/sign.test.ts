import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createNonceSource, createServerClock, encodePayload, signPayload } from '../../src/exchange/sign.ts';
import { createHandClock } from './servers.ts';

const WALL_MS = 1_700_000_000_000;
const DAY_MS = 86_400_000;

test('payload and signature are those of the other clients of the exchange', () => {
  const body =
    '{"request":"/api/v4/order/kill-switch","nonce":"1700000000000","market":"BTC_USDT","timeout":"60","types":["spot"]}';
  const payload =
    'eyJyZXF1ZXN0IjoiL2FwaS92NC9vcmRlci9raWxsLXN3aXRjaCIsIm5vbmNlIjoiMTcwMDAwMDAwMDAwMCIsIm1hcmtldCI6IkJUQ19VU0RUIiwidGltZW91dCI6IjYwIiwidHlwZXMiOlsic3BvdCJdfQ==';
  const signature =
    '2f6c3076902cebb8156a3ca03520ea44672290b3847e2c0022fc269f139469e1c43f7a5945aa871c239874efce01a448caf70d939856561b77ffb079d9792a48';
  expect(encodePayload(body)).toBe(payload);
  expect(signPayload(payload, 'test-secret')).toBe(signature);
});

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
  const step = fc.record({
    kind: fc.constantFrom('step', 'pass', 'refused', 'accepted'),
    byMs: fc.integer({ min: -DAY_MS, max: DAY_MS }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { clock, next, accepted, refused } = increasing();
      let last = '0';
      for (const { kind, byMs } of steps) {
        if (kind === 'step') clock.stepWall(byMs);
        if (kind === 'pass') clock.advance(Math.abs(byMs) % 5_000);
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

test('a Date that lies decades ahead of a clock that was set moves no nonce there, from where the key had no way back', () => {
  const set = increasing();
  set.refused(set.next(), 4_102_444_800_000);
  expect(Number(set.next()) - WALL_MS).toBeLessThan(2_000);
  const unset = increasing();
  unset.clock.stepWall(-WALL_MS);
  unset.refused(unset.next(), WALL_MS);
  expect(Number(unset.next())).toBeGreaterThan(WALL_MS);
});

test('once a nonce was accepted, no Date moves the next one further than a later process can follow', () => {
  const { clock, next, accepted, refused } = increasing();
  accepted(next());
  refused(next(), WALL_MS + 100 * DAY_MS);
  expect(Number(next()) - WALL_MS).toBeLessThan(2_000);
  refused(next(), WALL_MS + 30 * DAY_MS);
  clock.advance(11_000);
  refused(next(), WALL_MS + 100 * DAY_MS);
  expect(Number(next()) - WALL_MS).toBeGreaterThan(100 * DAY_MS);
});

test('an acceptance ends the row: refusals start again with small jumps, and reach as far after 11 s', () => {
  const { clock, next, accepted, refused } = increasing();
  for (let refusal = 0; refusal < 3; refusal += 1) refused(next());
  const good = next();
  accepted(good);
  refused(next());
  expect(Number(next()) - Number(good)).toBeLessThan(2_000);
  // A limit of requests, which says the same, is over by then.
  for (let refusal = 1; refusal < 20; refusal += 1) refused(next());
  expect(Number(next()) - Number(good)).toBeLessThan(20 * 60_000);
  clock.advance(11_000);
  refused(next());
  refused(next());
  expect(Number(next()) - Number(good)).toBeGreaterThan(DAY_MS);
});

test('requests in flight that are refused for one reason make one jump, and one that was overtaken makes none', () => {
  const { next, accepted, refused } = increasing();
  for (const nonce of [next(), next(), next()].reverse()) refused(nonce);
  expect(Number(next())).toBeLessThan(WALL_MS + 2_000);
  const slow = next();
  const quick = next();
  accepted(quick);
  refused(slow);
  expect(Number(next())).toBe(Number(quick) + 1);
});

function windowOf(aheadMs = 0) {
  const clock = createHandClock(WALL_MS);
  const serverClock = createServerClock();
  serverClock.observe(Math.floor((WALL_MS + aheadMs) / 1000), clock.now(), clock.now());
  return { clock, serverClock, nonces: createNonceSource('window', serverClock) };
}

test('a burst of 7,500 requests at one moment gets as many window nonces, none further off than the exchange allows', () => {
  const { clock, serverClock, nonces } = windowOf();
  const burst = () => Array.from({ length: 7_500 }, () => Number(nonces.next(clock.now())));
  const first = burst();
  clock.advance(10_000);
  const second = burst();
  expect(new Set([...first, ...second]).size).toBe(15_000);
  const nowMs = serverClock.estimateMs(clock.now());
  expect(Math.max(...second.map((nonce) => Math.abs(nonce - nowMs)))).toBeLessThanOrEqual(4_001);
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

test("where nonces are refused, another source of the exchange's clock counts: requests on their way change it once", () => {
  const { clock, serverClock } = windowOf(-30_000);
  const isOff = () => Math.abs(serverClock.estimateMs(clock.now()) - clock.now().wallMs);
  const refuse = (now = clock.now()) => serverClock.doubt(serverClock.estimateMs(now), now, now);
  const before = clock.now();
  clock.advance(10);
  const first = serverClock.estimateMs(before);
  for (let request = 0; request < 4; request += 1) serverClock.doubt(first, before, clock.now());
  expect(isOff()).toBe(0);
  // One that another request of this key has used says nothing about the time.
  serverClock.observe(Math.floor(clock.now().wallMs / 1000), clock.now(), clock.now());
  refuse();
  expect(isOff()).toBe(0);
  // The wall clock is set: the exchange's own word counts again.
  const rightMs = clock.now().wallMs;
  clock.stepWall(3_600_000);
  refuse();
  expect(Math.abs(serverClock.estimateMs(clock.now()) - rightMs)).toBeLessThanOrEqual(1000);
});
