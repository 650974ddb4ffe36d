import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { asker } from './control.ts';
import { guard } from './harness.ts';
import { heldBackMs, sleep } from './program.ts';
import { longestGapMs, ofKind } from './simulated-exchange.ts';

const MARKETS = Array.from({ length: 20 }, (_, index) => `M${index}_USDT`);
const READERS = 200;
const SILENT = 40;
/** With the silent ones fewer than 224: from there on a slow request is let go for whoever comes. */
const CONNECTIONS = 180;
const WATCH_MS = 3000;

/** Asks for a page and never reads the answer. */
function neverRead(port: number, path: string): Socket {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => undefined);
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`.repeat(20));
  return socket;
}

test('200 readers of metrics and status page at a time, and 40 that never read, move no renewal', {
  timeout: 60_000,
}, async (context) => {
  const { exchange, daemon } = await guard(context, {
    apart: true,
    markets: MARKETS,
    // One after the other, they would ask more of the round trip than of the readers.
    config: { exchange: { nonce: 'window', requestLifetimeSeconds: 1 } },
  });
  const web = new URL(await daemon.web());
  const silent = Array.from({ length: SILENT }, (_, index) =>
    neverRead(Number(web.port), index % 2 === 0 ? '/metrics' : '/'),
  );
  context.onTestFinished(() => {
    for (const socket of silent) socket.destroy();
  });
  const ask = asker(context, web.origin, CONNECTIONS);
  const heldBefore = heldBackMs(daemon.pid, exchange.pid);
  const fromMs = await exchange.nowMs();
  const untilMs = performance.now() + WATCH_MS;
  const statuses = new Set<number>();
  const read = async (path: string) => {
    while (performance.now() < untilMs) {
      statuses.add((await ask(path, { method: 'GET' })).status);
      await sleep(100);
    }
  };
  await Promise.all(Array.from({ length: READERS }, (_, index) => read(index % 2 === 0 ? '/metrics' : '/')));
  const toMs = await exchange.nowMs();
  const events = await exchange.events();
  // Answered, or told to come back: nothing else, and no broken connection.
  expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
  expect(statuses).toContain(200);
  const gapsMs = MARKETS.map((market) => longestGapMs(events, market, fromMs, toMs));
  const longestMs = 1000 + 1500 + heldBackMs(daemon.pid, exchange.pid) - heldBefore;
  expect(gapsMs.filter((gapMs) => gapMs > longestMs)).toEqual([]);
  expect(ofKind(events, 'timer-fired')).toEqual([]);
  expect((await daemon.get('/livez')).status).toBe(200);
  await daemon.ready();
});
