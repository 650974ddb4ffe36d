import { Command, CommanderError } from 'commander';
import { VERSION } from '../version.ts';
import { registerCheckConfig } from './check-config.ts';
import { type Edge, EXIT } from './edge.ts';
import { registerExchange } from './exchange.ts';
import { checkLive } from './live-check.ts';
import { registerRun } from './run.ts';
import { registerSchema } from './schema.ts';
import { registerVersion } from './version.ts';

/** Parses the command line and runs the command that it names. Sets the exit code; does not throw for bad input. */
export async function runProgram(argv: readonly string[], edge: Edge): Promise<void> {
  const program = new Command('killswitchd')
    .description("Keeps an exchange's kill-switch timers armed for exactly as long as a trading bot lives.")
    .version(VERSION)
    .showSuggestionAfterError()
    .showHelpAfterError('Try: killswitchd --help')
    .configureOutput({
      writeOut: (text) => edge.out(text.replace(/\n$/, '')),
      writeErr: (text) => edge.err(text.replace(/\n$/, '')),
    })
    .exitOverride();
  registerRun(program, edge);
  registerCheckConfig(program, edge, checkLive);
  registerExchange(program, edge);
  registerSchema(program, edge);
  registerVersion(program, edge);
  try {
    await program.parseAsync([...argv]);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    edge.finish(error.exitCode === 0 ? EXIT.ok : EXIT.usage);
  }
}
