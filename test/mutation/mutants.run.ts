import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import type { Kept } from './collect.ts';
import type { Explained } from './explain.ts';
import { EXPLAINED } from './explained.ts';
import type { Mutant } from './instrument.ts';
import { createSwitchboard } from './switchboard.ts';

const FOLDERS = ['core', 'scenario'].map((name) => join(import.meta.dirname, '..', name));
/** Runs of the simulation that a mutant has to get through besides. */
const SEEDS = 12;
const ANSWER_WITHIN_MS = 5000;
const LEAST_SCORE = 0.9;
/** Tests up to this length are asked about every mutant, longer ones only about those that got through them. */
const QUICK_MS = 60;

interface Timed extends Kept {
  readonly tookMs: number;
  readonly loops: number;
  readonly reached: ReadonlySet<number>;
}

const board = createSwitchboard();
Object.assign(globalThis, { mutation: board });
fc.configureGlobal({ endOnFailure: true });

/** Loads the core and its tests anew, with the mutant that is active. */
async function load(): Promise<Kept[]> {
  vi.resetModules();
  for (const folder of FOLDERS) {
    const files = readdirSync(folder).filter((name) => name.endsWith('.test.ts'));
    for (const name of files.toSorted()) await import(join(folder, name));
  }
  const { takeKept } = await import('./collect.ts');
  const { runPlan } = await import('../../src/simulation/world.ts');
  const { planOf } = await import('../../src/simulation/swarm.ts');
  const seeds = Array.from({ length: SEEDS }, (_, index) => ({
    name: `seed ${index + 1}`,
    run: () => {
      if (runPlan(planOf(index + 1)).violations.length > 0) throw new Error('breaks a promise');
    },
  }));
  return [...takeKept(), ...seeds];
}

/** True where the test passes. */
async function passes({ run }: Kept, id: number, mostLoops: number): Promise<boolean> {
  board.activate(id, mostLoops);
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const result = run();
    if (!(result instanceof Promise)) return true;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('no end')), ANSWER_WITHIN_MS);
    });
    await Promise.race([result, late]);
    return true;
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}

/** Of this process: how busy the machine is with other things does not matter. */
const cpuMs = (): number => process.cpuUsage().user / 1000;

/** What every test comes by when nothing is changed, the quickest first. */
async function measure(tests: readonly Kept[]): Promise<Timed[]> {
  const timed: Timed[] = [];
  for (const one of tests) {
    const firstMs = await timeOf(one);
    // Whoever calls something for the first time waits for its compilation.
    const again = firstMs > QUICK_MS && firstMs < 5 * QUICK_MS;
    timed.push({
      ...one,
      tookMs: again ? Math.min(firstMs, await timeOf(one)) : firstMs,
      loops: board.loops(),
      reached: new Set(board.reached()),
    });
  }
  return timed.toSorted((one, other) => one.tookMs - other.tookMs);
}

async function timeOf(test: Kept): Promise<number> {
  const from = cpuMs();
  const good = await passes(test, 0, Number.POSITIVE_INFINITY);
  if (!good) throw new Error(`fails without any change: ${test.name}`);
  return cpuMs() - from;
}

/** Where a quick look is all that is asked for, or all that an explained mutant is worth. */
function within(tests: readonly Timed[], quick: boolean): readonly Timed[] {
  return quick ? tests.filter(({ tookMs }) => tookMs <= QUICK_MS) : tests;
}

const allowed = ({ loops }: Timed): number => 10 * loops + 10_000;

/** The name of the test that notices, or null where the mutant survives. */
async function findKiller(mutant: Mutant, tests: readonly Timed[]): Promise<string | null> {
  if (!mutant.fixed) {
    for (const one of tests) {
      if (one.reached.has(mutant.id) && !(await passes(one, mutant.id, allowed(one)))) return one.name;
    }
    return null;
  }
  board.activate(mutant.id, 1_000_000);
  const anew = await load().catch(() => null);
  if (anew === null) return 'loading it';
  const byName = new Map(anew.map((one) => [one.name, one]));
  for (const one of tests) {
    const again = byName.get(one.name);
    if (again === undefined || !(await passes(again, mutant.id, allowed(one)))) return one.name;
  }
  return null;
}

const explains = (one: Explained, { file, code, from, to }: Mutant): boolean =>
  one.file === file && one.code === code && one.from === from && one.to === to;

const nameOf = ({ file, line, code, from, to }: Mutant): string =>
  `${file}:${line} ${from} => ${to} in: ${code}`;

test('the tests notice what is changed in the core', async () => {
  const quick = process.env['MUTATE_QUICKLY'] === 'yes';
  const files = (process.env['MUTATED'] ?? '').split(',');
  const tests = await measure(await load());
  const say = (line: string): void => {
    process.stdout.write(`${line}\n`);
  };
  const unused = new Set(EXPLAINED.filter(({ file }) => files.includes(file)));
  let killed = 0;
  let counted = 0;
  let explained = 0;
  const unexplained: string[] = [];
  for (const file of files) {
    const mutants = board.mutants().filter((mutant) => mutant.file === file);
    const from = performance.now();
    let dead = 0;
    let known = 0;
    for (const mutant of mutants) {
      const reason = EXPLAINED.find((one) => explains(one, mutant));
      const killer = await findKiller(mutant, within(tests, quick || reason !== undefined));
      if (killer !== null) {
        dead += 1;
        continue;
      }
      if (reason !== undefined) {
        unused.delete(reason);
        known += 1;
      } else {
        unexplained.push(nameOf(mutant));
        say(`survives: ${nameOf(mutant)}`);
      }
    }
    killed += dead;
    counted += mutants.length;
    explained += known;
    const took = ((performance.now() - from) / 1000).toFixed(0);
    say(`${file}: ${dead} of ${mutants.length} noticed, ${known} explained (${took} s)`);
  }
  const needless = [...unused].map(({ file, code, from, to }) => `${file} ${from} => ${to} in: ${code}`);
  const score = `${((100 * killed) / counted).toFixed(1)} %`;
  say(`${killed} of ${counted} noticed: ${score}; ${explained} of the other ${counted - killed} explained`);
  expect(needless, 'explained, but noticed or gone').toEqual([]);
  expect(unexplained, 'neither noticed nor explained').toEqual([]);
  expect(killed / counted).toBeGreaterThanOrEqual(LEAST_SCORE);
});
