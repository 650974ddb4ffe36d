import { type Command, Option } from 'commander';
import { createSystemClock } from '../clock.ts';
import type { Clock } from '../ports.ts';
import { conclude } from './command-error.ts';
import { addControlFlags, type ControlFlags, findControl } from './control-address.ts';
import { type ControlClient, createControlClient } from './control-client.ts';
import { type Edge, EXIT, type ExitCode } from './edge.ts';
import { lookAt } from './status-document.ts';
import { renderStatus } from './status-table.ts';
import { watchStatus } from './status-watch.ts';
import { barFor, paint, wantsColour } from './table.ts';

interface Flags extends ControlFlags {
  readonly json?: boolean;
  readonly watch?: boolean;
  readonly all?: boolean;
}

/** Markets that are shown without `--all`. */
const SHOWN = 40;

/**
 * `status`: what the running daemon says of itself. Ends with 0 whatever that is, with 69 where no daemon answers, and
 * with 77 where it refuses the token.
 */
export function registerStatus(program: Command, edge: Edge, clock: Clock = createSystemClock()): void {
  addControlFlags(
    program
      .command('status')
      .description('show what the running daemon does: every market, its timer, and what a stop would do')
      .option('--json', 'the status document as JSON')
      .option('--watch', 'go on until Ctrl-C: redraw every second on a terminal, else a line per change')
      .addOption(
        new Option('--all', `all markets instead of the ${SHOWN} worst of a longer list`).conflicts('watch'),
      ),
  ).action((flags: Flags) =>
    conclude('status', edge, async () => {
      const client = createControlClient(await findControl(flags, edge.env), clock);
      if (flags.watch === true) {
        return await watchStatus({
          edge,
          clock,
          client,
          look: () => lookAt(client),
          json: flags.json === true,
        });
      }
      return await showOnce(client, flags, edge);
    }),
  );
}

async function showOnce(client: ControlClient, flags: Flags, edge: Edge): Promise<ExitCode> {
  const { answer, seen } = await lookAt(client);
  if (flags.json === true) {
    edge.out(answer.text.trimEnd());
    return EXIT.ok;
  }
  const width = edge.screen?.size().columns ?? Number.POSITIVE_INFINITY;
  const limit = flags.all === true ? Number.POSITIVE_INFINITY : SHOWN;
  const bar = edge.terminal ? barFor(edge.env) : null;
  // Only the table adapts its columns: a sentence is better wrapped than cut.
  for (const line of renderStatus(seen, { width, limit, bar, at: client.at })) {
    edge.out(paint(line, Number.POSITIVE_INFINITY, wantsColour(edge)));
  }
  return EXIT.ok;
}
