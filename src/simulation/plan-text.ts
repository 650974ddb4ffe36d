import type { Plan } from './plan.ts';

const LINE_WIDTH = 110;

/** A plan as JSON for a file: a line for each field, market, daemon and fault, as the formatter would set it. */
export function printPlan(plan: Plan): string {
  const fields = Object.entries(plan).map(([name, value]) =>
    printField(`  ${JSON.stringify(name)}: `, value),
  );
  return `{\n${fields.join(',\n')}\n}\n`;
}

function printField(start: string, value: unknown): string {
  if (!Array.isArray(value)) return `${start}${JSON.stringify(value)}`;
  const items = value.map(printItem);
  const line = `${start}[${items.join(', ')}]`;
  if (line.length < LINE_WIDTH) return line;
  return `${start}[\n${items.map((item) => `    ${item}`).join(',\n')}\n  ]`;
}

function printItem(item: object): string {
  const members = Object.entries(item).map(
    ([name, value]) => `${JSON.stringify(name)}: ${printValue(value)}`,
  );
  return `{ ${members.join(', ')} }`;
}

function printValue(value: unknown): string {
  return Array.isArray(value)
    ? `[${value.map((one) => JSON.stringify(one)).join(', ')}]`
    : JSON.stringify(value);
}
