import { describe, expect, test } from 'vitest';
import { createDriver, HTTP_500, LOST, NO_MARKET, NOT_SENT, SERVER_EPOCH } from './driver.ts';
import { armed, deletes, wallAt } from './stopping.ts';

describe('a stop that keeps', () => {
  test('gives up what is in flight, and covers it in what it says', () => {
    const driver = armed({ markets: ['AAA:10'] });
    driver.wait(900);
    const hung = driver.takeOne();
    driver.stop('keep');
    expect(driver.effects).toContainEqual({ kind: 'abort', attempt: hung.attempt });
    expect(driver.finished()?.[0]?.firesByWallMs).toBeGreaterThanOrEqual(wallAt(hung.atMs + 10_000 + 11_000));
  });
});

describe('a stop that hands over', () => {
  test('begins with the timers that have the least left, and names those that it had no time for', () => {
    const driver = createDriver({ markets: ['LONG:600', 'SHORT:60', 'OTHER:300'], nonce: 'increasing' });
    driver.live(2000);
    driver.take();
    driver.stop('handoff');
    driver.live(20_000, 20, (write) => {
      // Nobody answers but for the first one.
      if (write.market === 'SHORT') driver.apply(write);
    });
    const order = driver.writes.filter(({ atMs }) => atMs >= 2000).map(({ market }) => market);
    expect([...new Set(order)]).toEqual(['SHORT', 'OTHER', 'LONG']);
    expect(Object.fromEntries(driver.finished()?.map(({ market, why }) => [market, why]) ?? [])).toEqual({
      SHORT: 'policy',
      OTHER: 'unrenewed',
      LONG: 'unrenewed',
    });
  });

  test('tries the last renewal again inside the budget', () => {
    const driver = armed({ markets: ['AAA:60'] });
    driver.stop('handoff');
    driver.settle(driver.takeOne(), HTTP_500);
    driver.live(7000);
    expect(driver.notices('renewed')).toHaveLength(2);
    expect(driver.finished()).toHaveLength(1);
  });

  test('reports a lapse once where no last renewal came in time', () => {
    const driver = armed({ markets: ['AAA:5'] });
    driver.take();
    driver.stop('handoff');
    driver.live(7000, 20, (write) => driver.settle(write, NOT_SENT));
    expect(driver.notices('lapsed')).toEqual([
      expect.objectContaining({ market: 'AAA', certainty: 'certain', unresolved: 0 }),
    ]);
    driver.live(600);
    expect(driver.finished()?.map(({ why }) => why)).toEqual(['policy']);
    expect(driver.notices('lapsed')).toHaveLength(1);
    expect(driver.notices('fired')).toEqual([]);
  });

  test('makes no new timer after a lapse under `onLapse: hold`', () => {
    const driver = armed({ markets: ['AAA:5'], onLapse: 'hold' });
    driver.take();
    driver.stop('handoff');
    driver.live(7000, 20, (write) => driver.settle(write, NOT_SENT));
    expect(driver.notices('held')).toEqual([expect.objectContaining({ market: 'AAA', why: 'lapsed' })]);
    expect(driver.finished()).toEqual([]);
  });

  test('leaves its timer to fire on purpose once it was renewed', () => {
    const driver = armed({ markets: ['AAA:5', 'BBB:60'] });
    driver.take();
    driver.stop('handoff');
    driver.live(7500, 20, (write) =>
      write.market === 'AAA' ? driver.apply(write) : driver.settle(write, NOT_SENT),
    );
    expect(driver.notices('lapsed')).toEqual([]);
    expect(driver.notices('fired')).toEqual([expect.objectContaining({ market: 'AAA', why: 'kept' })]);
  });

  test('leaves alone what the exchange has refused, or what is deliberately not armed', () => {
    const driver = createDriver({ markets: ['AAA:60', 'BBB:60'], onLapse: 'hold' });
    driver.tick();
    driver.settle(driver.takeOne(), NO_MARKET);
    driver.apply(driver.takeOne());
    driver.wait(3000);
    const [renewal] = driver.take();
    if (renewal !== undefined) driver.apply(renewal, { startTime: SERVER_EPOCH + 100 });
    driver.stop('handoff');
    expect(driver.take()).toEqual([]);
    expect(driver.finished()).toHaveLength(1);
  });
});

describe('the timers of a bot that does not live', () => {
  function watched(says: 'beat' | 'goodbye' | 'fail' | null) {
    const driver = createDriver({ liveness: { mode: 'beat' } });
    driver.tick();
    driver.apply(driver.takeOne());
    if (says !== null) driver.say('beat');
    if (says !== null && says !== 'beat') driver.feed({ kind: 'evidence', bot: 'bot', says, agoMs: 0 });
    driver.take();
    return driver;
  }

  test.each([
    ['was never heard of', null, 'unheard'],
    ['said that it failed', 'fail', 'policy'],
  ] as const)('stay where it %s', (_what, says, why) => {
    const driver = watched(says);
    driver.stop();
    driver.live(8000);
    expect(deletes(driver)).toEqual([]);
    expect(driver.finished()).toEqual([expect.objectContaining({ market: 'AAA', why })]);
  });

  test('are deleted where it beats after the stop was asked for, and guarded until then', () => {
    const driver = watched('beat');
    driver.take();
    driver.stop();
    driver.live(4000);
    const renewed = driver.writes.length;
    expect(driver.writes.at(-1)?.timeoutSeconds).not.toBeNull();
    driver.say('beat');
    driver.live(100);
    expect(driver.writes.slice(renewed).map(({ timeoutSeconds }) => timeoutSeconds)).toEqual([null]);
    expect(driver.finished()).toEqual([]);
  });

  test('stay where the last beat was before the stop: by two thirds of the budget they are left, and named', () => {
    const driver = watched('beat');
    driver.stop();
    const askedMs = driver.sinceStartMs();
    while (driver.finished() === null) driver.live(50);
    expect(driver.sinceStartMs() - askedMs).toBeLessThan(7000);
    expect(deletes(driver)).toEqual([]);
    expect(driver.finished()).toMatchObject([{ why: 'unheard' }]);
  });

  test('stay where it was heard only after the stop, and then fails', () => {
    const driver = watched('beat');
    driver.stop();
    driver.say('fail');
    expect(deletes(driver)).toEqual([]);
    expect(driver.finished()).toMatchObject([{ why: 'policy' }]);
  });

  test('are deleted where it said goodbye, at once and by the stop', () => {
    const driver = createDriver({ liveness: { mode: 'beat' } });
    driver.tick();
    driver.apply(driver.takeOne());
    driver.say('goodbye');
    const first = driver.takeOne();
    expect(first.timeoutSeconds).toBeNull();
    driver.settle(first, LOST);
    driver.stop();
    driver.wait(600);
    expect(driver.take().at(-1)?.timeoutSeconds).toBeNull();
  });

  test('stay where it died during a stall that the stop arrives in', () => {
    const driver = watched('beat');
    driver.live(1000);
    driver.move({ monoMs: 16_000 });
    driver.stop();
    expect(deletes(driver)).toEqual([]);
    expect(driver.finished()?.[0]?.why).toBe('policy');
  });

  test('are not handed over either', () => {
    const driver = watched('fail');
    driver.stop('handoff');
    expect(driver.take()).toEqual([]);
    expect(driver.finished()).toHaveLength(1);
  });
});
