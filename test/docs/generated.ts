import { budgetOf } from '../../src/config/config.ts';
import { carriedPerSecond } from '../../src/core/promise.ts';
import { coreSettings } from '../core/core-settings.ts';
import { FAULTS } from '../simulation/plan.ts';
import { read } from './documents.ts';
import { code, table } from './markdown.ts';
import { commandNames, purposeOf } from './program.ts';
import { promiseTable } from './promise-table.ts';
import { environmentTable, keyTable } from './schema-tables.ts';
import { telemetryTables } from './telemetry-tables.ts';

/** What the documents show of the program, by the name of the block that shows it. */
export async function generatedContents(): Promise<ReadonlyMap<string, string>> {
  const commands: string[][] = [];
  for (const name of await commandNames()) commands.push([code(name), await purposeOf(name)]);
  return new Map([
    ['configuration', keyTable()],
    ['environment', environmentTable()],
    ...(await telemetryTables()).blocks,
    ['commands', table(['Command', 'What it does'], commands)],
    ['promise', await promiseTable()],
    ['dependencies chosen', dependencyTable()],
    ['scale', scaleTable()],
    ['simulation faults', simulationFaults()],
  ]);
}

/** The faults of the whole-system simulation, by what they strike. */
function simulationFaults(): string {
  const byStruck = Object.groupBy(Object.entries(FAULTS), ([, struck]) => struck);
  const rows = Object.entries(byStruck).map(([struck, kinds]) => {
    return [struck, kinds.map(([kind]) => code(kind)).join(', ')];
  });
  return table(['Strikes', 'Kinds'], rows);
}

/** What was chosen, in the locked version. What each package is for stands in the document alone. */
function dependencyTable(): string {
  const direct = (JSON.parse(read('package.json')) as { dependencies: object }).dependencies;
  const { packages } = JSON.parse(read('package-lock.json')) as {
    readonly packages: Readonly<Record<string, { readonly version: string }>>;
  };
  const said = [...read('docs/dependencies.md').matchAll(/^\| `(\S+)` +\| \S+ +\| (.*?) +\|$/gm)];
  const rows = Object.keys(direct).map((name) => [
    code(name),
    packages[`node_modules/${name}`]?.version ?? '',
    said.find(([, one]) => one === name)?.[2] ?? 'NO REASON GIVEN',
  ]);
  return table(['Package', 'Version', 'What for'], rows);
}

/** What one address and key carry, and how many of them it takes, by the rule that a configuration is refused by. */
function scaleTable(): string {
  return table(
    ['Timeout', 'Ten renewals', 'Six', 'Three, the least', 'Arming these', '100,000 markets', '1,000,000'],
    [5, 15, 60, 120, 600].map((timeout) => [
      `${timeout} s`,
      ...[10, 6, 3].map((attempts) => grouped(most(timeout, attempts))),
      `${Math.ceil(most(timeout, 3) / perSecond())} s`,
      ...[100_000, 1_000_000].map((markets) => grouped(fewest(markets, most(timeout, 10)))),
    ]),
  );
}

/** Renewals a second of a daemon that may use the whole limit, before it has measured a round trip. */
function perSecond(): number {
  const budget = budgetOf({ budgetShare: 1 }, { index: 0, count: 1, budget: 'own' });
  return carriedPerSecond(coreSettings({ budget }), null);
}

/** A renewal each second is as often as it gets. */
const most = (timeoutSeconds: number, attempts: number): number =>
  Math.floor(perSecond() * Math.max(1, timeoutSeconds / attempts));
const grouped = (value: number) => value.toLocaleString('en-US');

/** The fewest addresses of which even the largest shard, three deviations above the mean, carries its markets. */
function fewest(markets: number, allowed: number): number {
  if (markets <= allowed) return 1;
  let count = 2;
  while (markets / count + 3 * Math.sqrt(markets / count) > allowed) count += 1;
  return count;
}
