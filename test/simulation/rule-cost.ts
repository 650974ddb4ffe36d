import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { paragraph, table } from '../docs/markdown.ts';
import { freshSeed } from './main.ts';
import { type Planting, plant, ROOT, RULES } from './planted.ts';

/**
 * What rules of the core cost and give. `rule-cost.json` has a list of `{ name, edits: [{ file, find, replace }] }`, each
 * of which takes one rule out. Prints a line for each: how many seeds break a promise without it, the first promise, the
 * requests without it beside those with it, and how long an outage may last. `--rule NAME` measures one rule, `--doc`
 * puts the table into docs/simulation.md.
 */
const DOC = new URL('../../docs/simulation.md', import.meta.url);
/** What `--doc` replaces. */
const BLOCK = /(<!-- rule cost -->)[^]*(<!-- \/rule cost -->)/;
const TIMEOUTS = [5, 15, 60, 600];

const { values: flags } = parseArgs({
  options: {
    seeds: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(freshSeed()) },
    jobs: { type: 'string', default: '2' },
    rule: { type: 'string', multiple: true },
    doc: { type: 'boolean', default: false },
  },
});

interface Measured {
  readonly broken: number;
  readonly first: string;
  readonly requests: number;
  /** The longest outage that is survived at the worst moment, as a share of T. */
  readonly refused: readonly number[];
  readonly blackHole: readonly number[];
}

interface Worst {
  readonly worst: number;
}

function measure(folder: string): Measured {
  const main = join(folder, 'test/simulation/main.ts');
  const { seed, seeds, jobs } = flags;
  const swarm = [main, 'simulate', '--no-shrink', '--seed', seed, '--seeds', seeds, '--jobs', jobs];
  const out = spawnSync(process.execPath, swarm, { encoding: 'utf8' }).stdout;
  const compare = [main, 'compare', '--alone', '--json', '--samples', '1'];
  const compared: { timeouts: { rules: { survival: { refused: Worst; 'black hole': Worst } }[] }[] } =
    JSON.parse(execFileSync(process.execPath, compare, { encoding: 'utf8' }));
  const survivals = compared.timeouts.flatMap(({ rules }) => rules.map(({ survival }) => survival));
  return {
    broken: Number(/broke a promise: (\d+)/.exec(out)?.[1] ?? 0),
    first: /^seed \d+: ([^,]+),/m.exec(out)?.[1] ?? '',
    requests: Number(/(\d+) requests to/.exec(out)?.[1]),
    refused: survivals.map(({ refused }) => refused.worst),
    blackHole: survivals.map(({ 'black hole': { worst } }) => worst),
  };
}

function measureWith(rule: Planting): Measured {
  const changed = plant(rule);
  const folder = mkdtempSync(join(tmpdir(), 'rule-cost-'));
  try {
    for (const part of ['src', 'test/simulation', 'package.json'])
      cpSync(join(ROOT, part), join(folder, part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    for (const [file, text] of changed) writeFileSync(join(folder, file), text);
    return measure(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const percent = (share: number) => (100 * share).toFixed(1);

function row(name: string, { broken, first, requests, refused, blackHole }: Measured): string[] {
  const survives = refused.map((share, place) => `${percent(share)} / ${percent(blackHole[place] ?? 0)}`);
  const cells = [name, String(broken), first, percent(requests / whole.requests), ...survives];
  console.log(cells.join(' | '));
  return cells;
}

const rules = RULES.filter(({ name }) => flags.rule?.includes(name) ?? true);
const whole = measureWith({ name: 'nothing', edits: [] });
const head = [
  'Without',
  'Seeds',
  'First promise',
  'Requests',
  ...TIMEOUTS.map((seconds) => `T = ${seconds} s`),
];
const rows = [row('nothing', whole), ...rules.map((rule) => row(rule.name, measureWith(rule)))];
if (flags.doc) {
  const [withAll = [], ...without] = rows;
  const changes = ([, broken, , , ...survives]: readonly string[]) =>
    broken !== '0' || survives.some((cell, place) => cell !== withAll[place + 4]);
  const isNoticed = (share = '') => Math.abs(Number(share) - 100) >= 1;
  const quiet = without
    .filter((cells) => !changes(cells))
    .map(([name = '', , , share]) => (isNoticed(share) ? `${name} (${share})` : name));
  const measured = `Measured with ${flags.seeds} seeds from ${flags.seed} on.`;
  const others = `Without one of these no seed breaks and each outage is survived as before; the requests are in brackets\nwhere they differ by 1 % or more:`;
  const parts = [measured, table(head, [withAll, ...without.filter(changes)]), others, paragraph(quiet)];
  const text = readFileSync(DOC, 'utf8');
  writeFileSync(DOC, text.replace(BLOCK, `$1\n\n${parts.join('\n\n')}\n\n$2`));
}
