import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Planting, plant } from './planted.ts';

/**
 * What rules of the core cost and give. `rule-cost.json` has a list of `{ name, edits: [{ file, find, replace }] }`, each
 * of which takes one rule out. Prints a row of a Markdown table for each: how many seeds break a promise without it, the
 * first promise, the requests without it beside those with it, and what `compare` loses. The arguments are the number of
 * seeds and flags of `simulate`.
 */
const file = new URL('./rule-cost.json', import.meta.url);
const [seeds = '300', ...flags] = process.argv.slice(2);
const TIMEOUTS = [5, 15, 60, 600];

interface Measured {
  readonly broken: number;
  readonly first: string;
  readonly requests: number;
  /** The longest outage that is survived at the worst moment, as a share of T. */
  readonly worst: readonly number[];
}

function measure(folder: string): Measured {
  const main = join(folder, 'test/simulation/main.ts');
  const swarm = [main, 'simulate', '--seed', '1', '--seeds', seeds, '--jobs', '2', '--no-shrink', ...flags];
  const out = spawnSync(process.execPath, swarm, { encoding: 'utf8' }).stdout;
  const compared: { timeouts: { rules: { survival: { refused: { worst: number } } }[] }[] } = JSON.parse(
    execFileSync(process.execPath, [main, 'compare', '--json', '--samples', '20'], { encoding: 'utf8' }),
  );
  return {
    broken: Number(/broke a promise: (\d+)/.exec(out)?.[1] ?? 0),
    first: /^seed \d+: ([^,]+),/m.exec(out)?.[1] ?? '',
    requests: Number(/(\d+) requests to/.exec(out)?.[1]),
    worst: compared.timeouts.map(({ rules }) => rules[0]?.survival.refused.worst ?? 0),
  };
}

function measureWith(rule: Planting): Measured {
  const folder = plant(rule);
  try {
    return measure(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
const rules: readonly Planting[] = JSON.parse(readFileSync(file, 'utf8'));
const whole = measureWith({ name: 'nothing', edits: [] });
const columns = TIMEOUTS.map((seconds) => `T = ${seconds} s survives`);
console.log(`| Without | Seeds of ${seeds} that break | First promise | Requests | ${columns.join(' | ')} |`);
console.log(`| --- | --- | --- | --- | ${columns.map(() => '---').join(' | ')} |`);
function print(name: string, { broken, first, requests, worst }: Measured): void {
  const cells = [name, broken, first, percent(requests / whole.requests), ...worst.map(percent)];
  console.log(`| ${cells.join(' | ')} |`);
}
print('nothing', whole);
for (const rule of rules) print(rule.name, measureWith(rule));
