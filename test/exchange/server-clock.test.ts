import { expect, test } from 'vitest';
import { createServerClock } from '../../src/exchange/nonce.ts';
import { createHandClock } from './servers.ts';

const WALL_MS = 1_700_000_000_000;

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

test('setting the local wall clock does not disturb the estimate', () => {
  const clock = createHandClock(WALL_MS);
  const serverClock = createServerClock();
  serverClock.observe(WALL_MS / 1000, clock.now(), clock.now());
  clock.stepWall(3_600_000);
  expect(Math.abs(serverClock.estimateMs(clock.now()) - WALL_MS)).toBeLessThanOrEqual(500);
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
