import { type Command, Option } from 'commander';
import { createSystemClock } from '../clock.ts';
import type { Clock } from '../ports.ts';
import { CommandError, conclude } from './command-error.ts';
import { addControlFlags, type ControlFlags, findControl } from './control-address.ts';
import { type Answer, createControlClient, isRecord, refusal, textsOf } from './control-client.ts';
import { readWait } from './duration.ts';
import { type Edge, EXIT, type ExitCode } from './edge.ts';
import { carryOut, type MarketProgress, readMarkets, reportProgress } from './progress.ts';
import { nameMarkets } from './status-table.ts';

interface Flags extends ControlFlags {
  readonly wait: string;
  readonly json?: boolean;
}

/**
 * `reload`: has the running daemon read its configuration again. Ends with 0 where it applies, with 75 where it does
 * and not every timer is confirmed in time, with 78 where it is wrong and nothing was changed, and with 69 where no
 * daemon answers.
 */
export function registerReload(program: Command, edge: Edge, clock: Clock = createSystemClock()): void {
  addControlFlags(
    program
      .command('reload')
      .description('have the running daemon read its configuration again; a wrong one changes nothing')
      .addOption(
        new Option('--wait <seconds>', 'how long to wait for the exchange to confirm it, 0 to 60').default(
          '15',
        ),
      )
      .option('--json', 'the reply as JSON'),
  ).action((flags: Flags) => conclude('reload', edge, () => reload(flags, edge, clock)));
}

async function reload(flags: Flags, edge: Edge, clock: Clock): Promise<ExitCode> {
  const waitSeconds = readWait('--wait', flags.wait);
  const client = createControlClient(await findControl(flags, edge.env), clock);
  const answer = await carryOut({
    client,
    edge,
    clock,
    path: '/v1/reload',
    body: { waitSeconds },
    waitSeconds,
  });
  const report = readReport(answer, client.at);
  const silent = flags.json === true;
  if (silent) edge.out(answer.text.trimEnd());
  switch (report.kind) {
    case 'unchanged':
      if (!silent) edge.out('Nothing has changed: the configuration in force stays.');
      return EXIT.ok;
    case 'rejected':
      throw new CommandError(
        EXIT.config,
        ['the configuration is wrong; nothing was changed', ...report.problems].join('\n'),
      );
    case 'applied': {
      if (!silent) for (const line of describeApplied(report)) edge.out(line);
      // A market that cannot be armed before its bot beats is no fault of the reload.
      const otherwise = 'not guarded; the configuration is in force';
      reportProgress('reload', report.progress, { edge, waitSeconds, silent, otherwise });
      return report.progress.some(({ state }) => state === 'waiting') ? EXIT.unconfirmed : EXIT.ok;
    }
  }
}

interface Applied {
  readonly kind: 'applied';
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly moved: readonly string[];
  readonly changed: readonly string[];
  readonly progress: readonly MarketProgress[];
}
type Report =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'rejected'; readonly problems: readonly string[] }
  | Applied;

function readReport(answer: Answer, at: string): Report {
  const { json } = answer;
  const error = isRecord(json) && isRecord(json['error']) ? json['error'] : null;
  if (error?.['code'] === 'config_rejected')
    return { kind: 'rejected', problems: textsOf(error['problems']) };
  if (!isRecord(json) || error !== null) throw refusal(answer, at);
  switch (json['result']) {
    case 'unchanged':
      return { kind: 'unchanged' };
    case 'applied': {
      const { added, removed, moved, changed, markets } = json;
      const progress = Array.isArray(markets) ? readMarkets(markets, at) : [];
      return {
        kind: 'applied',
        added: textsOf(added),
        removed: textsOf(removed),
        moved: textsOf(moved),
        changed: textsOf(changed),
        progress,
      };
    }
    default:
      throw new CommandError(
        EXIT.internal,
        `the daemon at ${at} answered to a reload in a way unknown to this version`,
      );
  }
}

function describeApplied({ added, removed, moved, changed }: Applied): string[] {
  const kinds = [
    ['Added', added],
    ['Removed', removed],
    ['Moved to another shard', moved],
    ['Changed', changed],
  ] as const;
  const lines = kinds.flatMap(([what, markets]) =>
    markets.length === 0 ? [] : [`${what}: ${nameMarkets(markets)}.`],
  );
  return [
    'The new configuration is in force.',
    ...(lines.length === 0 ? ['No market is touched by it.'] : lines),
  ];
}
