import { Argument, type Command } from 'commander';
import { publishedEnvironmentSchema } from '../config/environment.ts';
import { publishedSchema } from '../config/schema.ts';
import { type Edge, EXIT } from './edge.ts';

/** `schema [config|env]`: prints the JSON Schema of the configuration file or of the environment. */
export function registerSchema(program: Command, edge: Edge): void {
  program
    .command('schema')
    .description('print the JSON Schema of the configuration file, or of the environment variables')
    .addArgument(new Argument('[what]', 'which of the two').choices(['config', 'env']).default('config'))
    .action((what: string) => {
      const schema = what === 'env' ? publishedEnvironmentSchema() : publishedSchema();
      edge.out(JSON.stringify(schema, null, 2));
      edge.finish(EXIT.ok);
    });
}
