import { read } from './documents.ts';
import { code, table } from './markdown.ts';

interface Locked {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** Why each package of `dependencies` is there. One without a reason should not be. */
const REASONS: Readonly<Record<string, string>> = {
  ajv: 'checks the configuration file, and the arguments and the replies of the client; `src/config/validate.ts`, `src/exchange/validate.ts`',
  bottleneck:
    'the limits of the client, and the order of its rising nonces; the pace of messages; `src/exchange/limits.ts`, `src/telemetry/notifications.ts`',
  commander: 'commands, flags and their help; `src/cli`',
  'env-schema': 'checks the environment against its schema; `src/config/validate.ts`',
  fastify: 'the web and the control listener, the simulated exchange; `src/operator`, `src/simulator`',
  'p-retry':
    'repeats pings, the reading calls of the client, and messages; `src/exchange/call.ts`, `src/telemetry/notifications.ts`',
  pino: 'the log; `src/telemetry/log.ts`',
  'prom-client': 'counters, gauges and histograms; `src/telemetry`',
  typebox:
    'the schemas, and the types that follow from them; `src/config/schema.ts`, `src/exchange/schemas.ts`',
  undici: 'one connection with one request on it, and a last look before the write; `src/exchange`',
  yaml: 'the configuration file with the place of every value; `src/config/file.ts`',
};

/** What was chosen, with the reason. */
export function dependencyTables(): ReadonlyMap<string, string> {
  const direct = Object.keys((JSON.parse(read('package.json')) as Locked).dependencies ?? {});
  const { packages } = JSON.parse(read('package-lock.json')) as {
    readonly packages: Readonly<Record<string, Locked>>;
  };
  const chosen = direct.map((name) => [
    code(name),
    packages[`node_modules/${name}`]?.version ?? '',
    REASONS[name] ?? 'NO REASON GIVEN',
  ]);
  return new Map([['dependencies chosen', table(['Package', 'Version', 'What for'], chosen)]]);
}
