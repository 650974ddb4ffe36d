import { read, write } from '../docs/documents.ts';
import { table } from '../docs/markdown.ts';
import { figures, type Report, ratioOf, SUBJECTS, type SubjectName, spreadOf } from './book.ts';
import { FLEET_SIZES } from './fleets.ts';
import { drawCosts, drawSlack } from './picture.ts';
import { judgeTargets } from './targets.ts';

const MARKS = /(<!-- measured: begin -->\n)[^]*?(\n<!-- measured: end -->)/;
const PICTURES = `![CPU and memory over the number of markets](images/cost-of-growth.svg)

![Least slack over the answer time of the exchange](images/slack-over-answer-time.svg)`;

/** Puts tables and pictures where docs/performance.md has its marks. */
export function writeDocuments(report: Report): void {
  const file = 'docs/performance.md';
  const tables = `\n${renderReport(report)}\n\n${PICTURES}\n`;
  const measured = (_: string, begin: string, end: string) => `${begin}${tables}${end}`;
  write(file, read(file).replace(MARKS, measured));
  write('docs/images/cost-of-growth.svg', drawCosts(report.rows));
  write('docs/images/slack-over-answer-time.svg', drawSlack(report.rows));
}

/** The report as Markdown. */
export function renderReport(report: Report): string {
  return [
    table(['Command', report.command], Object.entries(report.facts)),
    costsOf(report),
    hardshipsOf(report),
    table(['Target', 'Measured', ''], judgeTargets(report.rows)),
    ...report.notRun.map((what) => `Not run: ${what}.`),
  ].join('\n\n');
}

const COSTS = [
  ['cpu', 'CPU seconds per 1,000 renewals', 3],
  ['core', 'CPU, % of a core', 2],
  ['rss', 'RSS, MB', 0],
  ['first', 'first timer armed, ms', 0],
  ['slack', 'least slack, % of T', 1],
] as const;

const PEERS = ['undici', 'floor', 'ccxt'] as const;

function costsOf({ rows }: Report): string {
  const body = FLEET_SIZES.flatMap((markets) =>
    COSTS.map(([what, title, decimals]) => {
      const id = `${what}/${markets}`;
      const costs = (['daemon', ...PEERS] as const).map((name) =>
        figures(spreadOf(rows, id, name), decimals),
      );
      const ratios = PEERS.map((to) => (what === 'slack' ? '' : figures(ratioOf(rows, id, to), 2)));
      return [`${markets.toLocaleString('en')}: ${title}`, ...costs, ...ratios];
    }),
  );
  const head = ['Markets', 'daemon', ...PEERS, ...PEERS.map((to) => `daemon / ${to}`)];
  return table(
    head,
    body.filter((row) => row.slice(1).some((cell) => cell !== '')),
  );
}

function hardshipsOf({ rows }: Report): string {
  const ids = Object.keys(rows).flatMap((id) => /^slack\/(T=.*|sick)$/.exec(id)?.[1] ?? []);
  const cell = (id: string, name: SubjectName): string => {
    const [slack, lapses] = ['slack', 'lapses'].map((what) => spreadOf(rows, `${what}/${id}`, name));
    if (slack === undefined) return '';
    return `${figures(slack, 1)}${lapses?.most === 0 ? '' : `, ${figures(lapses, 0)} lapses`}`;
  };
  const body = ids.toSorted().map((id) => [id, ...SUBJECTS.map((name) => cell(id, name))]);
  return table(['Least slack, % of T; answers after', ...SUBJECTS], body);
}
