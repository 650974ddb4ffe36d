import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Snapshot } from '../../src/core/view.ts';
import type { StatusDocument } from '../../src/operator/status.ts';
import type { Web } from '../../src/operator/web.ts';
import type { Clock } from '../../src/ports.ts';
import { dial } from './control-fixture.ts';
import { sampleMarket, sampleSnapshot } from './sample-snapshot.ts';
import { ask, clock, start } from './web-fixture.ts';

/**
 * A clock that goes by turns of the event loop, of which each 10 ms are `stepMs` of its own: on a busy host it is slower,
 * and a reader in this process still has its turn in each of its seconds.
 */
function createLoopClock(stepMs: number): Clock {
  let nowMs = 0;
  const due = new Set<{ readonly atMs: number; readonly run: () => void }>();
  const turns = setInterval(() => {
    nowMs += stepMs;
    for (const timer of [...due].filter(({ atMs }) => atMs <= nowMs)) {
      if (due.delete(timer)) timer.run();
    }
  }, 10);
  onTestFinished(() => clearInterval(turns));
  return {
    now: () => ({ monoMs: nowMs, bootMs: nowMs, wallMs: clock.now().wallMs }),
    after(delayMs, run) {
      if (delayMs <= 0) return clock.after(0, run);
      const timer = { atMs: nowMs + delayMs, run };
      due.add(timer);
      return () => void due.delete(timer);
    },
  };
}

type Listener = Awaited<ReturnType<typeof listen>>;

