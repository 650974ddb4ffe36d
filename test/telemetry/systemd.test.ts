import { describe, expect, test } from 'vitest';
import type { Log } from '../../src/telemetry/log.ts';
import { findServiceManager } from '../../src/telemetry/notify-socket.ts';
import { createSupervision } from '../../src/telemetry/systemd.ts';
import type { SettingsOptions } from '../core/core-settings.ts';
import { createStage } from '../keeper-stage.ts';

/** A keeper that is supervised, and what the service manager hears; without `turns` the loop of the keeper hangs. */
function start(options: SettingsOptions = {}, watchdogMs: number | null = 15_000, turns = true) {
  const stage = createStage(options);
  const { keeper, clock, timeline, calls } = stage;
  const heard: { readonly atMs: number; readonly lines: readonly string[]; readonly status: string }[] = [];
  const warned: string[] = [];
  const manager = { problem: null as string | null, told: Promise.resolve() };
  const warn = (_: unknown, text: string) => void warned.push(text);
  const supervision = createSupervision({
    manager: {
      async tell(message) {
        const lines = message.split('\n');
        const status = lines.pop() ?? '';
        heard.push({ atMs: timeline.nowMs(), lines, status: status.replace('STATUS=', '') });
        await manager.told;
        if (manager.problem !== null) throw new Error(manager.problem);
      },
      watchdogMs,
      monotonicUs: () => 42n,
    },
    clock,
    view: keeper.view,
    log: { logger: { warn } as unknown as Log['logger'] },
  });
  keeper.onTurn(() => supervision.turned());
  if (turns) keeper.start();
  return {
    ...stage,
    supervision,
    manager,
    heard,
    warned,
    /** Lets the exchange answer everything for so long. */
    answer: (forMs: number) => {
      for (let at = 0; at < forMs; at += 50) {
        for (const call of calls.splice(0)) stage.apply(call);
        stage.run(50);
      }
    },
    said: (line: string) => heard.filter(({ lines }) => lines.includes(line)),
  };
}

