import type { Edge } from '../../src/cli/edge.ts';
import { runProgram } from '../../src/cli/program.ts';
import { code, table } from './markdown.ts';

export interface Said {
  readonly out: string;
  readonly err: string;
  readonly exitCode: number | null;
}

/** What the program writes for a command line that ends by itself. */
export async function ask(args: readonly string[], env: Edge['env'] = {}): Promise<Said> {
  const out: string[] = [];
  const err: string[] = [];
  let exitCode: number | null = null;
  const end = (code: number) => {
    exitCode ??= code;
  };
  await runProgram(['node', 'killswitchd', ...args], {
    env,
    out: (line) => out.push(line),
    err: (line) => err.push(line),
    terminal: false,
    nodeVersion: '24',
    isoTime: String,
    onSignal: () => () => {},
    onCrash: () => () => {},
    finish: end,
    exitNow: end,
  });
  return { out: out.join('\n'), err: err.join('\n'), exitCode };
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

/** Every argument and flag with what it means and the commands that have it. */
export async function flagTable(): Promise<string> {
  const commandsOf = new Map<string, string[]>();
  for (const command of await commandNames()) {
    const help = (await helpOf(command)).replaceAll(/\n {4,}/g, ' ');
    for (const [, term = '', says = ''] of help.matchAll(/^ {2}(\S.*?) {2,}(.*)$/gm)) {
      if (term.includes('--help')) continue;
      const row = `${term}\n${says}`;
      commandsOf.set(row, [...(commandsOf.get(row) ?? []), code(command)]);
    }
  }
  const rows = [...commandsOf].map(([row, commands]) => {
    const [term = '', says = ''] = row.split('\n');
    return [code(term), commands.join(', '), says];
  });
  return table(['Flag or argument', 'Commands', 'Meaning'], rows);
}
