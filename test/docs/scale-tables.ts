import { budgetOf } from '../../src/config/config.ts';
import { carriedPerSecond } from '../../src/core/promise.ts';
import { coreSettings } from '../core/core-settings.ts';
import { table } from './markdown.ts';

/** What one address and key carry, and how many of them it takes, by the rule that a configuration is refused by. */
export function scaleTable(): string {
  return table(
    ['Timeout', 'Ten renewals', 'Six', 'Three, the least', 'Arming these', '100,000 markets', '1,000,000'],
    [5, 15, 60, 120, 600].map((timeout) => [
      `${timeout} s`,
      ...[10, 6, 3].map((attempts) => grouped(most(timeout, attempts))),
      `${Math.ceil(most(timeout, 3) / perSecond())} s`,
      ...[100_000, 1_000_000].map((markets) => grouped(fewest(markets, most(timeout, 10)))),
    ]),
  );
}

/** Renewals a second of a daemon that may use the whole limit, before it has measured a round trip. */
function perSecond(): number {
  const budget = budgetOf({ budgetShare: 1 }, { index: 0, count: 1, budget: 'own' });
  return carriedPerSecond(coreSettings({ budget }), null);
}

/** A renewal each second is as often as it gets. */
function most(timeoutSeconds: number, attempts: number): number {
  return Math.floor(perSecond() * Math.max(1, timeoutSeconds / attempts));
}
const grouped = (value: number) => value.toLocaleString('en-US');

/** The fewest addresses of which even the largest shard, three deviations above the mean, carries its markets. */
function fewest(markets: number, allowed: number): number {
  if (markets <= allowed) return 1;
  let count = 2;
  while (markets / count + 3 * Math.sqrt(markets / count) > allowed) count += 1;
  return count;
}
