import type { Edge } from '../../src/cli/edge.ts';
import { run } from '../cli/stage.ts';

/** What the program writes for a command line that ends by itself. */
export async function ask(args: readonly string[], env: Edge['env'] = {}) {
  const { out, err, code } = await run(args, { env });
  return { out: out.join('\n'), err: err.join('\n'), exitCode: code };
}

/** The names of the commands, in the order of the help. */
export async function commandNames(): Promise<string[]> {
  const { out } = await ask(['--help']);
  const list = out.slice(out.indexOf('\nCommands:\n') + '\nCommands:\n'.length);
  return [...list.matchAll(/^ {2}([a-z][a-z-]*)/gm)]
    .map(([, name = '']) => name)
    .filter((name) => name !== 'help');
}

/** What `COMMAND --help` prints. */
export async function helpOf(command: string): Promise<string> {
  const { out } = await ask([command, '--help']);
  return out.trimEnd();
}

/** What the command is for: the paragraph between the usage and its options. */
export async function purposeOf(command: string): Promise<string> {
  const [, purpose = ''] = (await helpOf(command)).split('\n\n');
  return purpose.replaceAll('\n', ' ');
}
