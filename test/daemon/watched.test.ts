import { expect, test } from 'vitest';
import { createWatched } from '../../src/daemon/watched.ts';
import { createHostClock, createTimeline } from '../../src/simulator/virtual-clock.ts';
import { loadWell } from '../config/fixture.ts';

const NAMES = Array.from({ length: 12 }, (_, index) => `M${index}_USDT`);
const configOf = (count: number, bot: string, names: readonly string[] = NAMES) =>
  loadWell(
    JSON.stringify({
      exchange: { baseUrls: ['https://exchange.example'], nonce: 'window' },
      markets: names.map((market) => ({ market, bot })),
      liveness: { mode: 'file', file: '/run/{bot}.alive' },
      shard: { index: 0, count, handoverSeconds: 60 },
    }),
  ).config;

function handingOver() {
  const timeline = createTimeline(0);
  const watched = createWatched(createHostClock(timeline, { wallMs: 0 }), configOf(2, 'maker'));
  const next = configOf(12, 'maker');
  const own = new Set(next.markets.map(({ market }) => market));
  const moved = configOf(2, 'maker').markets.flatMap(({ market }) => (own.has(market) ? [] : [market]));
  watched.follow(next, moved);
  return { watched, timeline, moved };
}
const botOf = (config: ReturnType<typeof configOf>, name: string | undefined) =>
  config.markets.find(({ market }) => market === name)?.bot;

test('the bot of a market that went to another shard is watched until that market has been left', () => {
  const { watched, timeline, moved } = handingOver();
  timeline.runUntil(60_000);
  expect(botOf(watched.config(), moved[0])).toBe('maker');
  timeline.runUntil(80_000);
  expect(botOf(watched.config(), moved[0])).toBeUndefined();
  watched.stop();
});

test('a market that is given to another bot during the handover has that one watched', () => {
  const { watched, moved } = handingOver();
  watched.follow(configOf(12, 'taker'), []);
  expect(botOf(watched.config(), moved[0])).toBe('taker');
  watched.stop();
});

test('a market that no shard has any more is not watched', () => {
  const { watched, moved } = handingOver();
  watched.follow(
    configOf(
      12,
      'maker',
      NAMES.filter((name) => name !== moved[0]),
    ),
    [],
  );
  expect(botOf(watched.config(), moved[0])).toBeUndefined();
  expect(botOf(watched.config(), moved[1])).toBe('maker');
  watched.stop();
});
