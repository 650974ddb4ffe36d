import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { paragraph, table } from '../docs/markdown.ts';
import type * as Compare from './compare.ts';
import { COMPARED_TIMEOUTS_SECONDS } from './compare.ts';
import { RULES } from './planted.ts';
import { importPlanted } from './planting.ts';
import { freshSeed, runSwarm } from './threads.ts';

/**
 * What rules of the core cost and give. `rule-cost.json` has a list of `{ name, edits: [{ file, find, replace }] }`, each
 * of which takes one rule out. Prints a line for each: how many seeds break a promise without it, the first promise, the
 * requests without it beside those with it, and how long an outage may last. `--rule NAME` measures one rule, `--doc`
 * puts the table into docs/simulation.md.
 */
const DOC = new URL('../../docs/simulation.md', import.meta.url);
/** What `--doc` replaces. */
const BLOCK = /(<!-- rule cost -->)[^]*(<!-- \/rule cost -->)/;
/** The rule draws nothing at random: one life shows all of it. */
const OUTAGES = { samples: 1, phases: 12, lives: 1, seed: 1, roundTripMs: 100 };

const { values: flags } = parseArgs({
  options: {
    seeds: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(freshSeed()) },
    jobs: { type: 'string', default: '2' },
    rule: { type: 'string', multiple: true },
    doc: { type: 'boolean', default: false },
  },
});

type Measured = Awaited<ReturnType<typeof measure>>;

/** Without the rule of this name; with all of them where none is given. */
async function measure(planted?: string) {
  const [firstSeed = 0, seeds = 0, threads = 0] = [flags.seed, flags.seeds, flags.jobs].map(Number);
  const { failing, requests } = await runSwarm({ firstSeed, seeds, threads, planted });
  const { compareAt, PRODUCTION_RULE } = await (planted === undefined
    ? import('./compare.ts')
    : importPlanted<typeof Compare>('compare.ts', planted));
  return {
    broken: failing.length,
    first: failing[0]?.violation.invariant ?? '',
    requests,
    /** The longest outage that is survived at the worst moment, as a share of T. */
    survivals: COMPARED_TIMEOUTS_SECONDS.flatMap((seconds) =>
      compareAt(seconds, OUTAGES, [PRODUCTION_RULE]).rows.map(({ survival }) => survival),
    ),
  };
}

const percent = (share: number) => (100 * share).toFixed(1);

function row(name: string, { broken, first, requests, survivals }: Measured): string[] {
  const survives = survivals.map(
    ({ refused, 'black hole': hole }) => `${percent(refused.worst)} / ${percent(hole.worst)}`,
  );
  const cells = [name, String(broken), first, percent(requests / whole.requests), ...survives];
  console.log(cells.join(' | '));
  return cells;
}

const rules = RULES.filter(({ name }) => flags.rule?.includes(name) ?? true);
const whole = await measure();
const head = [
  'Without',
  'Seeds',
  'First promise',
  'Requests',
  ...COMPARED_TIMEOUTS_SECONDS.map((seconds) => `T = ${seconds} s`),
];
const rows = [row('nothing', whole)];
for (const { name } of rules) rows.push(row(name, await measure(name)));
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
