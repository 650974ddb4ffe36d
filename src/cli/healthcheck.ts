import { type Command, Option } from 'commander';
import { isRecord, plain } from '../util/text.ts';
import { addReadingFlags, type ControlFlags, findReadable } from './control-address.ts';
import { type Answer, createControlClient, notOurs, refusal, textsOf } from './control-client.ts';
import { CommandError, type Edge, EXIT, misuse, pause } from './edge.ts';
import { type Given, readWait } from './flags.ts';

type Flags = ControlFlags & { readonly wait: string } & Given<'web' | 'exclude' | 'bot', 'ready' | 'live'>;

/** Containers ask every few seconds: whoever has not answered by then is not well. */
const ANSWER_WITHIN_MS = 2000;
/** A day: an exchange may be away for long, and whoever starts a bot then waits. */
const LONGEST_WAIT_SECONDS = 86_400;
const ASK_EVERY_MS = 250;
const REASONS_SHOWN = 5;

/** `healthcheck`: whether the running daemon is live, or ready; 69 where not. For containers, which have no curl. */
export function register(program: Command, edge: Edge): void {
  const ready = 'ready: every configured market of a living bot is armed, and no bot is dead';
  const exclude = 'with --ready, for whoever starts the bot: bots may be missing';
  addReadingFlags(
    program
      .command('healthcheck')
      .description('ask the running daemon whether it is live or ready; for containers and probes')
      .option('--live', 'live: its loop makes progress (this is what is asked without a flag)')
      .addOption(new Option('--ready', ready).conflicts('live'))
      .addOption(new Option('--exclude <what>', exclude).choices(['bots']))
      .option('--bot <name>', 'with --ready: this bot and its markets alone')
      .option('--wait <seconds>', 'how long to wait until it is so, 0 to 86400', '0'),
  ).action((flags: Flags) => waitForHealth(flags, edge));
}

async function waitForHealth(flags: Flags, edge: Edge): Promise<void> {
  for (const flag of ['exclude', 'bot'] as const)
    if (flags[flag] !== undefined && flags.ready !== true)
      throw misuse(`--${flag}: found without --ready; write both, or neither`);
  const { clock } = edge;
  const untilMs = clock.now().monoMs + readWait(flags.wait, LONGEST_WAIT_SECONDS) * 1000;
  for (let tries = 0; ; tries += 1) {
    try {
      return edge.out(await checkHealth(flags, edge));
    } catch (error) {
      const mayPass = error instanceof CommandError && error.exitCode === EXIT.unreachable;
      if (!mayPass || clock.now().monoMs >= untilMs) throw error;
      if (tries === 0) edge.err(`killswitchd healthcheck: waits: ${error.message}`);
    }
    await pause(clock, ASK_EVERY_MS);
  }
}

/** Returns the sentence that says that all is well; throws where it is not. */
async function checkHealth(flags: Flags, edge: Edge): Promise<string> {
  const wanted = flags.ready === true ? 'ready' : 'live';
  const { bot, exclude } = flags;
  const { ask, at, kind } = createControlClient(await findReadable(flags, edge.env), edge);
  const isWeb = kind === 'web';
  const asked = { ...(bot !== undefined && { bot }), ...(exclude !== undefined && isWeb && { exclude }) };
  const query = new URLSearchParams(asked).toString();
  const page = isWeb ? `/${wanted}z` : '/v1/health';
  const answer = await ask(query === '' ? page : `${page}?${query}`, ANSWER_WITHIN_MS);
  const why = isWeb ? whyNotByWeb(answer, at) : whyNot(answer, wanted, exclude !== undefined, at);
  const what = bot === undefined ? wanted : `${wanted} for the bot ${bot}`;
  if (why !== null) throw new CommandError(EXIT.unreachable, `the daemon at ${at} is not ${what}: ${why}`);
  return `The daemon is ${exclude !== undefined && bot === undefined ? `${what} for its bots` : what}.`;
}

function whyNot(answer: Answer, wanted: 'ready' | 'live', withoutBots: boolean, at: string): string | null {
  const said = withoutBots ? answer.said?.['withoutBots'] : answer.said;
  if (!isRecord(said) || typeof said[wanted] !== 'boolean') throw refusal(answer, at);
  if (said[wanted]) return null;
  if (wanted === 'live') return 'its loop makes no progress';
  return listReasons(textsOf(said['notReady']));
}

function whyNotByWeb({ status, text }: Answer, at: string): string | null {
  if (status === 200) return null;
  if (status === 404 && text.startsWith('unknown bot'))
    throw misuse(`--bot: no market of the daemon at ${at} names this bot`);
  if (status !== 503) throw notOurs(status, at);
  const lines = text.split('\n').map(plain);
  return listReasons(lines.filter((line) => line !== ''));
}

/** The rest is not counted: the daemon tells no more than 100. */
function listReasons(reasons: readonly string[]): string {
  if (reasons.length === 0) return 'it does not say why';
  const rest = reasons.length > REASONS_SHOWN ? ['and more'] : [];
  return [...reasons.slice(0, REASONS_SHOWN), ...rest].join('; ');
}
