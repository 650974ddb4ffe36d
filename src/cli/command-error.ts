import type { Edge, ExitCode } from './edge.ts';

/** Why a command could not do what it was asked for. Every line of the message is a sentence for standard error. */
export class CommandError extends Error {
  override readonly name: string = 'CommandError';
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/**
 * Runs a command and ends it with the code that it gives, or with that of the `CommandError` that it throws. Null: it
 * goes on, and ends later by itself.
 */
export async function conclude(
  name: string,
  edge: Edge,
  act: () => Promise<ExitCode | null> | ExitCode,
): Promise<void> {
  try {
    const code = await act();
    if (code !== null) edge.finish(code);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    for (const line of error.message.split('\n')) edge.err(`killswitchd ${name}: ${line}`);
    edge.finish(error.exitCode);
  }
}
