import { describe, expect, test } from 'vitest';
import type { Outcome } from '../src/core/events.ts';
import { coreSettings } from './core/core-settings.ts';
import { LOST } from './core/driver.ts';
import { createStage } from './keeper-stage.ts';

test('nothing is asked of the exchange before the start, and everything configured from then on', () => {
  const { keeper, calls, pings, run, apply } = createStage({ markets: ['AAA:60', 'BBB:30'] });
  run(200);
  expect([calls, pings]).toEqual([[], []]);
  keeper.start();
  apply(calls[0]);
  expect(calls.map(({ request }) => [request.market, request.timeoutSeconds])).toEqual([
    ['AAA', 60],
    ['BBB', 30],
  ]);
});

test('a request carries the types, the base address and whether it wants a fresh connection', () => {
  const { keeper, calls } = createStage({
    markets: [
      { market: 'AAA', timeoutMs: 60_000, types: ['spot', 'margin'], renewEveryMs: null, bot: 'bot' },
    ],
  });
  keeper.start();
  expect(calls[0]?.request).toMatchObject({
    market: 'AAA',
    timeoutSeconds: 60,
    types: ['spot', 'margin'],
    base: 0,
    fresh: false,
  });
});

describe('what happens while effects are carried out', () => {
  test('never enters the core twice, and is not lost', () => {
    let depth = 0;
    let deepest = 0;
    const heard: string[] = [];
    const { keeper, run } = createStage(
      { markets: ['AAA:60:one', 'BBB:60:two'], liveness: { mode: 'beat' } },
      {
        observe: (notice) => {
          depth += 1;
          deepest = Math.max(deepest, depth);
          if (notice.kind === 'bot') {
            heard.push(`${notice.bot} ${notice.state}`);
            if (notice.bot === 'one' && notice.state === 'alive') {
              keeper.hear('two', 'beat', 0);
              keeper.hear('two', 'goodbye', 0);
            }
          }
          depth -= 1;
        },
      },
    );
    keeper.start();
    keeper.hear('one', 'beat', 0);
    run(1);
    expect(heard).toEqual(['one alive', 'two alive', 'two goodbye']);
    expect(deepest).toBe(1);
  });

  test('turns once for all of it', () => {
    const { keeper } = createStage();
    let turns = 0;
    keeper.onTurn(() => {
      turns += 1;
    });
    keeper.start();
    expect(turns).toBe(1);
  });
});

test('a request that is given up is given up at the port, and its outcome is taken from there', () => {
  const { keeper, calls, run, notices } = createStage();
  keeper.start();
  run(9990);
  expect(calls[0]?.aborted).toBe(false);
  run(20);
  expect(calls[0]?.aborted).toBe(true);
  expect(notices.some(({ kind }) => kind === 'attempt-failed')).toBe(false);
  calls[0]?.settle({ kind: 'transient', reason: 'timeout', detail: 'given up', maybeApplied: true });
  expect(notices.find(({ kind }) => kind === 'attempt-failed')).toMatchObject({ reason: 'timeout' });
});

test('whether a request may be written is asked of the core at that very moment', () => {
  const { keeper, calls, run, apply } = createStage({
    liveness: { mode: 'beat', ttlMs: 5000, startupGraceMs: 1000 },
  });
  keeper.start();
  expect(calls[0]?.request.mayWrite()).toBe(true);
  run(1001);
  expect(calls[0]?.request.mayWrite()).toBe(false);
  apply(calls[0]);
  keeper.hear('bot', 'beat', 0);
  const next = calls.at(-1);
  expect(next).not.toBe(calls[0]);
  expect(next?.request.mayWrite()).toBe(true);
  keeper.hear('bot', 'goodbye', 0);
  expect(next?.request.mayWrite()).toBe(false);
});

