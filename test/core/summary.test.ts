import { expect, test } from 'vitest';
import { createStage } from '../keeper-stage.ts';

/** Runs the keeper through a life with trouble, and looks after every turn of the loop. */
test('the figures say of readiness and timers what the full description says, whatever happens', () => {
  const stage = createStage({
    markets: ['AAA:10:maker', 'BBB:30:maker', 'CCC:60:taker'],
    liveness: { mode: 'beat', startupGraceMs: 20_000 },
  });
  const { keeper, calls, run } = stage;
  const verdicts: boolean[] = [];
  keeper.onTurn(() => {
    const summary = keeper.summary();
    const snapshot = keeper.snapshot();
    const wanted = snapshot.markets.filter((market) => market.wanted);
    expect(summary).toMatchObject({
      authorised: snapshot.authorised,
      configured: snapshot.markets.filter(({ leaving }) => !leaving).length,
      wanted: wanted.length,
      armed: wanted.filter(({ guaranteedMs }) => guaranteedMs !== null && guaranteedMs > 0).length,
      mayFire: snapshot.markets.filter(({ firesByWallMs }) => firesByWallMs !== null).length,
    });
    if (verdicts.at(-1) !== snapshot.ready) verdicts.push(snapshot.ready);
  });
  const answer = (until: number) => {
    for (let at = 0; at < until; at += 250) {
      for (const call of calls.splice(0)) stage.apply(call);
      run(250);
    }
  };
  const both = ['maker', 'taker'] as const;
  keeper.start();
  answer(3000);
  for (const bot of both) keeper.hear(bot, 'beat', 0);
  answer(5000);
  // An outage longer than the shortest timeout.
  run(12_000);
  answer(5000);
  for (const bot of both) keeper.hear(bot, 'beat', 0);
  answer(5000);
  calls.splice(0)[0]?.settle({ kind: 'unauthorised', status: 401, detail: 'no' });
  keeper.hear('taker', 'goodbye', 0);
  answer(5000);
  void keeper.stop('delete', 'test');
  answer(10_000);
  expect(verdicts).toEqual(expect.arrayContaining([false, true]));
  expect(verdicts.length).toBeGreaterThan(3);
  expect(keeper.snapshot().phase).toBe('stopped');
});

test('the figures name the market with the least slack and the bot that was silent for longest', () => {
  const { keeper, calls, run, apply } = createStage({
    markets: ['AAA:60:maker', 'BBB:30:maker', 'CCC:60:taker'],
    liveness: { mode: 'beat' },
  });
  keeper.start();
  expect(keeper.summary()).toMatchObject({ leastSlack: null, quietest: { ageMs: null, state: 'starting' } });
  for (const call of calls.splice(0)) apply(call);
  run(100);
  for (const call of calls.splice(0)) apply(call);
  keeper.hear('taker', 'beat', 0);
  expect(keeper.summary().quietest).toEqual({ bot: 'maker', state: 'starting', ageMs: null });
  run(2000);
  keeper.hear('maker', 'beat', 0);
  run(1000);
  const { quietest, leastSlack } = keeper.summary();
  expect(quietest).toMatchObject({ bot: 'taker', state: 'alive' });
  expect(quietest?.ageMs).toBeGreaterThanOrEqual(3000);
  expect(leastSlack?.market).toBe('BBB');
});