async function listen(web: Web) {
  const asked = get(`${web.addresses[0]}/api/v1/events`, { agent: false });
  const [incoming] = (await once(asked, 'response')) as [IncomingMessage];
  onTestFinished(() => void incoming.destroy());
  let text = '';
  incoming.setEncoding('utf8').on('data', (data: string) => {
    text += data;
  });
  return {
    incoming,
    text: () => text,
    documents: () =>
      Array.from(
        text.matchAll(/^data: (\{"schema.*\})$/gm),
        ([, json = '']): StatusDocument => JSON.parse(json),
      ),
    /** Resolves when the stream is over; true where it ended as a stream should. */
    over: new Promise<boolean>((ended) => {
      incoming.on('error', () => ended(false));
      incoming.on('close', () => ended(incoming.complete));
    }),
  };
}

async function first(listener: Listener): Promise<StatusDocument> {
  await expect.poll(() => listener.documents().length, { timeout: 15_000 }).toBeGreaterThan(0);
  return listener.documents()[0] as StatusDocument;
}

/** Ten times as fast, so that nobody waits ten seconds for a reader to be let go. */
const startFast = (snapshot: () => Snapshot): Promise<Web> =>
  start(snapshot, { clock: createLoopClock(100) });

/** A status so large that the kernel cannot hold it for a reader. */
function bulky(length: number): Snapshot {
  const promise = ['x'.repeat(40_000)];
  return sampleSnapshot({
    markets: Array.from({ length }, (_, n) => sampleMarket({ market: `M${n}_USDT`, promise })),
  });
}

test('readers that take a body slowly keep nobody out: after 10 s they make room', async () => {
  const page = 'metric 1\n'.repeat(2_000_000);
  const web = await start(undefined, { clock: createLoopClock(100), page });
  for (let count = 0; count < 32; count += 1) {
    const socket = dial(web.addresses[0]);
    socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(socket, 'readable');
  }
  expect(await ask(web, '/metrics')).toMatchObject({ status: 503, body: 'too many readers at once\n' });
  await expect.poll(async () => (await ask(web, '/')).status, { timeout: 10_000 }).toBe(200);
});

describe('event stream', () => {
  test('begins with the status as the page shows it, and goes on with it', async () => {
    const many = Array.from({ length: 1000 }, (_, index) => sampleMarket({ market: `M${index}_USDT` }));
    const listener = await listen(await startFast(() => sampleSnapshot({ markets: many })));
    const status = await first(listener);
    expect(status.markets).toHaveLength(200);
    expect(status).toMatchObject({ marketCount: 1000, events: [{ event: 'lapsed' }] });
    await expect.poll(() => listener.documents().length, { timeout: 15_000 }).toBeGreaterThan(3);
    const begin = /^retry: 2000\n\nevent: status\ndata: \{"schemaVersion":1.*\}\n\nevent: /;
    expect(listener.text()).toMatch(begin);
  });

  test('is made once for all who listen, at most once a second, and not at all for nobody', async () => {
    let asked = 0;
    const web = await startFast(() => {
      asked += 1;
      return sampleSnapshot({ capacityPerSecond: asked });
    });
    const startedMs = performance.now();
    const listeners = await Promise.all(Array.from({ length: 20 }, () => listen(web)));
    await expect.poll(() => listeners[0]?.documents().length, { timeout: 10_000 }).toBeGreaterThan(9);
    const seconds = (performance.now() - startedMs) / 100;
    expect(asked).toBeLessThan(20 + seconds);
    expect(listeners[0]?.documents().length).toBeLessThan(3 + seconds);
    const [one, other] = listeners.slice(0, 2).map((listener) => listener.documents().at(-2));
    expect(other?.capacityPerSecond).toBeGreaterThanOrEqual((one?.capacityPerSecond ?? 0) - 1);
    for (const { incoming } of listeners) incoming.destroy();
    const asksInAWhile = async () => {
      const before = asked;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return asked - before;
    };
    await expect.poll(asksInAWhile, { timeout: 5000 }).toBe(0);
  });

  test('is refused to the 33rd listener, who can still poll, and has room again when one leaves', async () => {
    const web = await start();
    const listeners = await Promise.all(Array.from({ length: 32 }, () => listen(web)));
    const body = 'too many readers at once\n';
    expect(await ask(web, '/api/v1/events')).toMatchObject({ status: 503, body });
    expect(await ask(web, '/api/v1/status?view=page')).toMatchObject({ status: 200 });
    expect(await ask(web, '/metrics')).toMatchObject({ status: 200 });
    listeners[0]?.incoming.destroy();
    await expect.poll(async () => (await ask(web, '/api/v1/events')).status, { timeout: 15_000 }).toBe(200);
  });

  test('keeps no probe out where descriptors are few: one that is 10 s old makes room', async () => {
    const web = await start(undefined, { clock: createLoopClock(100), mostConnections: () => 16 });
    await Promise.all(Array.from({ length: 14 }, () => listen(web)));
    await new Promise((resolve) => setTimeout(resolve, 2000));
    const probes = await Promise.all(Array.from({ length: 8 }, () => ask(web, '/livez')));
    expect(new Set(probes.map(({ status }) => status))).toEqual(new Set([200]));
  });

  test('lets a reader go that takes nothing, without holding more than one status for it', {
    timeout: 90_000,
  }, async () => {
    const web = await startFast(() => bulky(50));
    const stuck = await listen(web);
    stuck.incoming.pause();
    const good = await listen(web);
    await first(good);
    const before = process.memoryUsage().external;
    await expect.poll(() => good.documents().length, { timeout: 60_000 }).toBeGreaterThan(20);
    expect(process.memoryUsage().external - before).toBeLessThan(100_000_000);
    stuck.incoming.resume();
    expect(await stuck.over).toBe(false);
    expect(stuck.documents().length).toBeLessThan(15);
    const seen = good.documents().length;
    await expect.poll(() => good.documents().length, { timeout: 15_000 }).toBeGreaterThan(seen);
  });

  test('breaks a long silence with a comment, is an error without details for whoever comes then, and goes on', async () => {
    let broken = false;
    const web = await startFast(() => {
      if (broken) throw new Error('the secret is hunter2');
      return sampleSnapshot();
    });
    const listener = await listen(web);
    await first(listener);
    broken = true;
    const silences = () => listener.text().split(': still here\n\n').length;
    await expect.poll(silences, { timeout: 15_000 }).toBeGreaterThan(2);
    for (let time = 0; time < 40; time += 1)
      expect(await ask(web, '/api/v1/events')).toMatchObject({ status: 500, body: 'internal error\n' });
    expect(listener.text()).not.toContain('hunter2');
    const seen = listener.documents().length;
    broken = false;
    await expect.poll(() => listener.documents().length, { timeout: 15_000 }).toBeGreaterThan(seen);
  });

  test('ends with the last status and a word, even beside a reader that takes nothing', {
    timeout: 60_000,
  }, async () => {
    let phase: Snapshot['phase'] = 'running';
    // Ten times as slow: however busy the host is, the last status of 8 MB is made and sent in its time.
    const slow = createLoopClock(1);
    const web = await start(() => ({ ...bulky(200), phase }), { clock: slow });
    const [good, stuck] = await Promise.all([listen(web), listen(web)]);
    stuck.incoming.pause();
    await first(good);
    phase = 'stopped';
    const startedMs = slow.now().monoMs;
    await web.close();
    expect(slow.now().monoMs - startedMs).toBeLessThan(1000);
    expect(await good.over).toBe(true);
    expect(good.documents().at(-1)).toMatchObject({ phase: 'stopped' });
    expect(good.text()).toMatch(/\n\nevent: end\ndata: \{\}\n\n$/);
    stuck.incoming.resume();
    expect(await stuck.over).toBe(false);
  });
});