test('pings go to every address with their time-out, and their outcome reaches the snapshot', () => {
  const { keeper, pings, notices } = createStage({ bases: ['https://one.example', 'https://two.example'] });
  keeper.start();
  expect(pings.map(({ base, timeoutMs }) => [base, timeoutMs])).toEqual([
    [0, 3000],
    [1, 3000],
  ]);
  pings[0]?.settle({ ok: true, latencyMs: 12 });
  pings[1]?.settle({ ok: false, latencyMs: 3000, reason: 'timeout', detail: 'no pong' });
  expect(keeper.snapshot().bases).toMatchObject([
    { up: true, pingMs: 12, lastProblem: null },
    { up: false, pingMs: null, lastProblem: 'no pong' },
  ]);
  expect(notices.filter(({ kind }) => kind === 'pinged')).toEqual([
    { kind: 'pinged', base: 0, ok: true, latencyMs: 12, reason: null, detail: '', changed: true },
    {
      kind: 'pinged',
      base: 1,
      ok: false,
      latencyMs: 3000,
      reason: 'timeout',
      detail: 'no pong',
      changed: true,
    },
  ]);
});

test('new credentials are tried at once', () => {
  const { keeper, calls, run } = createStage();
  keeper.start();
  calls[0]?.settle({ kind: 'unauthorised', status: 401, detail: 'no' });
  run(10_000);
  expect(calls).toHaveLength(1);
  keeper.credentialsChanged();
  expect(calls).toHaveLength(2);
});

describe('the stop', () => {
  const DELETED: Outcome = { kind: 'deleted' };

  test('resolves with what is left when it is over', async () => {
    const { keeper, calls, apply } = createStage();
    keeper.start();
    apply(calls[0]);
    const left = keeper.stop('delete', 'SIGTERM');
    expect(calls[1]?.request.timeoutSeconds).toBeNull();
    calls[1]?.settle(DELETED);
    await expect(left).resolves.toEqual([]);
    expect(keeper.snapshot().phase).toBe('stopped');
  });

  test('that is asked for twice is one stop with one end', async () => {
    const { keeper, calls, apply, notices } = createStage();
    keeper.start();
    apply(calls[0]);
    const first = keeper.stop('delete', 'SIGTERM');
    const second = keeper.stop('keep', 'SIGINT');
    expect(calls).toHaveLength(2);
    calls[1]?.settle(DELETED);
    await expect(Promise.all([first, second])).resolves.toEqual([[], []]);
    await expect(keeper.stop('delete', 'again')).resolves.toEqual([]);
    expect(notices.filter(({ kind }) => kind === 'stopping')).toHaveLength(1);
    expect(notices.filter(({ kind }) => kind === 'stopped')).toHaveLength(1);
  });

  test('leaves no timer running and hears nothing any more', async () => {
    const { keeper, calls, pings, apply, notices, run, timeline } = createStage();
    keeper.start();
    apply(calls[0]);
    const left = keeper.stop('delete', 'SIGTERM');
    calls[1]?.settle(DELETED);
    await left;
    const { length } = notices;
    run(60_000);
    pings[0]?.settle({ ok: true, latencyMs: 5 });
    keeper.hear('bot', 'beat', 0);
    keeper.credentialsChanged();
    run(60_000);
    expect(notices).toHaveLength(length);
    expect(calls).toHaveLength(2);
    expect(timeline.next()).toBe(false);
  });

  test('before the start has nothing to do', async () => {
    const { keeper, calls } = createStage();
    await expect(keeper.stop('delete', 'SIGTERM')).resolves.toEqual([]);
    expect(calls).toEqual([]);
  });
});

describe('the snapshot', () => {
  test('says whether the loop turns: not after five seconds without a step', () => {
    const { keeper, run, clock } = createStage();
    keeper.start();
    clock.stall(60_000);
    run(4900);
    expect(keeper.snapshot().live).toBe(true);
    run(400);
    expect(keeper.snapshot().live).toBe(false);
    run(60_000);
    expect(keeper.snapshot().live).toBe(true);
  });

  test('counts the guarantee down between steps', () => {
    const { keeper, calls, apply, run } = createStage();
    keeper.start();
    apply(calls[0]);
    const before = keeper.snapshot().markets[0]?.guaranteedMs ?? 0;
    run(100);
    expect(keeper.snapshot().markets[0]?.guaranteedMs).toBeCloseTo(before - 100, 6);
  });
});

