import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import type { ControlSources } from '../../src/operator/control-sources.ts';
import type { LoadReport } from './control-daemon.ts';
import {
  asker,
  clock,
  codeOf,
  createSpy,
  dial,
  makeFolder,
  type Reply,
  say,
  start,
  TCP,
} from './control-fixture.ts';

const KINDS = { 'a Unix socket': () => `unix:${makeFolder()}/control.sock`, loopback: () => TCP } as const;
const THOUSAND = Array.from({ length: 1000 }, (_, index) => index);

const children = new Set<ChildProcess>();
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

/** A listener in a process of its own; `measure` starts counting anew, `end` tells what was counted. */
async function startProcess(listen: string) {
  const script = join(import.meta.dirname, 'control-daemon.ts');
  const child = spawn(process.execPath, [script, listen], { stdio: ['pipe', 'pipe', 'inherit'] });
  children.add(child);
  const lines = createInterface(child.stdout);
  const next = async () => JSON.parse(String((await once(lines, 'line'))[0])) as unknown;
  const [address] = (await next()) as string[];
  return {
    address,
    measure: async () => {
      child.stdin.write('\n');
      await next();
    },
    end: async () => {
      child.stdin.end();
      return (await next()) as LoadReport;
    },
  };
}

/**
 * Expects that the daemon holds its loop for less than this share of the CPU time that it takes. What a host takes away
 * counts as CPU time of its guest: after a round that was spoilt, both of two more have to show it.
 */
async function expectTurns(share: number, round: () => Promise<LoadReport>): Promise<void> {
  const shareOf = ({ longestHoldMs, cpuMs }: LoadReport) => longestHoldMs / cpuMs;
  const first = await round();
  if (shareOf(first) < share) return;
  const others = [await round(), await round()];
  expect(Math.max(...others.map(shareOf)), JSON.stringify([first, ...others])).toBeLessThan(share);
}

/** How many requests came to which end: a status, or `closed` for a connection that ended without an answer. */
async function countEnds(replies: readonly Promise<Reply>[]): Promise<Record<string, number>> {
  const ends: Record<string, number> = {};
  for (const reply of await Promise.allSettled(replies)) {
    const end = reply.status === 'fulfilled' ? String(reply.value.status) : 'closed';
    ends[end] = (ends[end] ?? 0) + 1;
  }
  return ends;
}

