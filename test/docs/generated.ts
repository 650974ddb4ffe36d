import { FAULTS } from '../simulation/plan.ts';
import { dependencyTables } from './dependency-tables.ts';
import { code, table } from './markdown.ts';
import { commandNames, purposeOf } from './program.ts';
import { promiseTable } from './promise-table.ts';
import { scaleTable } from './scale-tables.ts';
import { environmentTable, keyTable } from './schema-tables.ts';
import { telemetryTables } from './telemetry-tables.ts';

/** What the documents show of the program, by the name of the block that shows it. */
export async function generatedContents(): Promise<ReadonlyMap<string, string>> {
  const contents = new Map<string, string>();
  contents.set('configuration', keyTable());
  contents.set('environment', environmentTable());
  for (const [name, content] of (await telemetryTables()).blocks) contents.set(name, content);
  const commands: string[][] = [];
  for (const name of await commandNames()) commands.push([code(name), await purposeOf(name)]);
  contents.set('commands', table(['Command', 'What it does'], commands));
  contents.set('promise', await promiseTable());
  for (const [name, content] of dependencyTables()) contents.set(name, content);
  contents.set('scale', scaleTable());
  contents.set('simulation faults', simulationFaults());
  return contents;
}

/** The faults of the whole-system simulation, by what they strike. */
function simulationFaults(): string {
  const byStruck = new Map<string, string[]>();
  for (const [kind, struck] of Object.entries(FAULTS)) {
    byStruck.set(struck, [...(byStruck.get(struck) ?? []), code(kind)]);
  }
  return table(
    ['Strikes', 'Kinds'],
    [...byStruck].map(([struck, kinds]) => [struck, kinds.join(', ')]),
  );
}
