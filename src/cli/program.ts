import { Command, CommanderError } from 'commander';
import { VERSION } from '../version.ts';
import { CommandError, type Edge, EXIT } from './edge.ts';

/** Adds commands to the program. `whole` builds it with all of them. */
type Register = (program: Command, edge: Edge, whole: () => Promise<Command>) => void;

/** The commands of each file, in the order of the help text. Only what is named is loaded. */
const FILES: readonly (readonly [names: string, load: () => Promise<{ readonly register: Register }>])[] = [
  ['run', () => import('./run.ts')],
  ['exec', () => import('./exec.ts')],
  ['check-config', () => import('./check-config.ts')],
  ['status', () => import('./status.ts')],
  ['arm disarm pause resume trip ack reload log-level', () => import('./operate.ts')],
  ['notify', () => import('./notify.ts')],
  ['healthcheck', () => import('./healthcheck.ts')],
  ['demo', () => import('./demo.ts')],
  ['exchange', () => import('./exchange.ts')],
  ['api', () => import('./api.ts')],
  ['schema completion man', () => import('./manual.ts')],
  ['version', async () => ({ register: registerVersion })],
];

const filesOf = (name: string) => FILES.filter(([names]) => names.split(' ').includes(name));
const isCommand = (name: string) => filesOf(name).length > 0;

/** What to write instead, where an error is a common slip. */
function hintOf(error: string, argv: readonly string[]): string {
  const [, option] = /unknown option '(--[\w-]+)/.exec(error) ?? [];
  const command = argv.slice(3).find(isCommand);
  if (option !== undefined && command !== undefined && argv[2]?.startsWith('-') === true)
    return `Options stand behind the command: killswitchd ${command} ${option} ...\n`;
  const [, name, value = ''] = /too many arguments for '([\w-]+)'.* but got 1: (\S+)\.$/m.exec(error) ?? [];
  if (/^(run|check-config)$/.test(name ?? '') && /\.(ya?ml|json)$/.test(value))
    return `A configuration file is named by an option: --config ${value}\n`;
  const [one, other] = argv.slice(0, argv.lastIndexOf(value)).slice(-2);
  const isTaken = name !== undefined && [one, other].every((word) => /^--[\w-]+$/.test(word ?? ''));
  return isTaken ? `Perhaps ${one} has no value, and took ${other} for it.\n` : '';
}

/** Parses the command line and runs the command that it names. Sets the exit code; does not throw for bad input. */
export async function runProgram(argv: readonly string[], edge: Edge): Promise<void> {
  const [, , name = '', topic = ''] = argv;
  const named = filesOf(name);
  const called = named.length === 0 ? 'killswitchd' : `killswitchd ${name}`;
  const program = await buildProgram(edge, named.length === 0 ? FILES : named, called, argv);
  try {
    // The library's help on what it does not know is all of its help, and no word about that.
    const isUnknown = name === 'help' && /^\w/.test(topic) && !isCommand(topic);
    await program.parseAsync(isUnknown ? argv.toSpliced(2, 1) : [...argv]);
  } catch (error) {
    if (error instanceof CommanderError) edge.finish(error.exitCode === 0 ? EXIT.ok : EXIT.usage);
    else if (error instanceof CommandError) {
      for (const line of error.message.split('\n')) if (line !== '') edge.err(`${called}: ${line}`);
      edge.finish(error.exitCode);
    } else throw error;
  }
}

/** The program with the commands of these files. Its errors begin with `called`, and end with a hint for `argv`. */
async function buildProgram(edge: Edge, files = FILES, called = 'killswitchd', argv: readonly string[] = []) {
  const program = new Command('killswitchd')
    .description("Keeps an exchange's kill-switch timers armed for exactly as long as a trading bot lives.")
    .version(VERSION)
    .showSuggestionAfterError()
    .showHelpAfterError(`Try: ${called} --help`)
    .configureOutput({
      writeOut: (text) => edge.out(text.replace(/\n$/, '')),
      writeErr: (text) => edge.err(text.replace(/\n$/, '')),
      // What stands behind an option that nobody knows may be a secret.
      outputError: (text, write) =>
        write(
          text.replace(/^error: /, `${called}: `).replace(/(unknown option '[^=']*)=.*'$/m, "$1'") +
            hintOf(text, argv),
        ),
    })
    .exitOverride();
  for (const { register } of await Promise.all(files.map(([, load]) => load())))
    register(program, edge, () => buildProgram(edge));
  return program;
}

/** `version [--json]`: what this is, for bug reports. */
function registerVersion(program: Command, edge: Edge): void {
  program
    .command('version')
    .description('print the version')
    .option('--json', 'as JSON')
    .action((options: { json?: boolean }) => {
      const { nodeVersion } = edge;
      if (options.json === true) edge.out(JSON.stringify({ version: VERSION, node: nodeVersion }));
      else edge.out(`killswitchd ${VERSION} (Node ${nodeVersion})`);
    });
}
