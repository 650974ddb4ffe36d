import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Plan } from './plan.ts';
import { parsePlan, printPlan } from './plan-reader.ts';
import { runPlan } from './run.ts';
import { planOf } from './shapes.ts';
import { type Failing, type Progress, runSwarm, type SwarmOptions } from './threads.ts';

/** Exit codes: every promise held; the caller must correct something; a promise was broken. */
const OK = 0;
const USAGE = 64;
const BROKEN = 70;

/** Where the commands write their lines. */
export interface Terminal {
  readonly out: (line: string) => void;
  readonly err: (line: string) => void;
  /** Standard error is looked at: progress is welcome. */
  readonly watched: boolean;
}

/** Something that the caller must correct. */
class FlagError extends Error {}

const HELP = `npm run simulate -- [flags]    seeded random faults on virtual time, every promise checked
  --seeds COUNT    how many seeds to run (default: 100)
  --seed SEED      the first of them (default: drawn at random)
  --hours HOURS    run seeds until so many hours were simulated
  --plan FILE      run the plan in this JSON file instead of seeds
  --first          end at the first seed that breaks a promise, and do not shrink it
  --no-shrink      only name the seeds that break a promise
  --jobs THREADS   threads to run them on (default: 2)
  --out FOLDER     where the shrunk plans of failing seeds go (default: .)
  --log            print every event of one seed, or of the plan

npm run compare -- [flags]     renewal rules of well-known clients and our own through the same outages
  --json           as JSON
  --alone          our own rule without the others
  --samples COUNT  outages at a random phase per rule, timeout and kind (default: 200)
  --seed SEED      equal seeds give equal figures (default: 1)
  --round-trip MS  round trip to the exchange, milliseconds (default: 100)`;

const SEEDS = 100;
const LAST_SEED = 2 ** 32 - 1;
const HOUR_MS = 3_600_000;
const PROGRESS_STEPS = 20;

/** A first seed that nobody has run: known seeds hold long before fresh ones do. */
export function freshSeed(): number {
  return Math.floor(Math.random() * (LAST_SEED / 2));
}

/** Runs `simulate` or `compare` with its flags and resolves with the exit code. */
export async function main(given: readonly string[], terminal: Terminal): Promise<number> {
  const [command, ...args] = given;
  try {
    if (args.includes('--help')) {
      terminal.out(HELP);
      return OK;
    }
    if (command === 'simulate') return await simulate(args, terminal);
    if (command === 'compare') return await compare(args, terminal);
    throw new FlagError(`the command is ${command ?? 'missing'}; allowed: simulate, compare`);
  } catch (error) {
    const isUnknown =
      error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
    if (!(isUnknown || error instanceof FlagError)) throw error;
    terminal.err(`${command}: ${whyNot(error).split('\n')[0]}`);
    return USAGE;
  }
}

const TEXT = { type: 'string' } as const;
const SWITCH = { type: 'boolean', default: false } as const;

function whole(name: string, given: string, low: number, high: number): number {
  const value = /^\d{1,10}$/.test(given) ? Number(given) : Number.NaN;
  if (value >= low && value <= high) return value;
  throw new FlagError(`--${name} is ${given}; allowed: a whole number from ${low} to ${high}`);
}

async function compare(args: string[], { out }: Terminal): Promise<number> {
  const options = { samples: TEXT, seed: TEXT, 'round-trip': TEXT, json: SWITCH, alone: SWITCH };
  const { json, alone, samples = '200', seed = '1', ...flags } = parseArgs({ args, options }).values;
  // Loads the configuration too, which nobody else here needs.
  const { compareCommand } = await import('./compare-report.ts');
  const given = {
    json,
    alone,
    samples: whole('samples', samples, 1, 100_000),
    seed: whole('seed', seed, 0, 2 ** 31),
    roundTripMs: whole('round-trip', flags['round-trip'] ?? '100', 1, 400),
  };
  compareCommand(given, out);
  return OK;
}

async function simulate(args: string[], terminal: Terminal): Promise<number> {
  const texts = { seeds: TEXT, seed: TEXT, hours: TEXT, plan: TEXT, jobs: TEXT, out: TEXT };
  const options = { ...texts, first: SWITCH, log: SWITCH, 'no-shrink': SWITCH };
  const { values: flags } = parseArgs({ args, options });
  const { plan, log, first, jobs = '2' } = flags;
  const most = flags.seeds === undefined ? undefined : whole('seeds', flags.seeds, 1, LAST_SEED);
  const hours = flags.hours === undefined ? undefined : readHours(flags.hours);
  if (plan !== undefined) {
    if (most !== undefined || hours !== undefined)
      throw new FlagError('--plan runs one plan; leave out --seeds and --hours');
    return runOne(`plan ${plan}`, readPlan(plan), log, terminal);
  }
  const firstSeed = flags.seed === undefined ? freshSeed() : whole('seed', flags.seed, 0, LAST_SEED);
  if (log) {
    if ((most ?? 1) > 1 || hours !== undefined)
      throw new FlagError('--log prints the events of one seed; leave out --seeds and --hours');
    return runOne(`seed ${firstSeed}`, planOf(firstSeed), true, terminal);
  }
  const swarm = {
    firstSeed,
    seeds: Math.min(most ?? (hours === undefined ? SEEDS : LAST_SEED), LAST_SEED - firstSeed + 1),
    simulatedMs: (hours ?? Number.POSITIVE_INFINITY) * HOUR_MS,
    threads: whole('jobs', jobs, 1, 256),
    first,
    shrinks: !first && !flags['no-shrink'],
  };
  return runMany(swarm, flags.out ?? '.', terminal);
}

