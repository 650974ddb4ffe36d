import type { Report, Row } from './book.ts';
import { pairedRatio, type Spread, spread } from './statistics.ts';
import { SUBJECTS, type SubjectName } from './subject.ts';

const RATIO_TO: readonly SubjectName[] = ['undici', 'ccxt', 'floor'];

function figures({ median, least, most, rounds }: Spread, decimals: number): string {
  if (rounds === 0) return '';
  const figure = (value: number) => value.toFixed(decimals);
  return rounds === 1 ? figure(median) : `${figure(median)} (${figure(least)}–${figure(most)})`;
}

function isCompared({ values }: Row): boolean {
  return Object.keys(values).length > 1;
}

/** A Markdown table, with columns as wide as they need to be. */
export function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) =>
    Math.max(3, ...[head, ...rows].map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`;
  return [line(head), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...rows.map(line)].join(
    '\n',
  );
}

function compared(rows: readonly Row[]): string {
  const head = ['Median (least–most)', ...SUBJECTS, ...RATIO_TO.map((to) => `daemon / ${to}`)];
  const body = rows.filter(isCompared).map((row) => {
    const { values, decimals } = row;
    const daemon = values.daemon;
    const cells = SUBJECTS.map((subject) => figures(spread(values[subject] ?? []), decimals));
    const ratios = RATIO_TO.map((to) => {
      const other = values[to];
      if (!isRatio(row) || daemon === undefined || other === undefined) return '';
      return figures(pairedRatio(daemon, other), 2);
    });
    return [titleOf(row), ...cells, ...ratios];
  });
  return tableOf(head, body);
}

/** Only costs are worth dividing. */
function isRatio({ id }: Row): boolean {
  return /^(cpu|rss|core)/.test(id);
}

function titleOf({ title, unit }: Row): string {
  return unit === '' ? title : `${title} [${unit}]`;
}

function alone(rows: readonly Row[]): string {
  const body = rows
    .filter((row) => !isCompared(row))
    .map((row) => [titleOf(row), figures(spread(row.values.daemon ?? []), row.decimals)]);
  return tableOf(['The daemon alone', 'Median (least–most)'], body);
}

const WORD = new Map([
  [true, 'met'],
  [false, 'missed'],
  [null, 'not run'],
]);

/** The report as Markdown: all of it for a terminal, run and targets for the document. */
export function renderReport(report: Report, part: 'all' | 'targets' = 'all'): string {
  const { machine, rows, targets, notRun } = report;
  const { cpu, cores, memoryGiB, node, undici, openssl, pinned, loadBefore } = machine;
  const where = pinned ? 'subject and exchange each on a core of its own' : 'nothing pinned to a core';
  const facts = tableOf(
    ['Run', ''],
    [
      ['Command', `\`${report.command}\``],
      ['When', `${report.at.slice(0, 10)}, ${report.tookMinutes.toFixed(1)} min, ${report.rounds} rounds`],
      ['Machine', `${cores} cores of ${cpu}, ${memoryGiB} GiB; ${where}`],
      ['Runtime', `Node ${node}, undici ${undici ?? 'none'} in it, OpenSSL ${openssl}`],
      ['Load before', loadBefore.toFixed(2)],
    ],
  );
  return [
    facts,
    ...(part === 'all' ? [compared(rows), alone(rows)] : []),
    tableOf(
      ['Target', 'Measured', ''],
      targets.map(({ says, measured, met }) => [
        says.replaceAll('<=', '≤').replaceAll('>=', '≥'),
        measured,
        WORD.get(met) ?? '',
      ]),
    ),
    ...notRun.map((what) => `Not run: ${what}.`),
  ].join('\n\n');
}
