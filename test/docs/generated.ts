import { codeBlock } from './markdown.ts';
import { commandNames, helpOf } from './program.ts';
import { promiseTable } from './promise-table.ts';
import { environmentTable, sectionTables } from './schema-tables.ts';
import { telemetryTables } from './telemetry-tables.ts';

/** What the documents show of the program, by the name of the block that shows it. */
export async function generatedContents(): Promise<ReadonlyMap<string, string>> {
  const contents = new Map<string, string>();
  for (const [section, content] of sectionTables()) contents.set(`configuration ${section}`, content);
  contents.set('environment', environmentTable());
  for (const [name, content] of (await telemetryTables()).blocks) contents.set(name, content);
  for (const name of await commandNames()) contents.set(`help ${name}`, codeBlock(await helpOf(name)));
  contents.set('promise', await promiseTable());
  return contents;
}
