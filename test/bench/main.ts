import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Book, createBook, type Report } from './book.ts';
import { runFaults } from './faults.ts';
import { positive, wholeNumber, writable } from './flags.ts';
import { runLong } from './long-run.ts';
import { runLook } from './look.ts';
import { runLoop } from './loop.ts';
import { machineFacts } from './machine.ts';
import { runFleets } from './paced.ts';
import { killAll } from './processes.ts';
import { type Rig, withRig } from './rig.ts';
import { runSerial } from './serial.ts';
import { runSmall } from './small.ts';
import type { Stage } from './stage.ts';
import { renderReport } from './table.ts';
import { judgeTargets } from './targets.ts';

const STAGES = {
  small: runSmall,
  fleets: runFleets,
  faults: runFaults,
  serial: runSerial,
  loop: runLoop,
  look: runLook,
  long: runLong,
} as const;
type StageName = keyof typeof STAGES;

const HELP = `npm run bench -- [--rounds N] [--minutes N] [--quick] [--only STAGE,...] [--out FILE] [--doc FILE]
npm run bench -- --doc FILE        writes the targets of an earlier run into docs/performance.md

--rounds N    rounds of what is compared, a whole number (default 5)
--minutes N   length of the long run with 10,000 markets, fractions allowed (default 1)
--quick       a look: two rounds, short windows
--only LIST   of ${Object.keys(STAGES).join(', ')}
--out FILE    where the JSON goes (default: a file under the directory for temporary files)
`;

const DOCUMENT = fileURLToPath(new URL('../../docs/performance.md', import.meta.url));
const MARKS = /(<!-- measured: begin -->\n)[^]*?(\n<!-- measured: end -->)/;

/** Puts the targets of a report where the document has its marks. */
function refreshDocument(file: string): void {
  const tables = tablesOf(file);
  const text = readFileSync(DOCUMENT, 'utf8');
  if (!MARKS.test(text))
    throw new Error('docs/performance.md has no marks "measured: begin" and "measured: end"');
  writeFileSync(
    DOCUMENT,
    text.replace(MARKS, (_, begin: string, end: string) => `${begin}\n${tables}\n${end}`),
  );
}

function tablesOf(file: string): string {
  const text = readFileSync(file, 'utf8');
  try {
    return renderReport(JSON.parse(text) as Report, 'targets');
  } catch (error) {
    throw new Error(`${file} holds no report of the bench`, { cause: error });
  }
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

interface Settings {
  readonly names: readonly StageName[];
  readonly rounds: number;
  readonly quick: boolean;
  readonly minutes: number;
  readonly out: string;
}

function say(line: string): void {
  process.stderr.write(`bench: ${line}\n`);
}

async function measureAll(rig: Rig, book: Book, { names, rounds, quick, minutes }: Settings): Promise<void> {
  const stage: Stage = { rig, book, rounds, quick, minutes, say };
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
}

async function report(args: readonly string[], settings: Settings): Promise<void> {
  const { names, rounds, out } = settings;
  const began = performance.now();
  const book = createBook();
  const facts = machineFacts(false);
  const wantsCcxt = names.some((name) => name !== 'faults' && name !== 'serial');
  const pinned = await withRig(wantsCcxt, async (rig) => {
    await measureAll(rig, book, settings);
    return rig.cores.subject !== null;
  });
  const measured: Report = {
    command: commandOf(args),
    at: new Date().toISOString(),
    tookMinutes: (performance.now() - began) / 60_000,
    machine: { ...facts, pinned },
    rounds,
    rows: book.rows(),
    notRun: book.notRun,
    targets: judgeTargets(book),
  };
  // First to whoever waits for it: a disk may have filled up meanwhile.
  process.stdout.write(`${renderReport(measured)}\n`);
  writeFileSync(out, `${JSON.stringify(measured, null, 2)}\n`);
  say(`written to ${out}`);
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
  await report(args, {
    names: stagesOf(values.only),
    rounds: wholeNumber('rounds', values.rounds ?? (quick ? '2' : '5')),
    quick,
    minutes: positive('minutes', values.minutes),
    out: writable('out', values.out),
  });
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
