import { type Command, Option } from 'commander';
import { createSystemClock } from '../clock.ts';
import type { Clock } from '../ports.ts';
import { CommandError, conclude } from './command-error.ts';
import { addControlFlags, type ControlFlags, findReadable } from './control-address.ts';
import { type Answer, createControlClient, isRecord, plain, refusal, textsOf } from './control-client.ts';
import { type Edge, EXIT, type ExitCode } from './edge.ts';

interface Flags extends ControlFlags {
  readonly web?: string;
  readonly ready?: boolean;
  readonly live?: boolean;
  readonly exclude?: 'bots';
}

/** Containers ask every few seconds: whoever has not answered by then is not well. */
const ANSWER_WITHIN_MS = 2000;
const REASONS_SHOWN = 5;

/**
 * `healthcheck`: whether the running daemon is live, or ready. Ends with 0 where it is, and with 69 and a sentence where
 * it is not or does not answer within 2 s. For containers, which have no curl.
 */
export function registerHealthcheck(program: Command, edge: Edge, clock: Clock = createSystemClock()): void {
  addControlFlags(
    program
      .command('healthcheck')
      .description('ask the running daemon whether it is live or ready; for containers and probes')
      .option('--live', 'live: its loop makes progress (this is what is asked without a flag)')
      .addOption(
        new Option(
          '--ready',
          'ready: every configured market of a living bot is armed, and no bot is dead',
        ).conflicts('live'),
      )
      .addOption(
        new Option(
          '--exclude <what>',
          'with --ready, for whoever starts the bot: bots may be missing',
        ).choices(['bots']),
      )
      .option(
        '--web <address>',
        'ask at HOST:PORT of the read-only listener instead of the control listener',
      ),
  ).action((flags: Flags) => conclude('healthcheck', edge, () => checkHealth(flags, edge, clock)));
}

async function checkHealth(flags: Flags, edge: Edge, clock: Clock): Promise<ExitCode> {
  const wanted = flags.ready === true ? 'ready' : 'live';
  const withoutBots = flags.exclude === 'bots';
  if (withoutBots && wanted === 'live')
    throw new CommandError(EXIT.usage, '--exclude: found without --ready; write both, or neither');
  const { kind, ...place } = await findReadable(flags, edge.env);
  const client = createControlClient(place, clock);
  const query = withoutBots ? '?exclude=bots' : '';
  const path = kind === 'control' ? '/v1/health' : wanted === 'ready' ? `/readyz${query}` : '/livez';
  const answer = await client.ask({ method: 'GET', path, withinMs: ANSWER_WITHIN_MS });
  const why =
    kind === 'control' ? whyNot(answer, wanted, withoutBots, client.at) : whyNotByWeb(answer, client.at);
  if (why !== null)
    throw new CommandError(EXIT.unreachable, `the daemon at ${client.at} is not ${wanted}: ${why}`);
  edge.out(`The daemon is ${wanted}${withoutBots ? ' for its bots' : ''}.`);
  return EXIT.ok;
}

/** Null where all is well. */
function whyNot(answer: Answer, wanted: 'ready' | 'live', withoutBots: boolean, at: string): string | null {
  const { json } = answer;
  const said = isRecord(json) && withoutBots ? json['withoutBots'] : json;
  if (!isRecord(json) || !isRecord(said) || typeof said[wanted] !== 'boolean') throw refusal(answer, at);
  if (said[wanted]) return null;
  if (wanted === 'live') return 'its loop makes no progress';
  const omitted = json['notReadyOmitted'];
  return listReasons(textsOf(said['notReady']), typeof omitted === 'number' ? omitted : 0);
}

function whyNotByWeb({ status, text }: Answer, at: string): string | null {
  if (status === 200) return null;
  if (status !== 503)
    throw new CommandError(
      EXIT.unreachable,
      `what answers at ${at} is no killswitchd daemon (HTTP ${status})`,
    );
  const lines = text.split('\n').map(plain);
  return listReasons(lines.filter((line) => line !== ''));
}

function listReasons(reasons: readonly string[], omitted = 0): string {
  if (reasons.length === 0) return 'it does not say why';
  const more = reasons.length + omitted - REASONS_SHOWN;
  return reasons.slice(0, REASONS_SHOWN).join('; ') + (more > 0 ? `; and ${more} more reasons` : '');
}
