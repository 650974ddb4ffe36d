import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { figures, type Report, ratioOf, SUBJECTS, spreadOf } from './book.ts';
import { FLEET_SIZES } from './fleets.ts';
import { drawCosts, drawSlack } from './picture.ts';
import { judgeTargets } from './targets.ts';

const DOCS = join(import.meta.dirname, '../../docs');
const MARKS = /(<!-- measured: begin -->\n)[^]*?(\n<!-- measured: end -->)/;
const PICTURES = `![CPU and memory over the number of markets](images/cost-of-growth.svg)

![Least slack over the answer time of the exchange](images/slack-over-answer-time.svg)`;

/** Puts tables and pictures where docs/performance.md has its marks. */
export function writeDocuments(report: Report): void {
  const file = join(DOCS, 'performance.md');
  const tables = `\n${renderReport(report)}\n\n${PICTURES}\n`;
  const text = readFileSync(file, 'utf8');
  writeFileSync(
    file,
    text.replace(MARKS, (_, begin: string, end: string) => `${begin}${tables}${end}`),
  );
  writeFileSync(join(DOCS, 'images/cost-of-growth.svg'), drawCosts(report.rows));
  writeFileSync(join(DOCS, 'images/slack-over-answer-time.svg'), drawSlack(report.rows));
}

/** The report as Markdown. */
export function renderReport(report: Report): string {
  return [
    tableOf(['Command', report.command], Object.entries(report.facts)),
    costsOf(report),
    hardshipsOf(report),
    tableOf(['Target', 'Measured', ''], judgeTargets(report.rows)),
    ...report.notRun.map((what) => `Not run: ${what}.`),
  ].join('\n\n');
}

/** A Markdown table, with columns as wide as they need to be. */
function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, at) => Math.max(3, ...[head, ...rows].map((row) => row[at]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

const COSTS = [
  ['cpu', 'CPU seconds per 1,000 renewals', 3],
  ['core', 'CPU, % of a core', 2],
  ['rss', 'RSS, MB', 0],
  ['first', 'first timer armed, ms', 0],
  ['all', 'all timers armed, ms', 0],
  ['slack', 'least slack, % of T', 1],
] as const;

function costsOf({ rows }: Report): string {
  const body = FLEET_SIZES.flatMap((markets) =>
    COSTS.map(([what, title, decimals]) => {
      const id = `${what}/${markets}`;
      const ratio = (to: 'undici' | 'floor' | 'ccxt') =>
        what === 'slack' ? '' : figures(ratioOf(rows, id, to), 2);
      const of = (['daemon', 'undici', 'floor', 'ccxt'] as const).map((name) =>
        figures(spreadOf(rows, id, name), decimals),
      );
      return [
        `${markets.toLocaleString('en')}: ${title}`,
        ...of,
        ratio('undici'),
        ratio('floor'),
        ratio('ccxt'),
      ];
    }),
  );
  const head = [
    'Markets',
    'daemon',
    'undici',
    'floor',
    'ccxt',
    'daemon / undici',
    'daemon / floor',
    'daemon / ccxt',
  ];
  return tableOf(
    head,
    body.filter((row) => row.slice(1).some((cell) => cell !== '')),
  );
}

function hardshipsOf({ rows }: Report): string {
  const ids = Object.keys(rows).flatMap((id) => /^slack\/(T=.*|sick)$/.exec(id)?.[1] ?? []);
  const body = ids.toSorted().flatMap((id) =>
    SUBJECTS.map((name) => {
      const [slack, lapses] = ['slack', 'lapses'].map((what) =>
        figures(spreadOf(rows, `${what}/${id}`, name), 1),
      );
      return [id, name, slack ?? '', lapses ?? ''];
    }),
  );
  const head = ['Timeout, answers after', 'Subject', 'Least slack, % of T', 'Lapses'];
  return tableOf(
    head,
    body.filter(([, , slack]) => slack !== ''),
  );
}
