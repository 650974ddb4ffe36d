import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { read } from '../docs/documents.ts';
import { ROOT } from '../process/program.ts';
import { reportOf } from './lint-sandbox.ts';

/** Lines of TypeScript that a folder of src may have. */
const FOLDERS: Readonly<Record<string, number>> = {
  '*.ts': 500,
  core: 2800,
  util: 200,
  liveness: 600,
  exchange: 2800,
  config: 1900,
  operator: 2100,
  telemetry: 1500,
  daemon: 800,
  cli: 2300,
  simulator: 3400,
};

type Row = readonly [what: string, found: number, allowed: number];

const linesOf = (path: string) => read(path).split('\n').length - 1;
const filesIn = (pattern: string) => globSync(pattern, { cwd: ROOT });
const sum = (paths: readonly string[]) => paths.reduce((lines, path) => lines + linesOf(path), 0);

/** The longest function of src in lines, and how many files import each other. */
function lintedRows(): Row[] {
  const directory = mkdtempSync(join(tmpdir(), 'killswitchd-numbers-'));
  const config = join(directory, 'oxlint.json');
  const rules = { 'max-lines-per-function': ['error', 1], 'import/no-cycle': 'error' };
  writeFileSync(
    config,
    JSON.stringify({ plugins: ['eslint', 'import'], categories: { correctness: 'off' }, rules }),
  );
  const diagnostics = reportOf(ROOT, ['-c', config, 'src']);
  rmSync(directory, { recursive: true });
  const lengths = diagnostics.map(({ message }) => Number(/\((\d+)\)/.exec(message)?.[1] ?? 0));
  return [
    ['longest function of src', Math.max(0, ...lengths), 70],
    ['files in import circles', diagnostics.filter(({ code }) => code?.includes('no-cycle')).length, 0],
  ];
}

function rows(): Row[] {
  const sources = filesIn('src/**/*.ts');
  const folders = Object.entries(FOLDERS).map(([folder, allowed]): Row => {
    const pattern = folder === '*.ts' ? 'src/*.ts' : `src/${folder}/*.ts`;
    return [pattern, sum(filesIn(pattern)), allowed];
  });
  return [
    ...folders,
    ['lines of src', sum(sources), 20_000],
    ['files of src', sources.length, 150],
    ['files of src/core', filesIn('src/core/*.ts').length, 14],
    ['files of src/config', filesIn('src/config/*.ts').length, 10],
    ['longest file of src', Math.max(...sources.map(linesOf)), 500],
    ...lintedRows(),
    ['lines of test', sum(filesIn('test/**/*.ts')), 28_000],
    ['lines of docs', sum(filesIn('docs/*.md')), 2500],
    ['lines of ARCHITECTURE.md', linesOf('ARCHITECTURE.md'), 200],
  ];
}

for (const [what, found, allowed] of rows()) {
  const isKept = found <= allowed;
  if (!isKept) process.exitCode = 1;
  const columns = [what.padEnd(26), String(found).padStart(7), 'of', String(allowed).padStart(6)];
  process.stdout.write(`${columns.join(' ')}  ${isKept ? 'kept' : 'MISSED'}\n`);
}
