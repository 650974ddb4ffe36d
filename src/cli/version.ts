import type { Command } from 'commander';
import { VERSION } from '../version.ts';
import { type Edge, EXIT } from './edge.ts';

/** `version [--json]`: what this is, for bug reports. */
export function registerVersion(program: Command, edge: Edge): void {
  program
    .command('version')
    .description('print the version')
    .option('--json', 'as JSON')
    .action((options: { json?: boolean }) => {
      const { nodeVersion } = edge;
      if (options.json === true) edge.out(JSON.stringify({ version: VERSION, node: nodeVersion }));
      else edge.out(`killswitchd ${VERSION} (Node ${nodeVersion})`);
      edge.finish(EXIT.ok);
    });
}