describe('a command', () => {
  const disarm = { does: 'disarm', markets: null, forMs: 0 } as const;

  test('resolves when it has happened to the last market, in whatever order', async () => {
    const { keeper, calls, run, apply } = createStage({
      markets: ['AAA', 'BBB', 'CCC'],
      nonce: 'window',
      requestLifetimeMs: 1000,
    });
    keeper.start();
    for (let next = 0; next < calls.length; next += 1) apply(calls[next]);
    // Nothing of an earlier life can arrive any more.
    const first = calls.length;
    run(1100);
    for (let next = first; next < calls.length; next += 1) apply(calls[next]);
    let over = false;
    const ended = keeper.operate(disarm, 5000).finally(() => {
      over = true;
    });
    run(50);
    for (const market of ['CCC', 'AAA', 'BBB']) {
      await Promise.resolve();
      expect(over).toBe(false);
      calls.findLast(({ request }) => request.market === market)?.settle({ kind: 'deleted' });
    }
    expect((await ended).map(({ market, state }) => [market, state])).toEqual([
      ['AAA', 'done'],
      ['BBB', 'done'],
      ['CCC', 'done'],
    ]);
  });

  test('for all markets does not mean one that is on its way out of the configuration', async () => {
    const { keeper, calls, run, apply } = createStage({ markets: ['AAA', 'BBB'] });
    keeper.start();
    for (let next = 0; next < calls.length; next += 1) apply(calls[next]);
    keeper.reload(coreSettings({ markets: ['AAA'] }));
    run(50);
    expect(calls.at(-1)?.request).toMatchObject({ market: 'BBB', timeoutSeconds: null });
    const armed = await keeper.operate({ does: 'arm', markets: null, forMs: 0 }, 1000);
    expect(armed).toMatchObject([{ market: 'AAA', state: 'done' }]);
  });

  test('for many markets takes hardly more of the loop than if nobody waited for its end', () => {
    const markets = Array.from({ length: 400 }, (_, index) => `M${index}:600`);
    const disarmAll = (waiters: number): number => {
      const { keeper, calls, run, apply } = createStage({ markets, nonce: 'window' });
      keeper.start();
      for (let next = 0; next < calls.length; next += 1) apply(calls[next]);
      const first = calls.length;
      void keeper.operate(disarm, 0);
      for (let waiter = 0; waiter < waiters; waiter += 1) void keeper.settled('disarm', null, 3_600_000);
      const started = process.threadCpuUsage();
      for (let next = first; next < first + markets.length; next += 1) {
        if (next >= calls.length) run(50);
        calls[next]?.settle({ kind: 'deleted' });
      }
      const { user, system } = process.threadCpuUsage(started);
      return (user + system) / 1000;
    };
    disarmAll(0);
    expect(disarmAll(60)).toBeLessThan(3 * disarmAll(0) + 200);
  });
});

test('how late the loop wakes up is told, and an answer in between is no waking', () => {
  const { keeper, clock, calls, run, apply } = createStage();
  const late: number[] = [];
  keeper.onWake((lateMs) => late.push(lateMs));
  keeper.start();
  apply(calls[0]);
  expect(late).toEqual([]);
  run(1000);
  expect(late.length).toBeGreaterThanOrEqual(2);
  expect(Math.max(...late)).toBe(0);
  clock.stall(900);
  run(1500);
  expect(Math.max(...late)).toBeGreaterThan(140);
});

test('an error in a step ends the process, and is not left to whoever told the keeper something', () => {
  const { keeper, run } = createStage(
    {},
    {
      observe: ({ kind }) => {
        if (kind === 'held') throw new Error('broken');
      },
    },
  );
  keeper.start();
  expect(() => keeper.operate({ does: 'disarm', markets: null, forMs: 0 }, 0)).not.toThrow();
  expect(() => run(100)).toThrow('broken');
  keeper.hear('bot', 'beat', 0);
  const { monoMs } = keeper.state.now;
  run(10_000);
  expect(keeper.state.now.monoMs).toBe(monoMs);
});

test('an exchange that answers in the call itself ends no process', () => {
  let asked = 0;
  const { keeper, run } = createStage(
    {},
    {
      sync(_, settled) {
        asked += 1;
        settled(LOST);
        return () => {};
      },
    },
  );
  keeper.start();
  run(5000);
  expect(asked).toBeGreaterThan(3);
});

test('a second answer to one request keeps no other from being given up', () => {
  const { keeper, calls, apply, run } = createStage({ markets: ['AAA:60', 'BBB:60'], nonce: 'window' });
  keeper.start();
  const [first] = calls;
  apply(first);
  expect(calls).toHaveLength(2);
  apply(first);
  run(11_000);
  expect(calls[1]?.aborted).toBe(true);
});
