import { describe, expect, test } from 'vitest';
import { createViews } from '../../src/operator/control-view.ts';
import { coreSettings } from '../core/core-settings.ts';
import { createStage } from '../keeper-stage.ts';

const BOT = 'bot';

/** A daemon that guards two markets, and has told so a moment ago. */
function told() {
  const stage = createStage({ markets: ['AAA', 'BBB'], nonce: 'window', liveness: { mode: 'beat' } });
  const { keeper, calls, apply, clock } = stage;
  keeper.start();
  keeper.hear(BOT, 'beat', 0);
  for (let next = 0; next < calls.length; next += 1) apply(calls[next]);
  const views = createViews({ clock, snapshot: keeper.snapshot, revision: keeper.revision });
  const names = () => views.markets(BOT).map(({ market }) => market);
  expect([names(), views.bot(BOT).armed]).toEqual([['AAA', 'BBB'], true]);
  return { ...stage, views, names };
}

describe('what beats are told', () => {
  test('is the same snapshot for all of a moment, through ticks, beats and answers', () => {
    const { keeper, views, run, calls, apply } = told();
    const armed = calls.length;
    for (let passed = 0; passed < 1000 && calls.length === armed; passed += 1) run(10);
    const before = views.snapshot();
    expect(calls.length).toBeGreaterThan(armed);
    apply(calls.at(-1));
    keeper.hear(BOT, 'beat', 0);
    run(20);
    expect(views.snapshot()).toBe(before);
    run(300);
    expect(views.snapshot()).not.toBe(before);
  });

  test('has the markets of a reload right after it, whoever asked for it', () => {
    const { keeper, names } = told();
    keeper.reload(coreSettings({ markets: ['BBB', 'CCC'], nonce: 'window', liveness: { mode: 'beat' } }));
    expect(names()).toEqual(['BBB', 'CCC']);
  });

  test.each([
    ['the daemon was told to stop', ({ keeper }) => void keeper.stop('delete', 'SIGTERM')],
    ['the bot said that it failed', ({ keeper }) => keeper.hear(BOT, 'fail', 0)],
    ['the bot said goodbye', ({ keeper }) => keeper.hear(BOT, 'goodbye', 0)],
    [
      'the host slept for longer than its timers last',
      ({ keeper, clock, run }) => {
        clock.suspend(120_000);
        run(120_000);
        keeper.hear(BOT, 'beat', 0);
      },
    ],
    [
      'an operator disarmed a market',
      ({ keeper }) => void keeper.operate({ does: 'disarm', markets: ['AAA'], forMs: 0 }, 0),
    ],
  ] as const satisfies readonly [string, (told: ReturnType<typeof createStage>) => void][])(
    'does not say armed right after %s',
    (_, act) => {
      const stage = told();
      act(stage);
      expect(stage.views.bot(BOT).armed).toBe(false);
    },
  );
});
