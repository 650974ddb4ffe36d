import { readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { setPriority } from 'node:os';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parentPort } from 'node:worker_threads';
import { readKeptPlan } from './plan-reader.ts';
import { PLANTED, plant, ROOT, SEEDS } from './planted.ts';
import type * as Run from './run.ts';
import { planOf } from './shapes.ts';

// As in `worker.ts`.
setPriority(5);

/** Its number marks the modules of a hunt; they are loaded anew, with the bug in them. */
const PLANTED_AS = /\?bug=(\d+)$/;
const changed = PLANTED.map(plant);

/** Sources without their types, by their path: those that no bug changes are the same for all. */
const stripped = new Map<string, string>();
function strippedSource(path: string): string {
  const known = stripped.get(path) ?? stripTypeScriptTypes(readFileSync(path, 'utf8'));
  stripped.set(path, known);
  return known;
}

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    const [mark = ''] = PLANTED_AS.exec(context.parentURL ?? '') ?? [];
    return resolved.url.endsWith('.ts') ? { ...resolved, url: resolved.url + mark } : resolved;
  },
  load(url, context, next) {
    const [, number] = PLANTED_AS.exec(url) ?? [];
    if (number === undefined) return next(url, context);
    const path = fileURLToPath(url);
    const text = changed[Number(number)]?.get(relative(ROOT, path));
    const source = text === undefined ? strippedSource(path) : stripTypeScriptTypes(text);
    return { format: 'module', source, shortCircuit: true };
  },
});

/** What a hunt found. */
export interface Trail {
  /** The seed, or the file of the kept plan. */
  readonly where: number | string;
  /** The first promise that it breaks, and what was seen of it. */
  readonly broken: string;
}

/** What the bug breaks where it is known to; where that is not what it is known by, what breaks first in all seeds. */
async function hunt(number: number): Promise<Trail | null> {
  const bug = PLANTED[number];
  if (bug === undefined) throw new Error(`there is no bug ${number}`);
  const { runPlan }: typeof Run = await import(`./run.ts?bug=${number}`);
  const firstBroken = (where: number | string): Trail | null => {
    const plan = typeof where === 'number' ? planOf(where) : readKeptPlan(where);
    const [violation] = runPlan(plan, { first: true }).violations;
    return violation === undefined ? null : { where, broken: `${violation.invariant}: ${violation.text}` };
  };
  const known = firstBroken(bug.shownBy);
  // A change of the sources may have another seed show it: only then all of them are run.
  if (known?.broken.includes(bug.says)) return known;
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const found = firstBroken(seed);
    if (found !== null) return found;
  }
  return null;
}

parentPort?.on('message', (number: number) => {
  void hunt(number).then((trail) => parentPort?.postMessage(trail));
});
