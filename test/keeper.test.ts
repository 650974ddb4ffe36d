import { describe, expect, test } from 'vitest';
import { coreSettings } from './core/core-settings.ts';
import { createStage } from './keeper-stage.ts';

type Stage = ReturnType<typeof createStage>;

/** A keeper that has begun, and whose first requests were all applied. */
function armed(...given: Parameters<typeof createStage>): Stage {
  const stage = createStage(...given);
  stage.keeper.start();
  answer(stage);
  return stage;
}
/** Applies everything that is asked from there on. */
function answer({ calls, apply }: Stage, from = 0): void {
  for (let next = from; next < calls.length; next += 1) apply(calls[next]);
}

test('what happens while effects are carried out never enters the core twice, is not lost, and turns once', () => {
  let depth = 0;
  const depths: number[] = [];
  const heard: string[] = [];
  const { keeper, run } = createStage(
    { markets: ['AAA:60:one', 'BBB:60:two'], liveness: { mode: 'beat' } },
    (notice) => {
      depth += 1;
      depths.push(depth);
      if (notice.kind === 'bot') heard.push(`${notice.bot} ${notice.state}`);
      if (notice.kind === 'bot' && notice.bot === 'one') {
        keeper.hear('two', 'beat', 0);
        keeper.hear('two', 'goodbye', 0);
      }
      depth -= 1;
    },
  );
  let turns = 0;
  keeper.onTurn(() => {
    turns += 1;
  });
  keeper.start();
  expect(turns).toBe(1);
  keeper.hear('one', 'beat', 0);
  run(1);
  expect(heard).toEqual(['one alive', 'two alive', 'two goodbye']);
  expect(Math.max(...depths)).toBe(1);
});

test('pings go to every address with their time-out, and their outcome reaches the snapshot', () => {
  const { keeper, pings } = createStage({ bases: ['https://one.example', 'https://two.example'] });
  keeper.start();
  expect(pings).toMatchObject([0, 1].map((base) => ({ base, timeoutMs: 3000 })));
  pings[0]?.settle({ ok: true, latencyMs: 12 });
  pings[1]?.settle({ ok: false, latencyMs: 3000, reason: 'timeout', detail: 'no pong' });
  expect(keeper.snapshot().bases).toMatchObject([
    { up: true, pingMs: 12, lastProblem: null },
    { up: false, pingMs: null, lastProblem: 'no pong' },
  ]);
});

test('the stop that is asked for twice is one stop, resolves with what is left, and then hears nothing any more', async () => {
  const { keeper, calls, pings, notices, run, timeline } = armed();
  const first = keeper.stop('delete', 'SIGTERM');
  const second = keeper.stop('keep', 'SIGINT');
  expect(calls.slice(1).map(({ request }) => request.timeoutSeconds)).toEqual([null]);
  calls[1]?.settle({ kind: 'deleted' });
  await expect(Promise.all([first, second])).resolves.toEqual([[], []]);
  await expect(keeper.stop('delete', 'again')).resolves.toEqual([]);
  expect(keeper.snapshot().phase).toBe('stopped');
  const stops = notices.filter(({ kind }) => kind.startsWith('stop')).map(({ kind }) => kind);
  expect(stops).toEqual(['stopping', 'stopped']);
  const { length } = notices;
  run(60_000);
  pings[0]?.settle({ ok: true, latencyMs: 5 });
  keeper.hear('bot', 'beat', 0);
  keeper.credentialsChanged();
  run(60_000);
  expect([notices.length, calls.length, timeline.next()]).toEqual([length, 2, false]);
});

test('the snapshot says whether the loop turns, not after five seconds without a step, and counts the guarantee down', () => {
  const { keeper, run, clock } = armed();
  clock.stall(60_000);
  const before = keeper.snapshot().markets[0]?.guaranteedMs ?? 0;
  run(100);
  expect(keeper.snapshot().markets[0]?.guaranteedMs).toBeCloseTo(before - 100, 6);
  run(4800);
  expect(keeper.snapshot().live).toBe(true);
  run(400);
  expect(keeper.snapshot().live).toBe(false);
  run(60_000);
  expect(keeper.snapshot().live).toBe(true);
});

describe('a command', () => {
  const disarm = { does: 'disarm', markets: null, forMs: 0 } as const;

  test('resolves when it has happened to the last market, in whatever order', async () => {
    const stage = armed({ markets: ['AAA', 'BBB', 'CCC'], nonce: 'window', requestLifetimeMs: 1000 });
    const { keeper, calls, run } = stage;
    // Nothing of an earlier life can arrive any more.
    const first = calls.length;
    run(1100);
    answer(stage, first);
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
    const told = (await ended).map(({ market, state }) => `${market} ${state}`);
    expect(told).toEqual(['AAA done', 'BBB done', 'CCC done']);
  });

  test('for all markets does not mean one that is on its way out of the configuration', async () => {
    const { keeper, calls, run } = armed({ markets: ['AAA', 'BBB'] });
    keeper.reload(coreSettings({ markets: ['AAA'] }));
    run(50);
    expect(calls.at(-1)?.request).toMatchObject({ market: 'BBB', timeoutSeconds: null });
    const told = await keeper.operate({ does: 'arm', markets: null, forMs: 0 }, 1000);
    expect(told).toMatchObject([{ market: 'AAA', state: 'done' }]);
  });

  test('for many markets takes hardly more of the loop than if nobody waited for its end', () => {
    const markets = Array.from({ length: 400 }, (_, index) => `M${index}:600`);
    const disarmAll = (waiters: number): number => {
      const { keeper, calls, run } = armed({ markets, nonce: 'window' });
      const first = calls.length;
      void keeper.operate(disarm, 0);
      for (let waiter = 0; waiter < waiters; waiter += 1) void keeper.whenDone('disarm', null, 3_600_000);
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
  const observe = ({ kind }: { readonly kind: string }) => {
    if (kind === 'held') throw new Error('broken');
  };
  const { keeper, run } = createStage({}, observe);
  keeper.start();
  expect(() => keeper.operate({ does: 'disarm', markets: null, forMs: 0 }, 0)).not.toThrow();
  expect(() => run(100)).toThrow('broken');
  keeper.hear('bot', 'beat', 0);
  const { monoMs } = keeper.state.now;
  run(10_000);
  expect(keeper.state.now.monoMs).toBe(monoMs);
});