describe('a service manager is told', () => {
  test('that the daemon runs with its first step, and for what a bot waits, however long the exchange is away', () => {
    const { calls, apply, answer, run, heard, said } = start({ markets: ['AAA:60:maker', 'BBB:60:taker'] });
    expect(heard.map(({ lines, status }) => [...lines, status])).toEqual([
      ['READY=1', 'WATCHDOG=1', '0 of 2 markets armed, bot maker waits for AAA, no bot is watched'],
    ]);
    apply(calls[0]);
    const [, refused] = calls.splice(0);
    refused?.settle({ kind: 'refused', code: 31, detail: 'HTTP 422: not traded\nREADY=1' });
    run(1100);
    expect(heard.at(-1)?.status).toMatch(
      /^1 of 2 markets armed, bot taker waits for BBB \(HTTP 422: not traded READY=1\), least slack 5\d s \(AAA\)/,
    );
    run(30_000);
    answer(60_000);
    const moments = heard.filter(({ status }) => status.includes('waits for')).map(({ atMs }) => atMs);
    const armed = heard.find(({ status }) => status.startsWith('2 of 2 markets armed, least slack'));
    expect(armed?.atMs).toBeGreaterThan(30_000);
    expect(Number(armed?.atMs) - Number(moments.at(-1))).toBeLessThan(1200);
    expect(said('READY=1')).toHaveLength(1);
    expect(said('EXTEND_TIMEOUT_USEC=15000000')).toEqual([]);
  });

  test.each([2000, 15_000, 60_000])(
    'that it lives at least twice in a watchdog of %i ms, however often the configuration is read',
    (watchdogMs) => {
      const { answer, said, supervision } = start({}, watchdogMs);
      for (let round = 0; round < 60; round += 1) {
        answer(500);
        supervision.reloading();
        supervision.reloaded();
      }
      expect(longestGap(said('WATCHDOG=1'))).toBeLessThanOrEqual(watchdogMs / 2);
    },
  );

  test('nothing more by a loop that does not turn', () => {
    const { supervision, run, heard } = start({}, 15_000, false);
    supervision.turned();
    // Whatever woke up by itself would go on while the loop hangs.
    run(60_000);
    expect(heard).toHaveLength(1);
  });

  test('how the daemon is, in one line', () => {
    const markets = ['AAA:60:maker', 'BBB:30:maker', 'CCC:60:taker'];
    const { answer, heard, keeper, calls, run } = start({ markets, liveness: { mode: 'beat' } });
    const isAfter = (forMs: number, says: RegExp) => {
      answer(forMs);
      expect(heard.at(-1)?.status).toMatch(says);
    };
    isAfter(4000, /^3 of 3 markets armed, least slack 2\d s \(BBB\), no sign of maker yet$/);
    keeper.hear('maker', 'beat', 0);
    keeper.hear('taker', 'goodbye', 0);
    isAfter(5000, /1 not guarded, .*, maker gave a sign \d s ago$/);
    keeper.hear('maker', 'beat', 0);
    keeper.hear('taker', 'fail', 0);
    isAfter(5000, /^2 of 2 markets armed, 1 not guarded, least slack 2\d s \(BBB\), taker has failed$/);
    isAfter(20_000, /^0 of 0 markets armed, 3 not guarded, taker has failed$/);
    keeper.hear('taker', 'beat', 0);
    isAfter(5000, /^1 of 1 markets armed, 2 not guarded, .*, maker is silent, its last sign \d+ s ago$/);
    keeper.hear('maker', 'beat', 0);
    answer(5000);
    for (let refused = 0; refused < 3; refused += 1) {
      for (const call of calls.splice(0)) call.settle({ kind: 'unauthorised', status: 401, detail: 'no' });
      run(3000);
    }
    expect(heard.at(-1)?.status).toMatch(/^THE EXCHANGE REFUSES THE API KEY: /);
  });

  test.each([
    ['delete', 'CONFIRMED DELETED'],
    ['handoff', 'RENEWED ONCE MORE'],
  ] as const)('that it stops by %s, what it still needs, and what came of it', async (policy, done) => {
    const options = { shutdown: { budgetMs: 30_000 }, markets: ['AAA', 'BBB'] };
    const { answer, heard, run, supervision, keeper, said } = start(options);
    answer(3000);
    heard.splice(0);
    supervision.stopping();
    supervision.stopping();
    const stopped = keeper.stop(policy, 'test');
    const status = 'Stopping: 2 timers may still be armed';
    expect(heard).toEqual([{ atMs: 3000, lines: ['STOPPING=1', 'EXTEND_TIMEOUT_USEC=15000000'], status }]);
    run(30_000);
    await supervision.stopped(await stopped);
    expect(longestGap(said('EXTEND_TIMEOUT_USEC=15000000'))).toBeLessThanOrEqual(5250);
    supervision.reloading();
    supervision.turned();
    expect(heard.at(-1)?.status).toBe(`Stopped. NOT ${done}: 2 timers, see the journal`);
    expect(said('READY=1')).toEqual([]);
  });
});

test('a service manager that takes nothing holds up the end for two seconds, and no longer', async () => {
  const { answer, manager, run, supervision } = start();
  answer(3000);
  manager.told = new Promise(() => {});
  let over = false;
  const end = supervision.stopped([]).then(() => {
    over = true;
  });
  run(1900);
  await Promise.resolve();
  expect(over).toBe(false);
  run(200);
  await end;
});

test('a service manager that cannot be told is a warning, once', async () => {
  const { answer, manager, warned, said } = start();
  manager.problem = 'ECONNREFUSED';
  answer(60_000);
  await new Promise(setImmediate);
  expect(said('WATCHDOG=1').length).toBeGreaterThan(5);
  expect(warned.filter((line) => line.includes('cannot be told: ECONNREFUSED'))).toHaveLength(1);
});

function longestGap(told: readonly { readonly atMs: number }[]): number {
  return Math.max(...told.slice(1).map(({ atMs }, index) => atMs - Number(told[index]?.atMs)));
}

test('a message that cannot be given to systemd-notify is told of, and the next one is tried', async () => {
  const env = { NOTIFY_SOCKET: '/run/systemd/notify', PATH: '/nowhere' };
  const manager = findServiceManager({ env, pid: process.pid, monotonicUs: () => 0n });
  const tell = (text: string) => manager?.tell(`STATUS=${text}`).catch(({ message }: Error) => message);
  const [first, second] = [tell('a\0b'), tell('READY')];
  expect(await first).toContain('null bytes');
  expect(await second).toBe('spawn systemd-notify ENOENT');
});