function runOne(name: string, plan: Plan, log: boolean, { out }: Terminal): number {
  const { violations, simulatedMs, requests } = runPlan(plan, log ? { onLine: out } : {});
  for (const { invariant, atMs, text } of violations)
    out(`BROKEN ${invariant} at ${inSeconds(atMs)}: ${text}`);
  const held = violations.length === 0 ? 'every promise held' : `${violations.length} broken promises`;
  out(`${name}: ${inSeconds(simulatedMs)} simulated, ${requests} requests, ${held}.`);
  return violations.length === 0 ? OK : BROKEN;
}

async function runMany(
  swarm: SwarmOptions & { readonly simulatedMs: number },
  folder: string,
  { out, err, watched }: Terminal,
): Promise<number> {
  let said = 0;
  /** Says how far it is, a number of times in all. */
  function onProgress({ seeds, simulatedMs, failing }: Progress): void {
    const share = Math.max(seeds / swarm.seeds, simulatedMs / swarm.simulatedMs);
    const step = Math.floor(share * PROGRESS_STEPS);
    if (!watched || step <= said) return;
    said = step;
    const percent = `${Math.min(100, step * (100 / PROGRESS_STEPS))} %`.padStart(5);
    err(`${percent}  ${seeds} seeds, ${inHours(simulatedMs)} simulated, ${failing} failing`);
  }
  const { seeds, simulatedMs, requests, cpuSeconds, failing } = await runSwarm({ ...swarm, onProgress });
  const speed = simulatedMs / HOUR_MS / Math.max(cpuSeconds, 0.001);
  const simulated = inHours(simulatedMs);
  out(
    `${seeds} seeds from ${swarm.firstSeed} on, ${simulated} simulated, ${requests} requests to the exchange.`,
  );
  out(`${speed.toFixed(2)} simulated hours per CPU second.`);
  out(failing.length === 0 ? 'Every promise held.' : `Seeds that broke a promise: ${failing.length}.`);
  for (const one of failing) for (const line of describeFailing(one, folder)) out(line);
  return failing.length === 0 ? OK : BROKEN;
}

function describeFailing({ seed, violation, shrunk }: Failing, folder: string): string[] {
  const { invariant, atMs, text } = violation;
  const broken = `seed ${seed}: ${invariant}, at ${inSeconds(atMs)}: ${text}`;
  if (shrunk === null)
    return [broken, `  not shrunk, others came first; replay: npm run simulate -- --seed ${seed} --log`];
  const file = join(folder, `simulate-${seed}.json`);
  const found = `Seed ${seed} broke ${shrunk.violation.invariant}: ${shrunk.violation.text}`;
  try {
    writeFileSync(file, printPlan({ found, ...shrunk.plan }));
  } catch (error) {
    throw new FlagError(`--out: cannot write ${file}: ${whyNot(error)}`, { cause: error });
  }
  const faults = shrunk.plan.faults.length;
  return [
    broken,
    `  shrunk to ${faults} ${faults === 1 ? 'fault' : 'faults'} in ${shrunk.runs} runs: ${file}`,
    `  replay: npm run simulate -- --plan ${file} --log`,
  ];
}

function readPlan(file: string): Plan {
  let input: unknown;
  try {
    input = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new FlagError(`--plan: cannot read ${file} as JSON: ${whyNot(error)}`);
  }
  const parsed = parsePlan(input);
  if (!parsed.ok) throw new FlagError(`--plan: ${file}: ${parsed.problem}`);
  return parsed.plan;
}

function readHours(text: string): number {
  const value = /^\d{1,7}(\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN;
  if (value > 0) return value;
  throw new FlagError(`--hours is ${text}; allowed: a number of hours such as 0.5 or 24`);
}

const whyNot = (error: unknown) => (error instanceof Error ? error.message : String(error));
const inSeconds = (ms: number) => `${(ms / 1000).toFixed(3)} s`;
const inHours = (ms: number) => `${(ms / HOUR_MS).toFixed(1)} h`;

if (import.meta.main) {
  process.exitCode = await main(process.argv.slice(2), {
    out: (line) => process.stdout.write(`${line}\n`),
    err: (line) => process.stderr.write(`${line}\n`),
    watched: process.stderr.isTTY,
  });
}
