import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { createKeeper } from '../../src/keeper.ts';
import { coreSettings, many } from '../core/core-settings.ts';
import { openExchange } from './open.ts';
import { passOn, serveSockets, serveTls } from './servers.ts';

/** What a handshake costs a host that has a twentieth of a core. */
const HANDSHAKE_MS = 50;
const TURN_MS = 5;

/** One core for all who work at the same time: each gets an equal share. */
function createSharedCore() {
  const jobs = new Map<Socket, { leftMs: number; readonly done: () => void }>();
  let lastMs = performance.now();
  const timer = setInterval(() => {
    const shareMs = (performance.now() - lastMs) / Math.max(1, jobs.size);
    lastMs = performance.now();
    for (const [socket, job] of jobs) {
      job.leftMs -= shareMs;
      if (job.leftMs > 0) continue;
      jobs.delete(socket);
      job.done();
    }
  }, TURN_MS);
  onTestFinished(() => clearInterval(timer));
  return (socket: Socket, done: () => void) => {
    jobs.set(socket, { leftMs: HANDSHAKE_MS, done });
    socket.on('close', () => jobs.delete(socket));
  };
}

test('after an outage a host that is short of CPU renews all, and opens no connection again and again', async () => {
  const timeoutSeconds = 5;
  const renewedMs = new Map<string, number>();
  const exchange = await serveTls((request, response, body) => {
    if (request.method === 'GET') return response.end('["pong"]');
    const { market } = JSON.parse(body) as { market: string };
    renewedMs.set(market, performance.now());
    const startTime = Math.floor(Date.now() / 1000);
    return response.end(
      JSON.stringify({ market, startTime, cancellationTime: startTime + timeoutSeconds, types: null }),
    );
  });
  let isDown = false;
  const shareCore = createSharedCore();
  const open = new Set<Socket>();
  const line = await serveSockets((socket) => {
    if (isDown) return;
    open.add(socket);
    shareCore(socket, () => passOn(socket, exchange.port));
  });
  const base = line.base.replace('http:', 'https:');
  const { exchange: client } = openExchange({ base }, { ca: exchange.ca, nonce: 'window' });
  const markets = many(64, timeoutSeconds);
  const settings = coreSettings({ markets, nonce: 'window', bases: [base] });
  const keeper = createKeeper({
    settings,
    clock: createSystemClock(),
    exchange: client,
    observe: () => undefined,
  });
  onTestFinished(() => keeper.stop('keep', 'test').then(() => undefined));
  keeper.start();
  await expect.poll(() => renewedMs.size, { timeout: 15_000 }).toBe(64);
  // Nothing passes for 2 s: what is on its way is swallowed, and new connections as well.
  isDown = true;
  for (const socket of open) socket.unpipe().pause();
  await sleep(2000);
  isDown = false;
  const before = line.connections();
  await sleep(5000);
  expect(performance.now() - Math.min(...renewedMs.values())).toBeLessThan(4000);
  // Nothing is given up only to be opened again.
  expect(line.connections() - before).toBeLessThan(64);
}, 40_000);
