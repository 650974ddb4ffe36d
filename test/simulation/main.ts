import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import type { CompareOptions } from './compare.ts';
import type { Plan } from './plan.ts';
import { parsePlan } from './plan-reader.ts';
import { runPlan } from './run.ts';
import { planOf } from './shapes.ts';
import { type Failing, freshSeed, runSwarm } from './threads.ts';

/** Exit codes: every promise held; the caller must correct something; a promise was broken. */
const OK = 0;
const USAGE = 64;
const BROKEN = 70;

type Say = (line: string) => void;

const SAYS_EVERY_SEEDS = 100;
const HOUR_MS = 3_600_000;

function whole(low: number, high: number) {
  return (given: string): number => {
    const value = /^\d{1,10}$/.test(given) ? Number(given) : Number.NaN;
    if (value >= low && value <= high) return value;
    throw new InvalidArgumentError(`allowed: a whole number from ${low} to ${high}`);
  };
}

/** Runs `simulate` or `compare` with its flags and resolves with the exit code. */
export async function main(given: readonly string[], out: Say, err: Say): Promise<number> {
  let code = OK;
  const program = new Command('npm run').exitOverride().configureOutput({
    writeOut: (text) => out(text.trimEnd()),
    writeErr: (text) => err(text.trimEnd()),
  });
  program
    .command('simulate')
    .description('seeded random faults on virtual time, every promise checked')
    .option('--seeds <count>', 'how many seeds to run', whole(1, 1e9), 100)
    .option('--seed <seed>', 'the first of them (default: drawn at random)', whole(0, 2 ** 32 - 1))
    .addOption(
      new Option('--plan <file>', 'run the plan in this JSON file instead').conflicts(['seeds', 'seed']),
    )
    .option('--jobs <threads>', 'threads to run them on', whole(1, 256), 2)
    .option('--out <folder>', 'where the shrunk plans of failing seeds go', '.')
    .option('--log', 'print every event of one seed, or of the plan')
    .action(async (flags: Flags) => {
      code = await simulate(flags, out, err);
    });
  program
    .command('compare')
    .description('renewal rules of well-known clients and our own through the same outages')
    .option('--samples <count>', 'outages per rule, timeout and kind', whole(1, 100_000), 200)
    .option('--seed <seed>', 'equal seeds give equal figures', whole(0, 2 ** 31), 1)
    .option('--round-trip-ms <ms>', 'round trip to the exchange', whole(1, 400), 100)
    .action(async (flags: Pick<CompareOptions, 'samples' | 'seed' | 'roundTripMs'>) => {
      // Loads the configuration too, which nobody else here needs.
      const { compareCommand } = await import('./compare.ts');
      compareCommand(flags, out);
    });
  try {
    await program.parseAsync(given, { from: 'user' });
    return code;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? OK : USAGE;
  }
}

interface Flags {
  readonly seeds: number;
  readonly seed?: number;
  readonly plan?: string;
  readonly jobs: number;
  readonly out: string;
  readonly log?: true;
}

async function simulate(flags: Flags, out: Say, err: Say): Promise<number> {
  const { seeds, seed: firstSeed = freshSeed(), log, plan: file, jobs: threads } = flags;
  if (file !== undefined) {
    const plan = readPlan(file);
    if (typeof plan !== 'string') return runOne(`plan ${file}`, plan, log ? out : undefined, out);
    err(`simulate: ${file}: ${plan}`);
    return USAGE;
  }
  if (log) return runOne(`seed ${firstSeed}`, planOf(firstSeed), out, out);
  // A long run that is broken off has named what it found.
  const onProgress = (done: number, failing: readonly Failing[]) => {
    if (done % SAYS_EVERY_SEEDS !== 0) return;
    const broken = [failing.length, ...failing.map(({ seed }) => seed)].join(' ');
    err(`${done} of ${seeds} seeds from ${firstSeed} on, failing: ${broken}`);
  };
  const done = await runSwarm({ firstSeed, seeds, threads, shrinks: true, onProgress });
  const hours = done.simulatedMs / HOUR_MS;
  const simulated = `${hours.toFixed(1)} h simulated, ${done.requests} requests to the exchange`;
  out(`${done.seeds} seeds from ${firstSeed} on, ${simulated}.`);
  out(`${(hours / Math.max(done.cpuSeconds, 0.001)).toFixed(2)} simulated hours per CPU second.`);
  const { failing } = done;
  out(failing.length === 0 ? 'Every promise held.' : `Seeds that broke a promise: ${failing.length}.`);
  for (const one of failing) describe(one, flags.out, out);
  return failing.length === 0 ? OK : BROKEN;
}

function runOne(name: string, plan: Plan, onLine: Say | undefined, out: Say): number {
  const { violation, simulatedMs, requests } = runPlan(plan, onLine);
  if (violation !== null)
    out(`BROKEN ${violation.invariant} at ${inSeconds(violation.atMs)}: ${violation.text}`);
  const held = violation === null ? 'every promise held' : 'a promise was broken';
  out(`${name}: ${inSeconds(simulatedMs)} simulated, ${requests} requests, ${held}.`);
  return violation === null ? OK : BROKEN;
}

function describe({ seed, violation, shrunk }: Failing, folder: string, out: Say): void {
  const { invariant, atMs, text } = violation;
  out(`seed ${seed}: ${invariant}, at ${inSeconds(atMs)}: ${text}`);
  if (shrunk === null) {
    out(`  not shrunk, others came first; replay: npm run simulate -- --seed ${seed} --log`);
    return;
  }
  const file = join(folder, `simulate-${seed}.json`);
  const found = `Seed ${seed} broke ${shrunk.violation.invariant}: ${shrunk.violation.text}`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, JSON.stringify({ found, ...shrunk.plan }));
  out(`  shrunk to ${shrunk.plan.faults.length} faults in ${shrunk.runs} runs: ${file}`);
  out(`  replay: npm run simulate -- --plan ${file} --log`);
}

/** The plan, or what is wrong with it. */
function readPlan(file: string): Plan | string {
  try {
    return parsePlan(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    return String(error);
  }
}

const inSeconds = (ms: number) => `${(ms / 1000).toFixed(3)} s`;

if (import.meta.main) {
  const lineTo = (stream: NodeJS.WriteStream) => (line: string) => void stream.write(`${line}\n`);
  process.exitCode = await main(process.argv.slice(2), lineTo(process.stdout), lineTo(process.stderr));
}
