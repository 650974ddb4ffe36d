import type { Command } from 'commander';
import { createSystemClock } from '../clock.ts';
import { describe } from '../config/problem.ts';
import { LOG_LEVELS } from '../operator/control-sources.ts';
import type { Clock } from '../ports.ts';
import { didYouMean } from '../util/nearest.ts';
import { CommandError, conclude } from './command-error.ts';
import { addControlFlags, type ControlFlags, findControl } from './control-address.ts';
import { createControlClient, isRecord, plain, refusal } from './control-client.ts';
import { readDuration } from './duration.ts';
import { type Edge, EXIT, type ExitCode } from './edge.ts';

interface Flags extends ControlFlags {
  readonly for?: string;
}

const ANSWER_WITHIN_MS = 10_000;

/**
 * `log-level [LEVEL]`: sets the level of the running daemon's log, or says which is in force. Ends with 0, with 64 for a
 * level that does not exist, and with 69 where no daemon answers.
 */
export function registerLogLevel(program: Command, edge: Edge, clock: Clock = createSystemClock()): void {
  addControlFlags(
    program
      .command('log-level')
      .description("set the level of the running daemon's log, or print the one in force")
      .argument('[level]', LOG_LEVELS.join(', '))
      .option('--for <duration>', 'for so long, 1s to 24h; then the configured level is back'),
  ).action((level: string | undefined, flags: Flags) =>
    conclude('log-level', edge, () => changeLevel(level, flags, edge, clock)),
  );
}

async function changeLevel(
  level: string | undefined,
  flags: Flags,
  edge: Edge,
  clock: Clock,
): Promise<ExitCode> {
  const order = level === undefined ? null : readOrder(level, flags);
  if (order === null && flags.for !== undefined) {
    throw new CommandError(EXIT.usage, '--for: found without a level; write one, such as debug --for 10m');
  }
  const client = createControlClient(await findControl(flags, edge.env), clock);
  // Without a level it changes nothing and says which is in force.
  const answer = await client.ask({
    method: 'POST',
    path: '/v1/log-level',
    body: order ?? {},
    withinMs: ANSWER_WITHIN_MS,
  });
  if (answer.status !== 200 || !isRecord(answer.json) || typeof answer.json['level'] !== 'string') {
    throw refusal(answer, client.at);
  }
  const inForce = plain(answer.json['level']);
  if (order === null) edge.out(inForce);
  else if (flags.for === undefined)
    edge.out(`The log level is ${inForce} until it is changed or the daemon ends.`);
  else edge.out(`The log level is ${inForce} for ${flags.for}, and then the configured one again.`);
  return EXIT.ok;
}

function readOrder(level: string, flags: Flags): object {
  if (!LOG_LEVELS.some((known) => known === level)) {
    throw new CommandError(
      EXIT.usage,
      `found ${describe(level)}; allowed: ${LOG_LEVELS.join(', ')}${didYouMean(level, LOG_LEVELS)}`,
    );
  }
  return { level, ...(flags.for === undefined ? {} : { forSeconds: readDuration('--for', flags.for) }) };
}
