import { read } from './documents.ts';
import { code, table } from './markdown.ts';

interface Locked {
  readonly version: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** Why each package of `dependencies` is there. One without a reason should not be. */
const REASONS: Readonly<Record<string, string>> = {
  ajv: 'checks the configuration file, and the arguments and the replies of the client; `src/config/validate.ts`, `src/exchange/validate.ts`',
  bottleneck: 'the limits of the client, and the order of its rising nonces; `src/exchange/limits.ts`',
  commander: 'commands, flags and their help; `src/cli`',
  'env-schema': 'checks the environment against its schema; `src/config/validate.ts`',
  fastify: 'the web and the control listener, the simulated exchange; `src/operator`, `src/simulator`',
  'p-retry': 'repeats pings and the reading calls of the client; `src/exchange/call.ts`',
  pino: 'the log; `src/telemetry/log.ts`',
  'prom-client': 'counters, gauges and histograms; `src/telemetry`',
  typebox:
    'the schemas, and the types that follow from them; `src/config/schema.ts`, `src/exchange/schemas.ts`',
  undici: 'one connection with one request on it, and a last look before the write; `src/exchange`',
  yaml: 'the configuration file with the place of every value; `src/config/file.ts`',
};

/** The production tree: what was chosen, with the reason, and what comes with it. */
export function dependencyTables(): ReadonlyMap<string, string> {
  const direct = Object.keys((JSON.parse(read('package.json')) as Locked).dependencies ?? {});
  const { packages } = JSON.parse(read('package-lock.json')) as {
    readonly packages: Readonly<Record<string, Locked>>;
  };
  const production = Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true);
  const nameOf = (path: string) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const wantedBy = (name: string) =>
    production
      .filter(([, { dependencies }]) => dependencies?.[name] !== undefined)
      .map(([path]) => nameOf(path));
  const chosen = direct.map((name) => [
    code(name),
    packages[`node_modules/${name}`]?.version ?? '',
    REASONS[name] ?? 'NO REASON GIVEN',
  ]);
  const others = new Map<string, string[]>();
  for (const [path, { version, license = 'not stated' }] of production) {
    const name = nameOf(path);
    if (direct.includes(name)) continue;
    const by = [...new Set(wantedBy(name))].map(code).join(', ');
    others.set(`${name} ${version}`, [code(name), version, license, by]);
  }
  return new Map([
    ['dependencies chosen', table(['Package', 'Version', 'What for'], chosen)],
    [
      'dependencies brought',
      table(
        ['Package', 'Version', 'Licence', 'Wanted by'],
        [...others].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row),
      ),
    ],
  ]);
}