describe.each(Object.entries(KINDS))('over %s', (_, listen) => {
  test('1000 beats at once over 50 connections all count, and hold the daemon for moments only', async () => {
    await expectTurns(0.4, async () => {
      const daemon = await startProcess(listen());
      const ask = asker(daemon.address, 50);
      await Promise.all(THOUSAND.map(() => ask('/v1/beat')));
      await daemon.measure();
      const beforeMs = clock.now().monoMs;
      const ends = await countEnds(THOUSAND.map((seq) => ask('/v1/beat', { body: { seq } })));
      const tookMs = clock.now().monoMs - beforeMs;
      const report = await daemon.end();
      expect(ends).toEqual({ 200: 1000 });
      expect(report).toMatchObject({ beats: 1000, otherCalls: 0 });
      expect(report.snapshots, 'one for all beats within 25 ms').toBeLessThanOrEqual(tookMs / 25 + 2);
      return report;
    });
  });

  test('1000 connections at once are answered, refused or closed, and the next beat is answered', async () => {
    await expectTurns(0.6, async () => {
      const daemon = await startProcess(listen());
      await asker(daemon.address)('/v1/beat');
      await daemon.measure();
      const ask = asker(daemon.address, 1000);
      const ends = await countEnds(THOUSAND.map(() => ask('/v1/beat')));
      const next = await asker(daemon.address)('/v1/beat');
      const report = await daemon.end();
      expect(next.status).toBe(200);
      expect(report.beats).toBe((ends['200'] ?? 0) + 1);
      // How many get through before the kernel refuses the others depends on what else the host does.
      expect(ends['200']).toBeGreaterThanOrEqual(50);
      expect(Object.keys(ends).filter((end) => !['200', '503', 'closed'].includes(end))).toEqual([]);
      return report;
    });
  });

  test('1000 refused requests at once hold it for moments only, and change nothing', async () => {
    await expectTurns(0.4, async () => {
      const daemon = await startProcess(listen());
      const ask = asker(daemon.address, 50);
      const send = () =>
        THOUSAND.map((index) => {
          switch (index % 4) {
            case 0:
              return ask('/v1/trip', { body: { markets: [`M${index}_USDX`] } });
            case 1:
              return ask('/v1/trip', { headers: { origin: 'https://evil.example' } });
            case 2:
              return ask('/v1/trip', { body: { markets: ['x'.repeat(70_000)] } });
            default:
              return ask('/v1/trip', {
                body: '{"markets":',
                headers: { 'content-type': 'application/json' },
              });
          }
        });
      await Promise.all(send());
      await daemon.measure();
      const ends = await countEnds(send());
      const report = await daemon.end();
      expect(ends).toEqual({ 400: 250, 403: 250, 404: 250, 413: 250 });
      expect(report).toMatchObject({ beats: 0, otherCalls: 0 });
      return report;
    });
  });

  test('long bodies that are no JSON leave the timers their turn while their mistakes are looked for', async () => {
    await expectTurns(0.15, async () => {
      const daemon = await startProcess(listen());
      const ask = asker(daemon.address, 100);
      const body = '['.repeat(65_000);
      const send = () =>
        THOUSAND.slice(0, 100).map(() =>
          ask('/v1/beat', { body, headers: { 'content-type': 'application/json' } }),
        );
      await countEnds(send());
      await daemon.measure();
      const ends = await countEnds(send());
      const report = await daemon.end();
      expect(ends).toEqual({ 400: 100 });
      return report;
    });
  });

  test('600 commands at once for a market of which the nearest name is looked for take turns', async () => {
    await expectTurns(0.1, async () => {
      const daemon = await startProcess(listen());
      const ask = asker(daemon.address, 150);
      const send = () =>
        THOUSAND.slice(0, 600).map(() => ask('/v1/arm', { body: { markets: ['M77_USDC'] } }));
      await countEnds(send());
      await daemon.measure();
      const ends = await countEnds(send());
      const report = await daemon.end();
      expect(ends).toEqual({ 404: 600 });
      expect(report.otherCalls).toBe(0);
      return report;
    });
  });

  test('a flood of requests sent ahead, from every connection there may be, leaves the timers their turn', async () => {
    await expectTurns(0.6, async () => {
      const daemon = await startProcess(listen());
      await asker(daemon.address)('/v1/beat');
      await daemon.measure();
      const flood = 'POST /v1/beat HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(1000);
      await Promise.all(THOUSAND.slice(0, 100).map(() => say(daemon.address, flood)));
      expect((await asker(daemon.address)('/v1/beat')).status).toBe(200);
      return daemon.end();
    });
  });

  test('at most 64 commands are waited for, and beats are answered meanwhile', async () => {
    const ends: (() => void)[] = [];
    const spy = createSpy({
      operate: () => new Promise((resolve) => ends.push(() => resolve([]))),
    });
    const { addresses } = await start(spy, [listen()]);
    const ask = asker(addresses[0], 200);
    const waiting = THOUSAND.slice(0, 64).map(() => ask('/v1/arm'));
    while (ends.length < 64) await new Promise((resolve) => setTimeout(resolve, 10));
    for (const path of ['/v1/trip', '/v1/goodbye?bot=main', '/v1/reload']) {
      const refused = await ask(path);
      expect([refused.status, codeOf(refused)]).toEqual([503, 'too_many_commands']);
      expect(refused.headers['retry-after']).toBe('1');
    }
    expect(spy.calls).toEqual([]);
    expect((await ask('/v1/beat?bot=main')).status).toBe(200);
    expect((await ask('/v1/fail?bot=main')).status).toBe(200);
    for (const end of ends) end();
    expect(await countEnds(waiting)).toEqual({ 200: 64 });
    expect((await ask('/v1/reload')).status).toBe(200);
  });

  test('commands whose askers have gone leave their places to others, to a limit, and are carried out', async () => {
    let asked = 0;
    const ends: (() => void)[] = [];
    const operate: ControlSources['operate'] = () => {
      asked += 1;
      return new Promise((resolve) => ends.push(() => resolve([])));
    };
    const { addresses } = await start(createSpy({ operate }), [listen()]);
    const ask = asker(addresses[0]);
    const abandon = async (many: number) => {
      const wanted = asked + many;
      const sockets = THOUSAND.slice(0, many).map(() => dial(addresses[0]));
      for (const socket of sockets) socket.write('POST /v1/arm HTTP/1.1\r\nHost: localhost\r\n\r\n');
      // Every other one is gone before its command begins.
      for (const socket of sockets.filter((_, index) => index % 2 === 0)) socket.destroySoon();
      while (asked < wanted) await sleep(10);
      for (const socket of sockets) socket.destroy();
      // Their going is seen before the next connection.
      await ask('/v1/beat?bot=main');
    };
    for (let round = 0; round < 8; round += 1) {
      expect((await ask('/v1/reload')).status).toBe(200);
      await abandon(64);
    }
    const refused = await ask('/v1/trip');
    expect([refused.status, codeOf(refused)]).toEqual([503, 'too_many_commands']);
    expect(asked).toBe(512);
    for (const end of ends.splice(0)) end();
    await abandon(64);
    for (const end of ends) end();
    expect((await ask('/v1/reload')).status).toBe(200);
  });

  test('readers who have gone before the status was made take no place from others', async () => {
    const made = Promise.withResolvers<readonly string[]>();
    const { addresses } = await start(createSpy({ status: () => made.promise }), [listen()]);
    const sockets = THOUSAND.slice(0, 32).map(() => dial(addresses[0]));
    for (const socket of sockets) socket.write('GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const ask = asker(addresses[0]);
    await ask('/v1/beat?bot=main');
    for (const socket of sockets) socket.destroy();
    await ask('/v1/beat?bot=main');
    made.resolve(['{}']);
    expect((await ask('/v1/status', { method: 'GET' })).status).toBe(200);
  });

  test('connections of those who asked once make room for others', async () => {
    const { addresses } = await start(createSpy(), [listen()]);
    const once = asker(addresses[0], 256);
    expect(await countEnds(THOUSAND.slice(0, 256).map(() => once('/v1/beat?bot=main')))).toEqual({
      200: 256,
    });
    expect((await asker(addresses[0])('/v1/beat?bot=main')).status).toBe(200);
  });

  test('connections that were used in the last 10 s are kept, older ones make room', async () => {
    let laterMs = 0;
    const standing = clock.now();
    const now = () => ({ ...standing, monoMs: standing.monoMs + laterMs });
    const { addresses } = await start(createSpy({ clock: { ...clock, now } }), [listen()]);
    const [bot, ...others] = THOUSAND.slice(0, 256).map(() => dial(addresses[0]));
    const beat = async (socket = bot) => {
      socket?.write('POST /v1/beat?bot=maker HTTP/1.1\r\nHost: localhost\r\n\r\n');
      return socket === undefined ? '' : String((await once(socket, 'data'))[0]).slice(0, 12);
    };
    for (const socket of [bot, ...others, bot, ...others]) expect(await beat(socket)).toBe('HTTP/1.1 200');
    laterMs = 9000;
    expect(await beat()).toBe('HTTP/1.1 200');
    const late = await asker(addresses[0])('/v1/beat?bot=main');
    expect([late.status, codeOf(late)]).toEqual([503, 'too_many_connections']);
    expect(late.headers['retry-after']).toBe('1');
    laterMs = 11_000;
    expect((await asker(addresses[0])('/v1/beat?bot=main')).status).toBe(200);
    expect(await beat()).toBe('HTTP/1.1 200');
    expect(others.filter(({ destroyed }) => !destroyed).length).toBeLessThanOrEqual(1);
  });

  test('connections that never finish a request take no place from one that asks', async () => {
    const spy = createSpy();
    const { addresses } = await start(spy, [listen()]);
    const early = asker(addresses[0]);
    await early('/v1/beat?bot=main');
    await early('/v1/beat?bot=main');
    const half = THOUSAND.slice(0, 255).map(() => dial(addresses[0]));
    await Promise.all(half.map((socket) => once(socket, 'connect')));
    for (const socket of half) socket.write('POST /v1/arm HTTP/1.1\r\n');
    expect((await asker(addresses[0])('/v1/beat?bot=maker')).status).toBe(200);
    expect((await early('/v1/beat?bot=main')).status).toBe(200);
    expect(spy.calls.map(([, bot]) => bot)).toEqual(['main', 'main', 'maker', 'main']);
  });
});
