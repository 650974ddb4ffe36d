import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import type { Plan } from '../simulation/plan.ts';
import { parsePlan } from '../simulation/plan-reader.ts';
import { printPlan } from '../simulation/plan-text.ts';
import { planOf } from '../simulation/swarm.ts';
import { type Failing, type Progress, runSwarm, type SwarmResult } from '../simulation/swarm-run.ts';
import { runPlan } from '../simulation/world.ts';
import { type Edge, EXIT, type ExitCode } from './edge.ts';
import { wholeNumber } from './whole-number.ts';

interface Flags {
  readonly seeds?: number;
  readonly seed: number;
  readonly hours?: number;
  readonly plan?: string;
  readonly jobs: number;
  readonly out: string;
  readonly log?: boolean;
}

/** Something that the caller must correct. */
class FlagError extends Error {
  override readonly name = 'FlagError';
}

const SEEDS = 100;
const LAST_SEED = 2 ** 32 - 1;
const HOUR_MS = 3_600_000;
const PROGRESS_STEPS = 20;

/**
 * `simulate`: runs the whole daemon on virtual time against the simulated exchange and random faults, and checks the
 * invariants of the design after every event. Opens no connection. Ends with 0 where every promise held, with 70 where
 * one was broken, and with 64 for flags or a plan that make no sense.
 */
export function registerSimulate(program: Command, edge: Edge): void {
  program
    .command('simulate')
    .description('try to break the daemon: seeded random faults on virtual time, every promise checked')
    .option('--seeds <count>', `how many seeds to run (default: ${SEEDS})`, wholeNumber(1, LAST_SEED))
    .option('--seed <seed>', 'the first of them', wholeNumber(0, LAST_SEED), 1)
    .option('--hours <hours>', 'run seeds until so many hours were simulated', hours)
    .option('--plan <file>', 'run the plan in this JSON file instead of seeds')
    .option('--jobs <threads>', 'threads to run them on', wholeNumber(1, 256), 2)
    .option('--out <folder>', 'where the shrunk plans of failing seeds go', '.')
    .option('--log', 'print every event of one seed, or of the plan')
    .action(async (flags: Flags) => {
      try {
        edge.finish(await simulate(flags, edge));
      } catch (error) {
        if (!(error instanceof FlagError)) throw error;
        edge.err(`killswitchd simulate: ${error.message}`);
        edge.finish(EXIT.usage);
      }
    });
}

function simulate(flags: Flags, edge: Edge): Promise<ExitCode> | ExitCode {
  if (flags.plan !== undefined) {
    if (flags.seeds !== undefined || flags.hours !== undefined)
      throw new FlagError('--plan runs one plan; leave out --seeds and --hours');
    return runOne(`plan ${flags.plan}`, readPlan(flags.plan), flags.log === true, edge);
  }
  if (flags.log === true) {
    if ((flags.seeds ?? 1) > 1 || flags.hours !== undefined)
      throw new FlagError('--log prints the events of one seed; leave out --seeds and --hours');
    return runOne(`seed ${flags.seed}`, planOf(flags.seed), true, edge);
  }
  return runMany(flags, edge);
}

function runOne(name: string, plan: Plan, log: boolean, edge: Edge): ExitCode {
  const { violations, simulatedMs, requests } = runPlan(plan, log ? { onLine: edge.out } : {});
  for (const { invariant, atMs, text } of violations)
    edge.out(`BROKEN ${invariant} at ${inSeconds(atMs)}: ${text}`);
  const held = violations.length === 0 ? 'every promise held' : `${violations.length} broken promises`;
  edge.out(`${name}: ${inSeconds(simulatedMs)} simulated, ${requests} requests, ${held}.`);
  return violations.length === 0 ? EXIT.ok : EXIT.internal;
}

async function runMany(flags: Flags, edge: Edge): Promise<ExitCode> {
  const simulatedMs = flags.hours === undefined ? Number.POSITIVE_INFINITY : flags.hours * HOUR_MS;
  const unlimited = flags.hours === undefined ? SEEDS : LAST_SEED;
  const seeds = Math.min(flags.seeds ?? unlimited, LAST_SEED - flags.seed + 1);
  const result = await runSwarm({
    firstSeed: flags.seed,
    seeds,
    simulatedMs,
    threads: flags.jobs,
    onProgress: edge.terminal ? createProgressReport(seeds, simulatedMs, edge.err) : () => undefined,
  });
  for (const line of describeTotals(result)) edge.out(line);
  for (const failing of result.failing)
    for (const line of describeFailing(failing, flags.out)) edge.out(line);
  return result.failing.length === 0 ? EXIT.ok : EXIT.internal;
}

/** Says how far it is, a number of times in all. */
function createProgressReport(
  seeds: number,
  simulatedMs: number,
  say: (line: string) => void,
): (progress: Progress) => void {
  let said = 0;
  return (progress) => {
    const share = Math.max(progress.seeds / seeds, progress.simulatedMs / simulatedMs);
    const step = Math.floor(share * PROGRESS_STEPS);
    if (step <= said) return;
    said = step;
    const percent = `${Math.min(100, step * (100 / PROGRESS_STEPS))} %`.padStart(5);
    say(
      `${percent}  ${progress.seeds} seeds, ${inHours(progress.simulatedMs)} simulated, ${progress.failing} failing`,
    );
  };
}

function describeTotals({ seeds, simulatedMs, requests, cpuSeconds, failing }: SwarmResult): string[] {
  const speed = simulatedMs / HOUR_MS / Math.max(cpuSeconds, 0.001);
  const verdict =
    failing.length === 0 ? 'Every promise held.' : `Seeds that broke a promise: ${failing.length}.`;
  return [
    `${seeds} seeds, ${inHours(simulatedMs)} simulated, ${requests} requests to the exchange.`,
    `${speed.toFixed(2)} simulated hours per CPU second.`,
    verdict,
  ];
}

function describeFailing({ seed, violation, shrunk }: Failing, folder: string): string[] {
  const { invariant, atMs, text } = violation;
  const broken = `seed ${seed}: ${invariant}, at ${inSeconds(atMs)}: ${text}`;
  if (shrunk === null)
    return [broken, `  not shrunk, others came first; replay: killswitchd simulate --seed ${seed} --log`];
  const file = join(folder, `simulate-${seed}.json`);
  const found = `Seed ${seed} broke ${shrunk.violation.invariant}: ${shrunk.violation.text}`;
  write(file, printPlan({ found, ...shrunk.plan }));
  const faults = shrunk.plan.faults.length;
  return [
    broken,
    `  shrunk to ${faults} ${faults === 1 ? 'fault' : 'faults'} in ${shrunk.runs} runs: ${file}`,
    `  replay: killswitchd simulate --plan ${file} --log`,
  ];
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new FlagError(`--out: cannot write ${file}: ${whyNot(error)}`);
  }
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

function whyNot(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function hours(text: string): number {
  const value = /^\d{1,7}(\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN;
  if (value > 0) return value;
  throw new InvalidArgumentError(`Allowed: a number of hours such as 0.5 or 24.`);
}

function inSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(3)} s`;
}

function inHours(ms: number): string {
  return `${(ms / HOUR_MS).toFixed(1)} h`;
}
