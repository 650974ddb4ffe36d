import { urgencyOf } from '../operator/status.ts';
import { type Answer, type ControlClient, isRecord, plain, refusal, textsOf } from './control-client.ts';

/** One market of the status document, as far as a table shows it. Durations in seconds, moments in Unix seconds. */
export interface SeenMarket {
  readonly market: string;
  readonly bot: string;
  readonly state: string;
  readonly hold: { readonly why: string; readonly untilAt: number | null } | null;
  readonly leaving: boolean;
  readonly handedOverInSeconds: number | null;
  readonly timeoutSeconds: number | null;
  readonly renewEverySeconds: number | null;
  readonly guaranteedSeconds: number | null;
  readonly lastSlackRatio: number | null;
  readonly failures: number;
  readonly lapses: number;
  readonly lastProblem: string | null;
}

export interface SeenBase {
  readonly url: string;
  readonly up: boolean | null;
  readonly pingSeconds: number | null;
  readonly outage: boolean;
  readonly lastProblem: string | null;
}

export interface SeenBot {
  readonly bot: string;
  readonly mode: string;
  readonly state: string;
  readonly evidenceAgeSeconds: number | null;
}

/** What a daemon says of itself. Every text is fit for a terminal. */
export interface SeenStatus {
  readonly version: string;
  readonly startedAt: number | null;
  readonly now: number | null;
  readonly phase: string;
  readonly ready: boolean;
  readonly notReady: readonly string[];
  /** Null where something is guarded, or the daemon does not say. */
  readonly nothingGuarded: string | null;
  readonly shutdownPolicy: string;
  readonly stops: readonly {
    readonly does: string;
    readonly count: number;
    readonly markets: readonly string[];
  }[];
  readonly bases: readonly SeenBase[];
  readonly bots: ReadonlyMap<string, SeenBot>;
  readonly markets: readonly SeenMarket[];
}

/** The status document as it came and as it was read. */
export interface Look {
  readonly answer: Answer;
  readonly seen: SeenStatus;
}

const ANSWER_WITHIN_MS = 10_000;

/** Asks for the status once; throws a `CommandError` where there is none to be had. */
export async function lookAt(client: ControlClient): Promise<Look> {
  const answer = await client.ask({ method: 'GET', path: '/v1/status', withinMs: ANSWER_WITHIN_MS });
  const seen = answer.status === 200 ? readStatus(answer.json) : null;
  if (seen === null) throw refusal(answer, client.at);
  return { answer, seen };
}

/**
 * Reads `/v1/status` of whatever version: what is missing or of another type than expected is left blank. Null where it
 * is no status document at all.
 */
export function readStatus(json: unknown): SeenStatus | null {
  if (!isRecord(json) || !Array.isArray(json['markets'])) return null;
  const bots = listOf(json, 'bots').map(
    (bot): SeenBot => ({
      bot: textOf(bot, 'bot'),
      mode: textOf(bot, 'mode'),
      state: textOf(bot, 'state'),
      evidenceAgeSeconds: numberOf(bot, 'evidenceAgeSeconds'),
    }),
  );
  return {
    version: textOf(json, 'version'),
    startedAt: numberOf(json, 'startedAt'),
    now: numberOf(json, 'now'),
    phase: textOf(json, 'phase'),
    ready: json['ready'] === true,
    notReady: textsOf(json['notReady']),
    nothingGuarded: textOf(json, 'nothingGuarded') || null,
    shutdownPolicy: textOf(json, 'shutdownPolicy'),
    stops: listOf(json, 'whatAStopWouldDo').map((stop) => ({
      does: textOf(stop, 'does'),
      count: numberOf(stop, 'count') ?? 0,
      markets: textsOf(stop['markets']),
    })),
    bases: listOf(json, 'bases').map((base) => ({
      url: textOf(base, 'url'),
      up: typeof base['up'] === 'boolean' ? base['up'] : null,
      pingSeconds: numberOf(base, 'pingSeconds'),
      outage: base['outage'] === true,
      lastProblem: textOf(base, 'lastProblem') || null,
    })),
    bots: new Map(bots.map((bot) => [bot.bot, bot])),
    markets: listOf(json, 'markets').map(readMarket),
  };
}

function readMarket(market: Fields): SeenMarket {
  const hold = isRecord(market['hold']) ? market['hold'] : null;
  return {
    market: textOf(market, 'market'),
    bot: textOf(market, 'bot'),
    state: textOf(market, 'state'),
    hold: hold === null ? null : { why: textOf(hold, 'why'), untilAt: numberOf(hold, 'untilAt') },
    leaving: market['leaving'] === true,
    handedOverInSeconds: numberOf(market, 'handedOverInSeconds'),
    timeoutSeconds: numberOf(market, 'timeoutSeconds'),
    renewEverySeconds: numberOf(market, 'renewEverySeconds'),
    guaranteedSeconds: numberOf(market, 'guaranteedSeconds'),
    lastSlackRatio: numberOf(market, 'lastSlackRatio'),
    failures: numberOf(market, 'failures') ?? 0,
    lapses: numberOf(market, 'lapses') ?? 0,
    lastProblem: textOf(market, 'lastProblem') || null,
  };
}

type Fields = Readonly<Record<string, unknown>>;

function listOf(fields: Fields, key: string): readonly Fields[] {
  const value = fields[key];
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function textOf(fields: Fields, key: string): string {
  const value = fields[key];
  return typeof value === 'string' ? plain(value) : '';
}

function numberOf(fields: Fields, key: string): number | null {
  const value = fields[key];
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** All markets in their own order where `limit` allows; else the `limit` worst of them, the worst first. */
export function worstMarkets(markets: readonly SeenMarket[], limit: number): readonly SeenMarket[] {
  if (markets.length <= limit) return markets;
  const rank = ({ state, lapses, lastProblem }: SeenMarket): number => {
    return urgencyOf(state) * 4 + (lapses > 0 ? 0 : 2) + (lastProblem === null ? 1 : 0);
  };
  const leftOf = ({ guaranteedSeconds }: SeenMarket): number => guaranteedSeconds ?? Number.POSITIVE_INFINITY;
  return markets
    .toSorted((one, other) => rank(one) - rank(other) || compare(leftOf(one), leftOf(other)))
    .slice(0, Math.max(0, limit));
}

function compare(one: number, other: number): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
