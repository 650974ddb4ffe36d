import { Command, CommanderError } from 'commander';
import { VERSION } from '../version.ts';
import { CommandError, type Edge, EXIT } from './edge.ts';

type Register = (program: Command, edge: Edge) => void;

const operate = () => import('./operate.ts');
const manual = () => import('./manual.ts');

/** Loads a command and what it needs: the others cost no time at the start. In the order of the help text. */
const COMMANDS: Readonly<Record<string, () => Promise<Register>>> = {
  run: async () => (await import('./run.ts')).registerRun,
  exec: async () => (await import('./exec.ts')).registerExec,
  'check-config': async () => (await import('./check-config.ts')).registerCheckConfig,
  status: async () => (await import('./status.ts')).registerStatus,
  arm: async () => (await operate()).registerOperation('arm'),
  disarm: async () => (await operate()).registerOperation('disarm'),
  pause: async () => (await operate()).registerOperation('pause'),
  resume: async () => (await operate()).registerOperation('resume'),
  trip: async () => (await operate()).registerOperation('trip'),
  ack: async () => (await operate()).registerAck,
  reload: async () => (await operate()).registerReload,
  'log-level': async () => (await operate()).registerLogLevel,
  notify: async () => (await import('./notify.ts')).registerNotify,
  healthcheck: async () => (await import('./healthcheck.ts')).registerHealthcheck,
  demo: async () => (await import('./demo.ts')).registerDemo,
  exchange: async () => (await import('./exchange.ts')).registerExchange,
  api: async () => (await import('./api.ts')).registerApi,
  schema: async () => (await manual()).registerSchema,
  completion: async () => (await manual()).registerCompletion(buildProgram),
  man: async () => (await manual()).registerMan(buildProgram),
  version: async () => registerVersion,
};

/** Parses the command line and runs the command that it names. Sets the exit code; does not throw for bad input. */
export async function runProgram(argv: readonly string[], edge: Edge): Promise<void> {
  const named = COMMANDS[argv[2] ?? ''];
  const called = named === undefined ? 'killswitchd' : `killswitchd ${argv[2]}`;
  const program = await buildProgram(edge, named && [named], called);
  try {
    await program.parseAsync([...argv]);
  } catch (error) {
    if (error instanceof CommanderError) edge.finish(error.exitCode === 0 ? EXIT.ok : EXIT.usage);
    else if (error instanceof CommandError) {
      const lines = error.message === '' ? [] : error.message.split('\n');
      for (const line of lines) edge.err(`${called}: ${line}`);
      edge.finish(error.exitCode);
    } else throw error;
  }
}

/** The program with its commands: all of them unless told otherwise. `called` is what its errors begin with. */
export async function buildProgram(
  edge: Edge,
  commands = Object.values(COMMANDS),
  called = 'killswitchd',
): Promise<Command> {
  const program = new Command('killswitchd')
    .description("Keeps an exchange's kill-switch timers armed for exactly as long as a trading bot lives.")
    .version(VERSION)
    .showSuggestionAfterError()
    .showHelpAfterError(`Try: ${called} --help`)
    .configureOutput({
      writeOut: (text) => edge.out(text.replace(/\n$/, '')),
      writeErr: (text) => edge.err(text.replace(/\n$/, '')),
      outputError: (text, write) => write(text.replace(/^error: /, `${called}: `)),
    })
    .exitOverride();
  for (const register of await Promise.all(commands.map((load) => load()))) register(program, edge);
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
