import { WORDS } from '../operator/page-words.ts';
import type { Clock } from '../ports.ts';
import { CommandError } from './command-error.ts';
import { type Answer, type ControlClient, isRecord, plain, refusal } from './control-client.ts';
import { type Edge, EXIT, type ExitCode } from './edge.ts';

/** How far one market has come with what was asked for. */
export interface MarketProgress {
  readonly market: string;
  readonly state: 'done' | 'waiting' | 'impossible';
  readonly says: string;
}

/** What is asked for, and how long the daemon may take to see it happen. */
export interface Order {
  readonly client: ControlClient;
  readonly edge: Edge;
  readonly clock: Clock;
  readonly path: string;
  readonly body: object;
  readonly waitSeconds: number;
}

/** The daemon answers when its wait is over; a little later it is given up. */
const PATIENCE_MS = 10_000;
const CLEAR_LINE = '\r\u001b[K';

/** Sends an order and waits for the answer, and on a terminal says for how long already. */
export async function carryOut({ client, edge, clock, path, body, waitSeconds }: Order): Promise<Answer> {
  const endProgress = edge.screen === undefined ? () => {} : countSeconds(edge.screen, clock, waitSeconds);
  try {
    return await client.ask({ method: 'POST', path, body, withinMs: waitSeconds * 1000 + PATIENCE_MS });
  } finally {
    endProgress();
  }
}

function countSeconds(screen: NonNullable<Edge['screen']>, clock: Clock, waitSeconds: number): () => void {
  let waited = 0;
  let cancel = () => {};
  const count = () => {
    cancel = clock.after(1000, () => {
      waited += 1;
      screen.write(
        `${CLEAR_LINE}Waiting for the exchange to confirm it: ${waited} s of at most ${waitSeconds} s`,
      );
      count();
    });
  };
  count();
  return () => {
    cancel();
    if (waited > 0) screen.write(CLEAR_LINE);
  };
}

const STATES = ['done', 'waiting', 'impossible'] as const;

/** The markets of a reply; throws what the daemon says where it refused the order as a whole. */
export function readProgress(answer: Answer, at: string): readonly MarketProgress[] {
  const { json } = answer;
  if (!isRecord(json) || isRecord(json['error']) || !Array.isArray(json['markets']))
    throw refusal(answer, at);
  return readMarkets(json['markets'], at);
}

/** Entries of `markets`, or of the progress of a reload. */
export function readMarkets(entries: readonly unknown[], at: string): readonly MarketProgress[] {
  return entries.map((entry) => {
    const state = isRecord(entry) ? STATES.find((known) => known === entry['state']) : undefined;
    if (!isRecord(entry) || state === undefined) {
      throw new CommandError(
        EXIT.internal,
        `the daemon at ${at} says how far it is in a way unknown to this version`,
      );
    }
    return { market: plain(String(entry['market'])), state, says: plain(String(entry['says'])) };
  });
}

export interface Reporting {
  readonly edge: Edge;
  readonly waitSeconds: number;
  /** Only the exit code, and what stands in the way of 0. */
  readonly silent: boolean;
  /** What is said of markets to which it will not happen; that it is impossible, unless given. */
  readonly otherwise?: string;
}

/** A sentence per market, what is not done last and on standard error, and the exit code that it comes to. */
export function reportProgress(
  what: string,
  progress: readonly MarketProgress[],
  { edge, waitSeconds, silent, otherwise = 'impossible as things stand' }: Reporting,
): ExitCode {
  const of = (state: MarketProgress['state']) => progress.filter((one) => one.state === state);
  const [done, waiting, impossible] = [of('done'), of('waiting'), of('impossible')];
  if (!silent) for (const { says } of done) edge.out(says);
  if (!silent) for (const { says } of [...waiting, ...impossible]) edge.err(says);
  const say = (count: number, words: string) => {
    if (count > 0)
      edge.err(`killswitchd ${what}: ${count} of ${WORDS.count(progress.length, 'market')} ${words}`);
  };
  say(waiting.length, `not confirmed within ${waitSeconds} s; the daemon goes on trying`);
  say(impossible.length, otherwise);
  if (impossible.length > 0) return EXIT.unreachable;
  return waiting.length > 0 ? EXIT.unconfirmed : EXIT.ok;
}
