import { type Command, Option } from 'commander';
import { createSystemClock } from '../clock.ts';
import type { CommandName } from '../core/operate.ts';
import type { Clock } from '../ports.ts';
import { CommandError, conclude } from './command-error.ts';
import { addControlFlags, type ControlFlags, findControl } from './control-address.ts';
import { type ControlClient, createControlClient } from './control-client.ts';
import { readDuration, readWait } from './duration.ts';
import { type Edge, EXIT, type ExitCode } from './edge.ts';
import { carryOut, readProgress, reportProgress } from './progress.ts';
import { lookAt } from './status-document.ts';
import { nameMarkets } from './status-table.ts';

interface Flags extends ControlFlags {
  readonly for?: string;
  readonly wait: string;
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** What the control listener takes in one request. */
const MOST_BYTES = 64 * 1024;

const PURPOSES = {
  arm: 'arm markets: also those that were disarmed, tripped, paused, refused, or held after a lapse',
  disarm: 'delete the timers and leave the markets alone until they are armed; the orders stay',
  pause: 'delete the timers for a while, for planned maintenance; ends by itself',
  resume: 'end a pause before its time',
  trip: 'have the orders cancelled now: timers to 5 s, then left alone until the markets are armed',
} as const satisfies Record<CommandName, string>;

/** What is to be confirmed, with the markets in the place of `{markets}`. */
const DANGERS: Partial<Record<CommandName, string>> = {
  disarm:
    'This deletes the timers of {markets}. The orders stay, and nothing cancels them if the bot dies, until the markets are armed again.',
  trip: 'This has the exchange cancel the orders that the timers of {markets} cover, in about 6 s, and leaves the markets without a timer until they are armed again.',
};

/**
 * `arm`, `disarm`, `pause`, `resume` and `trip`: ask the running daemon for it and return when it has happened. Ends
 * with 0 where it has in every market, with 75 where the exchange has not confirmed all of it in time, with 69 where
 * it is impossible as things stand, or no daemon answers, and with 64 for an unknown market or without a yes.
 */
export function registerOperation(does: CommandName): (program: Command, edge: Edge, clock?: Clock) => void {
  return (program, edge, clock = createSystemClock()) => {
    const command = program
      .command(does)
      .description(PURPOSES[does])
      .argument('[markets...]', 'which markets; all of them where none is named');
    if (does === 'pause') {
      command.requiredOption('--for <duration>', 'for how long: 1s to 24h, such as 90s, 10m or 1.5h');
    }
    if (DANGERS[does] !== undefined) command.option('--yes', 'do not ask; needed where there is no terminal');
    command
      .addOption(
        new Option('--wait <seconds>', 'how long to wait for the exchange to confirm it, 0 to 60').default(
          '15',
        ),
      )
      .option('--json', 'the reply as JSON');
    addControlFlags(command).action((markets: readonly string[], flags: Flags) =>
      conclude(does, edge, () => operate(does, [...new Set(markets)], flags, { edge, clock })),
    );
  };
}

async function operate(
  does: CommandName,
  markets: readonly string[],
  flags: Flags,
  { edge, clock }: { readonly edge: Edge; readonly clock: Clock },
): Promise<ExitCode> {
  const waitSeconds = readWait('--wait', flags.wait);
  const length = flags.for === undefined ? {} : { forSeconds: readDuration('--for', flags.for) };
  const client = createControlClient(await findControl(flags, edge.env), clock);
  const body = { ...(markets.length === 0 ? {} : { markets }), ...length, waitSeconds };
  if (Buffer.byteLength(JSON.stringify(body)) > MOST_BYTES) {
    throw new CommandError(
      EXIT.usage,
      `found ${markets.length} markets, more than fit into one request; name fewer at a time, or none for all of them`,
    );
  }
  if (flags.yes !== true) await confirm(does, markets, client, edge);
  const answer = await carryOut({ client, edge, clock, path: `/v1/${does}`, body, waitSeconds });
  const progress = readProgress(answer, client.at);
  if (flags.json === true) edge.out(answer.text.trimEnd());
  else if (progress.length === 0) edge.out('No market is guarded by this daemon: there was nothing to do.');
  return reportProgress(does, progress, { edge, waitSeconds, silent: flags.json === true });
}

/** Asks whoever sits at the terminal. Throws where there is nobody, or no yes. */
async function confirm(
  does: CommandName,
  markets: readonly string[],
  client: ControlClient,
  edge: Edge,
): Promise<void> {
  const danger = DANGERS[does];
  if (danger === undefined) return;
  if (edge.ask === undefined) {
    throw new CommandError(
      EXIT.usage,
      'nobody can be asked here whether it is meant: add --yes; nothing was changed',
    );
  }
  const named = markets.length > 0 ? nameMarkets(markets) : nameAll(await marketsOf(client));
  edge.err(`${danger.replace('{markets}', () => named)} The daemon is the one at ${client.at}.`);
  const answer = await edge.ask('Go on? [y/N] ');
  if (answer !== null && /^\s*y(es)?\s*$/i.test(answer)) return;
  throw new CommandError(EXIT.usage, 'not confirmed with yes; nothing was changed');
}

async function marketsOf(client: ControlClient): Promise<readonly string[]> {
  const { seen } = await lookAt(client);
  return seen.markets.filter(({ leaving }) => !leaving).map(({ market }) => market);
}

function nameAll(markets: readonly string[]): string {
  return markets.length === 1 ? nameMarkets(markets) : `all ${nameMarkets(markets)}`;
}
