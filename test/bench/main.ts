import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createBook, type Report } from './book.ts';
import { runFaults } from './faults.ts';
import { runLong } from './long-run.ts';
import { runLook } from './look.ts';
import { runLoop } from './loop.ts';
import { machineFacts } from './machine.ts';
import { runFleets } from './paced.ts';
import { killAll } from './processes.ts';
import { createRig } from './rig.ts';
import { runSaturated } from './saturated.ts';
import { runSerial } from './serial.ts';
import { runSmall } from './small.ts';
import type { Stage } from './stage.ts';
import { renderReport } from './table.ts';
import { judgeTargets } from './targets.ts';

const STAGES = {
  small: runSmall,
  fleets: runFleets,
  saturated: runSaturated,
  faults: runFaults,
  serial: runSerial,
  loop: runLoop,
  look: runLook,
  long: runLong,
} as const;
type StageName = keyof typeof STAGES;

const HELP = `npm run bench -- [--rounds N] [--minutes N] [--quick] [--only STAGE,...] [--out FILE] [--doc FILE]
npm run bench -- --doc FILE        writes the tables of an earlier run into docs/performance.md

--rounds N    rounds of what is compared (default 5)
--minutes N   length of the long run with 10,000 markets (default 1)
--quick       a look: two rounds, short windows
--only LIST   of ${Object.keys(STAGES).join(', ')}
--out FILE    where the JSON goes (default: a file under the directory for temporary files)
`;

const DOCUMENT = fileURLToPath(new URL('../../docs/performance.md', import.meta.url));
const MARKS = /(<!-- measured: begin -->\n)[^]*?(\n<!-- measured: end -->)/;

/** Puts the tables of a report where the document has its marks. */
function refreshDocument(file: string): void {
  const report = JSON.parse(readFileSync(file, 'utf8')) as Report;
  const text = readFileSync(DOCUMENT, 'utf8');
  if (!MARKS.test(text))
    throw new Error('docs/performance.md has no marks "measured: begin" and "measured: end"');
  writeFileSync(
    DOCUMENT,
    text.replace(MARKS, (_, begin: string, end: string) => `${begin}\n${renderReport(report)}\n${end}`),
  );
}

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new Error(`--${name} is ${text}; allowed: numbers greater than 0`);
}

function stagesOf(list: string | undefined): StageName[] {
  const all = Object.keys(STAGES) as StageName[];
  const names = list?.split(',') ?? all;
  const unknown = names.find((name) => !all.includes(name as StageName));
  if (unknown !== undefined) throw new Error(`--only names ${unknown}; there are ${all.join(', ')}`);
  return all.filter((name) => names.includes(name));
}

/** As somebody else would repeat it: where the result went is all the same. */
function commandOf(args: readonly string[]): string {
  const kept = args.filter((arg, at) => !arg.startsWith('--out') && args[at - 1] !== '--out');
  return ['npm run bench', ...(kept.length > 0 ? ['--', ...kept] : [])].join(' ');
}

async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      minutes: { type: 'string', default: '1' },
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      out: { type: 'string', default: join(tmpdir(), 'killswitchd-bench.json') },
      doc: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return void process.stdout.write(HELP);
  if (values.doc !== undefined) return refreshDocument(values.doc);
  const { quick } = values;
  const rounds = Math.round(wholeNumber('rounds', values.rounds ?? (quick ? '2' : '5')));
  const names = stagesOf(values.only);
  const began = performance.now();
  const book = createBook();
  const facts = machineFacts(false);
  const rig = createRig(names.some((name) => name !== 'faults' && name !== 'serial'));
  const end = (signal: NodeJS.Signals) => void rig.close().then(() => process.kill(process.pid, signal));
  process.once('SIGINT', end);
  process.once('SIGTERM', end);
  const minutes = wholeNumber('minutes', values.minutes);
  const say = (line: string) => void process.stderr.write(`bench: ${line}\n`);
  const stage: Stage = { rig, book, rounds, quick, minutes, say };
  try {
    for (const name of names) {
      book.begin(0);
      await STAGES[name](stage).catch((error: unknown) => {
        book.skip(
          `${name}, or a part of it: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`,
        );
        process.exitCode = 1;
      });
      // What a stage that failed left running would be measured along with the next one.
      await killAll();
    }
  } finally {
    await rig.close();
  }
  const report: Report = {
    command: commandOf(args),
    at: new Date().toISOString(),
    tookMinutes: (performance.now() - began) / 60_000,
    machine: { ...facts, pinned: rig.cores.subject !== null },
    rounds,
    rows: book.rows(),
    notRun: book.notRun,
    targets: judgeTargets(book),
  };
  writeFileSync(values.out, `${JSON.stringify(report, null, 2)}\n`);
  process.stdout.write(`${renderReport(report)}\n`);
  say(`written to ${values.out}`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
