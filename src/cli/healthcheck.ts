import { type Command, Option } from 'commander';
import { createSystemClock } from '../clock.ts';
import type { Clock } from '../ports.ts';
import { CommandError, conclude } from './command-error.ts';
import { addControlFlags, type ControlFlags, findHealth } from './control-address.ts';
import { type Answer, createControlClient, isRecord, plain, refusal, textsOf } from './control-client.ts';
import { type Edge, EXIT, type ExitCode } from './edge.ts';

interface Flags extends ControlFlags {
  readonly web?: string;
  readonly ready?: boolean;
  readonly live?: boolean;
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
      .addOption(new Option('--ready', 'ready: every wanted market is confirmed armed').conflicts('live'))
      .option(
        '--web <address>',
        'ask at HOST:PORT of the read-only listener instead of the control listener',
      ),
  ).action((flags: Flags) => conclude('healthcheck', edge, () => checkHealth(flags, edge, clock)));
}

async function checkHealth(flags: Flags, edge: Edge, clock: Clock): Promise<ExitCode> {
  const wanted = flags.ready === true ? 'ready' : 'live';
  const place = await findHealth(flags, edge.env);
  const client = createControlClient(place, clock);
  const path = place.kind === 'control' ? '/v1/health' : wanted === 'ready' ? '/readyz' : '/livez';
  const answer = await client.ask({ method: 'GET', path, withinMs: ANSWER_WITHIN_MS });
  const byControl = place.kind === 'control';
  const why = byControl ? whyNot(answer, wanted, client.at) : whyNotByWeb(answer, client.at);
  if (why === null) {
    const unguarded = wanted === 'ready' ? unguardedIn(answer, byControl) : '';
    edge.out(unguarded === '' ? `The daemon is ${wanted}.` : `The daemon is ${wanted}, but ${unguarded}.`);
    return EXIT.ok;
  }
  throw new CommandError(EXIT.unreachable, `the daemon at ${client.at} is not ${wanted}: ${why}`);
}

/** Why nothing is guarded, as a daemon that is ready says it; empty where something is. */
function unguardedIn({ json, text }: Answer, byControl: boolean): string {
  if (!byControl) return plain(/^ok, but (.+)$/m.exec(text)?.[1] ?? '');
  const said = isRecord(json) ? json['nothingGuarded'] : null;
  return typeof said === 'string' ? plain(said) : '';
}

/** Null where all is well. */
function whyNot(answer: Answer, wanted: 'ready' | 'live', at: string): string | null {
  const { json } = answer;
  if (!isRecord(json) || typeof json[wanted] !== 'boolean') throw refusal(answer, at);
  if (json[wanted]) return null;
  if (wanted === 'live') return 'its loop makes no progress';
  const omitted = json['notReadyOmitted'];
  return listReasons(textsOf(json['notReady']), typeof omitted === 'number' ? omitted : 0);
}

function whyNotByWeb({ status, text }: Answer, at: string): string | null {
  if (status === 200) return null;
  if (status !== 503) {
    throw new CommandError(
      EXIT.unreachable,
      `what answers at ${at} is no killswitchd daemon (HTTP ${status})`,
    );
  }
  return listReasons(
    text
      .split('\n')
      .map(plain)
      .filter((line) => line !== ''),
  );
}

function listReasons(reasons: readonly string[], omitted = 0): string {
  if (reasons.length === 0) return 'it does not say why';
  const more = reasons.length + omitted - REASONS_SHOWN;
  return reasons.slice(0, REASONS_SHOWN).join('; ') + (more > 0 ? `; and ${more} more reasons` : '');
}
