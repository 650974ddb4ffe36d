import { CASES } from '../contract/cases.ts';
import { ROWS, type Row, rowId } from '../contract/document.ts';
import { code, table } from './markdown.ts';

/** Each row of the API document with the titles of the tests that check it, one table per section. */
export function contractTables(): string {
  const sections = Map.groupBy(ROWS, ({ section }) => section);
  return [...sections]
    .map(
      ([section, rows]) => `## ${section}\n\n${table(['Row', 'What it says', 'Tests'], rows.map(toCells))}`,
    )
    .join('\n\n');
}

function toCells(row: Row): readonly string[] {
  const { kind, name, says } = row;
  const titles = CASES.filter((one) => one.rows.includes(rowId(row))).map(({ title }) => title);
  return [`${kind} ${code(name)}`, says, titles.join('; ')];
}
