import type { Plan } from './plan.ts';

/** A plan as JSON for a file: a line for each field, market, daemon and fault, as the formatter would set it. */
export function printPlan(plan: Plan): string {
  const fields = Object.entries(plan).map(
    ([name, value]) => `  ${JSON.stringify(name)}: ${printField(value)}`,
  );
  return `{\n${fields.join(',\n')}\n}\n`;
}

function printField(value: unknown): string {
  if (!Array.isArray(value) || value.length === 0) return JSON.stringify(value);
  return `[\n${value.map((item) => `    ${printItem(item)}`).join(',\n')}\n  ]`;
}

function printItem(item: object): string {
  const members = Object.entries(item).map(([name, value]) => `${JSON.stringify(name)}: ${printList(value)}`);
  return `{ ${members.join(', ')} }`;
}

function printList(value: unknown): string {
  return Array.isArray(value)
    ? `[${value.map((one) => JSON.stringify(one)).join(', ')}]`
    : JSON.stringify(value);
}
