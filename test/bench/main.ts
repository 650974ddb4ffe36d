import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createBook, type Report } from './book.ts';
import { runFleets, runIdle, runMemory, type Stage } from './fleets.ts';
import { machineFacts } from './machine.ts';
import { renderReport, writeDocuments } from './report.ts';
import { withRig } from './rig.ts';
import { runSlow } from './slow.ts';
import { runStarts } from './starts.ts';

const PARTS = { starts: runStarts, idle: runIdle, slow: runSlow, memory: runMemory, fleets: runFleets };
const ROUNDS = 3;
const HELP = `npm run bench -- [--quick] [--minutes N] [--only PART,...] [--out FILE] [--doc FILE]
--quick       a look: one round, short windows
--minutes N   length of the last window with 10,000 markets (default 0.2)
--only LIST   of ${Object.keys(PARTS).join(', ')}
--out FILE    where the JSON goes (default: a file under the directory for temporary files)
--doc FILE    measures nothing: writes tables and pictures of an earlier run into docs
`;
const say = (line: string) => void process.stderr.write(`bench: ${line}\n`);

type Measured = Omit<Report, 'command'>;

async function measure(parts: readonly string[], quick: boolean, minutes: number): Promise<Measured> {
  const began = performance.now();
  const facts = machineFacts();
  const { note, rows, notRun } = createBook();
  const attempt: Stage['attempt'] = async (what, work) => {
    await work().catch((error: Error) => {
      notRun.push(`${what}: ${error.message.split('\n')[0]}`);
      process.exitCode = 1;
    });
  };
  const shorter = (ms: number) => (quick ? ms / 3 : ms);
  const longMs = quick ? 5000 : minutes * 60_000;
  await withRig(async (rig) => {
    const stage = { rig, note, rounds: quick ? 1 : ROUNDS, longMs, shorter, say, attempt };
    for (const [name, run] of Object.entries(PARTS))
      if (parts.includes(name)) await attempt(name, () => run(stage));
  });
  const tookMinutes = (performance.now() - began) / 60_000;
  const when = `${new Date().toISOString().slice(0, 10)}, ${tookMinutes.toFixed(1)} min`;
  return { facts: { When: when, ...facts }, rows, notRun };
}

function refreshDocuments(file: string): void {
  // JSON knows no NaN.
  const orNaN = (_: string, value: unknown) => value ?? Number.NaN;
  writeDocuments(JSON.parse(readFileSync(file, 'utf8'), orNaN) as Report);
}

async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      minutes: { type: 'string', default: '0.2' },
      only: { type: 'string', default: Object.keys(PARTS).join(',') },
      out: { type: 'string', default: join(tmpdir(), 'killswitchd-bench.json') },
      doc: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return void process.stdout.write(HELP);
  if (values.doc !== undefined) return refreshDocuments(values.doc);
  const minutes = Number(values.minutes);
  if (!(minutes > 0 && minutes < Infinity))
    throw new Error(`--minutes is ${values.minutes}; allowed: numbers above 0`);
  const parts = values.only.split(',');
  const unknown = parts.find((name) => !Object.hasOwn(PARTS, name));
  if (unknown !== undefined)
    throw new Error(`--only names ${unknown}; there are ${Object.keys(PARTS).join(', ')}`);
  // Who measures for long learns before and not after it that the result has no place to go.
  appendFileSync(values.out, '');
  const kept = args.filter((arg, at) => !arg.startsWith('--out') && args[at - 1] !== '--out');
  const command = `\`${['npm run bench', ...(kept.length > 0 ? ['--', ...kept] : [])].join(' ')}\``;
  const report = { command, ...(await measure(parts, values.quick, minutes)) };
  process.stdout.write(`${renderReport(report)}\n`);
  writeFileSync(values.out, `${JSON.stringify(report, null, 2)}\n`);
  say(`written to ${values.out}`);
}

await main(process.argv.slice(2)).catch((error: Error) => {
  say(error.message);
  process.exitCode = 1;
});
