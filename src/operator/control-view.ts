import type { MarketSnapshot, Snapshot } from '../core/snapshot.ts';
import type { ControlSources } from './control-sources.ts';

/** A bot's markets as its beats are told of them. */
export interface BotView {
  /** Every market of the bot is surely armed, and will be renewed. */
  readonly armed: boolean;
  /** The rest of the reply: `"markets":{...}`, and `"marketsOmitted"` where not all are in it. */
  readonly listed: string;
}

/** What many requests read of one snapshot. */
export interface Views {
  snapshot(): Snapshot;
  markets(bot: string): readonly MarketSnapshot[];
  bot(bot: string): BotView;
  /** What was seen counts no more: what somebody asked for has happened since, and the reply shall show it. */
  forget(): void;
}

/** More of a bot's markets are counted and not listed; those that are not armed come first then. */
const MOST_LISTED = 200;
/** A snapshot is good for this long at least, and for this many times what it took, so that beats use a tenth of the loop at most. */
const FRESH_MS = 25;
const FRESH_FACTOR = 20;
const FRESHEST_MS = 250;

interface Seen {
  readonly snapshot: Snapshot;
  /** Of the sources, when the snapshot was taken. */
  readonly revision: number;
  /** Unix milliseconds, right before the snapshot was taken. */
  readonly wallMs: number;
  readonly untilMs: number;
  /** How old it gets at most. */
  readonly agesMs: number;
  readonly marketsOf: ReadonlyMap<string, readonly MarketSnapshot[]>;
  readonly views: Map<string, BotView>;
}

/**
 * Shares one snapshot, and the texts made of it, among all who ask within 25 to 250 ms, unless somebody changed
 * something: whoever had a file loaded, or told the daemon to stop, must not be told what was before.
 */
export function createViews(sources: Pick<ControlSources, 'clock' | 'snapshot' | 'revision'>): Views {
  const { clock } = sources;
  let seen: Seen | null = null;

  function look(): Seen {
    const { monoMs: startMs, wallMs } = clock.now();
    const revision = sources.revision();
    if (seen !== null && startMs < seen.untilMs && revision === seen.revision) return seen;
    const snapshot = sources.snapshot();
    const marketsOf = groupByBot(snapshot.markets);
    const tookMs = clock.now().monoMs - startMs;
    const goodForMs = Math.min(FRESHEST_MS, Math.max(FRESH_MS, tookMs * FRESH_FACTOR));
    const agesMs = tookMs + goodForMs;
    const untilMs = startMs + agesMs;
    const own = { snapshot, revision, wallMs, agesMs, untilMs, marketsOf, views: new Map() };
    seen = own;
    // Of ten thousand markets it is most of a megabyte, which every collection would copy until the next beat comes.
    clock.after(goodForMs, () => {
      if (seen === own) seen = null;
    });
    return own;
  }

  return {
    snapshot: () => look().snapshot,
    markets: (bot) => look().marketsOf.get(bot) ?? [],
    bot(bot) {
      const found = look();
      const { marketsOf, views } = found;
      const known = views.get(bot);
      if (known !== undefined) return known;
      const view = describeBot(marketsOf.get(bot) ?? [], found);
      views.set(bot, view);
      return view;
    },
    forget() {
      seen = null;
    },
  };
}

/** Without those on their way out of the configuration. */
function groupByBot(markets: readonly MarketSnapshot[]): ReadonlyMap<string, readonly MarketSnapshot[]> {
  const groups = new Map<string, MarketSnapshot[]>();
  for (const market of markets) {
    if (market.leaving) continue;
    const group = groups.get(market.bot);
    if (group === undefined) groups.set(market.bot, [market]);
    else group.push(market);
  }
  return groups;
}

/**
 * Counts off from every timer how old the view may get: a bot that goes by it must not be told too much, nor be named a
 * moment that has passed.
 */
function describeBot(markets: readonly MarketSnapshot[], { snapshot, wallMs, agesMs }: Seen): BotView {
  const armed = (market: MarketSnapshot): boolean =>
    snapshot.phase === 'running' &&
    (market.state === 'armed' || market.state === 'retrying') &&
    (market.guaranteedMs ?? 0) > agesMs;
  const safe: MarketSnapshot[] = [];
  const unsafe: MarketSnapshot[] = [];
  for (const market of markets) (armed(market) ? safe : unsafe).push(market);
  const omitted = Math.max(0, markets.length - MOST_LISTED);
  const chosen = omitted === 0 ? markets : [...unsafe, ...safe].slice(0, MOST_LISTED);
  const entries = chosen.map((market) => {
    const leftMs = market.guaranteedMs === null ? null : Math.max(0, market.guaranteedMs - agesMs);
    const described = {
      state: market.state,
      armed: armed(market),
      expiresInSeconds: leftMs === null ? null : Math.floor(leftMs / 100) / 10,
      expiresAt: toUnixSeconds(leftMs === null || leftMs === 0 ? null : wallMs + (market.guaranteedMs ?? 0)),
    };
    return `${JSON.stringify(market.market)}:${JSON.stringify(described)}`;
  });
  const more = omitted === 0 ? '' : `,"marketsOmitted":${omitted}`;
  return {
    armed: markets.length > 0 && unsafe.length === 0,
    listed: `"markets":{${entries.join(',')}}${more}`,
  };
}

/** When the timers of a bot that failed fire: what its reply says of each market. */
export function describeFiring(
  markets: readonly MarketSnapshot[],
  nowWallMs: number,
): Record<string, unknown> {
  const entries = markets.slice(0, MOST_LISTED).map(({ market, state, firesByWallMs }) => {
    const leftMs = firesByWallMs === null ? null : Math.max(0, firesByWallMs - nowWallMs);
    const firesInSeconds = leftMs === null ? null : Math.ceil(leftMs / 100) / 10;
    return [market, { state, firesInSeconds, firesBy: toUnixSeconds(firesByWallMs) }];
  });
  const omitted = markets.length - entries.length;
  return { markets: Object.fromEntries(entries), ...(omitted > 0 ? { marketsOmitted: omitted } : {}) };
}

function toUnixSeconds(wallMs: number | null): number | null {
  return wallMs === null ? null : Math.round(wallMs) / 1000;
}
