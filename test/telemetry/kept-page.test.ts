import { gunzipSync } from 'node:zlib';
import { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { MARKET_STATES, type MarketSnapshot } from '../../src/core/snapshot.ts';
import { createRandom } from '../../src/simulator/random.ts';
import { createFleet } from '../../src/telemetry/fleet.ts';
import { type LabelledMarket, MARKET_SHARDS } from '../../src/telemetry/market-metrics.ts';
import { createPageMaker, type Page } from '../../src/telemetry/render.ts';
import { headerOf } from '../../src/telemetry/series.ts';
import type { Shard } from '../../src/telemetry/shard.ts';
import { sampleMarket } from '../operator/sample-snapshot.ts';

/** Long enough that three shards make cells which are kept, and every metric of five shards is. */
const LONG = 'X'.repeat(70);
const STEPS = 120;
const calm = async (): Promise<void> => {};

const nameOf = (index: number): string => `${LONG}${index}_USDT`;
const textOf = (page: Page): string => Buffer.concat([...page.text()]).toString();

/** The page of shards by itself: every metric over all of them. */
function fromScratch(shards: readonly Pick<Shard<never, never, unknown>, 'metrics'>[]): string {
  return (shards[0]?.metrics ?? [])
    .map(
      (metric, index) => headerOf(metric) + shards.map(({ metrics }) => metrics[index]?.samples()).join(''),
    )
    .join('');
}

/** A fleet of markets that a seed does things to. */
function createPlay(seed: number) {
  const random = createRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const pick = <T>(list: readonly T[]): T | undefined => list[below(list.length)];
  const fleet = createFleet(MARKET_SHARDS);
  const configured = new Map<string, LabelledMarket>();
  const seen = new Map<string, MarketSnapshot>();
  const metered = (market: string): LabelledMarket => {
    const bot = pick(['maker', 'taker']) ?? '';
    return { market, bot, types: null, timeoutSeconds: 5 + below(3), policy: 'delete' };
  };
  const configure = () => fleet.configure([...configured.values()], calm);
  const some = (most: number, run: (name: string) => void): void => {
    for (let left = below(most) + 1; left > 0; left -= 1) run(nameOf(below(260)));
  };
  const moves: (() => Promise<void> | void)[] = [
    () => {
      some(90, (name) => configured.set(name, metered(name)));
      return configure();
    },
    () => {
      some(1, (name) => configured.has(name) && configured.set(name, metered(name)));
      return configure();
    },
    () => {
      some(40, (name) => configured.delete(name));
      return configure();
    },
    () => some(60, (name) => configured.has(name) || fleet.gone(name)),
    () => some(3, (market) => fleet.counters(market)?.renewals.inc({ market })),
    () => some(2, (market) => fleet.counters(market)?.lapses.inc({ market, certainty: 'certain' })),
    () => {
      some(30, (market) => {
        const state = pick(MARKET_STATES) ?? 'armed';
        const expiryWallMs = pick([null, 1000, 2000, 3000]) ?? null;
        seen.set(market, sampleMarket({ market, state, expiryWallMs, wanted: random() < 0.5 }));
      });
      fleet.see((name) => seen.get(name));
    },
    () => {
      if (below(4) === 0) configured.clear();
      return configure();
    },
  ];
  return {
    fleet,
    move: async () => moves[below(moves.length)]?.(),
    chance: (share: number) => random() < share,
  };
}

describe('pages of which pieces are kept', () => {
  test.each([1, 2, 3, 4])(
    'whatever happens to the markets, also while a page is made, the next one is as if made from scratch (seed %i)',
    { timeout: 60_000 },
    async (seed) => {
      const { fleet, move, chance } = createPlay(seed);
      const make = createPageMaker(new Registry(), [fleet.shards]);
      let longest = 0;
      for (let step = 0; step < STEPS; step += 1) {
        await move();
        if (chance(0.3)) await make(async () => (chance(0.01) ? move() : undefined));
        await fleet.refresh(calm);
        const kept = await make(calm);
        const text = textOf(kept);
        expect(text === fromScratch(fleet.shards), `step ${step}`).toBe(true);
        expect(gunzipSync(Buffer.concat([...kept.gzip()])).toString() === text, `step ${step}`).toBe(true);
        longest = Math.max(longest, text.length);
      }
      expect(longest).toBeGreaterThan(1_000_000);
    },
  );

  /** A fleet of which it is known how often lines of which metric were made. */
  async function countedFleet(markets: number) {
    const fleet = createFleet(MARKET_SHARDS);
    const names = Array.from({ length: markets }, (_, index) => nameOf(index));
    for (const market of names)
      fleet.add({ market, bot: 'maker', types: null, timeoutSeconds: 60, policy: 'delete' });
    const made = new Map<string, number>();
    const shards = fleet.shards.map(({ metrics }) => ({
      metrics: metrics.map((metric) => ({
        ...metric,
        samples: () => {
          made.set(metric.name, (made.get(metric.name) ?? 0) + 1);
          return metric.samples();
        },
      })),
    }));
    const make = createPageMaker(new Registry(), [shards]);
    const show = async (expiryWallMs: number): Promise<void> => {
      fleet.see((market) => sampleMarket({ market, expiryWallMs }));
      await fleet.refresh(calm);
    };
    await show(1000);
    await make(calm);
    made.clear();
    return { fleet, names, made, show, make: (breathe = calm) => make(breathe) };
  }

  test('a page makes the lines of those metrics only whose values differ from the last page', async () => {
    const { made, show, make } = await countedFleet(2000);
    await show(1000);
    await make();
    expect([...made.keys()]).toEqual([]);
    await show(2000);
    await make();
    expect([...made]).toEqual([['killswitch_timer_expiry_timestamp_seconds', 40]]);
  });

  test('what happens to one market makes the lines of sixteen shards again, and of one metric', async () => {
    const { fleet, names, made, make } = await countedFleet(2000);
    const market = names[900] ?? '';
    fleet.counters(market)?.renewals.inc({ market });
    await make();
    expect([...made]).toEqual([['killswitch_renewals_total', 16]]);
  });

  test('what happens to a market in the pause after its lines were made stands on the next page', async () => {
    const { fleet, names, made, make } = await countedFleet(250);
    const [market = ''] = names;
    const count = () => fleet.counters(market)?.renewals.inc({ market });
    count();
    await make(async () => {
      if (made.get('killswitch_renewals_total') === 1) count();
    });
    expect(textOf(await make())).toMatch(new RegExp(`renewals_total.market="${market}". 2\n`));
  });

  test('what is kept for a market is less than half a kilobyte', async () => {
    const { make } = await countedFleet(2000);
    const gzip = [...(await make()).gzip()];
    expect(gzip.reduce((bytes, chunk) => bytes + chunk.length, 0)).toBeLessThan(2000 * 512);
  });
});
