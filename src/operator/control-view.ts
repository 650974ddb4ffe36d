import type { MarketSnapshot, Snapshot } from '../core/view.ts';
import type { ControlSources } from './control-sources.ts';

/** What a beat is told: `armed` is whether every market of the bot is surely armed, and will be renewed. */
export interface BotView {
  readonly armed: boolean;
  readonly markets: Readonly<Record<string, object>>;
  readonly marketsOmitted?: number;
}

/** What requests read of one snapshot. */
export interface Views {
  snapshot(): Snapshot;
  markets(bot: string): readonly MarketSnapshot[];
  /** A bot's markets as its beats are told of them. */
  bot(bot: string): BotView;
  /** Ends the sharing: something was done since, and the reply must show it. */
  forget(): void;
}

/** More of a bot's markets are counted and not listed; those that are not armed come first then. */
const MOST_LISTED = 200;
/** Beats that arrive within this share a snapshot: one of ten thousand markets takes milliseconds. */
const FRESH_MS = 25;

interface Seen {
  readonly snapshot: Snapshot;
  readonly revision: number;
  /** Unix milliseconds, right before the snapshot was taken. */
  readonly wallMs: number;
  readonly untilMs: number;
  /** How old it gets at most. */
  readonly agesMs: number;
  readonly marketsOf: Partial<Record<string, MarketSnapshot[]>>;
  readonly views: Map<string, BotView>;
}

/** Shares one snapshot for 25 ms, unless a command, a reload or a stop made it untrue before. */
export function createViews(sources: Pick<ControlSources, 'clock' | 'snapshot' | 'revision'>): Views {
  const { clock } = sources;
  let seen: Seen | null = null;
  function look(): Seen {
    const { monoMs: startMs, wallMs } = clock.now();
    const revision = sources.revision();
    if (seen !== null && startMs < seen.untilMs && revision === seen.revision) return seen;
    const snapshot = sources.snapshot();
    const marketsOf = Object.groupBy(
      snapshot.markets.filter(({ leaving }) => !leaving),
      ({ bot }) => bot,
    );
    const untilMs = clock.now().monoMs + FRESH_MS;
    const agesMs = untilMs - startMs;
    const own: Seen = { snapshot, revision, wallMs, untilMs, agesMs, marketsOf, views: new Map() };
    seen = own;
    // Not kept in memory until the next beat.
    clock.after(FRESH_MS, () => {
      if (seen === own) seen = null;
    });
    return own;
  }
  return {
    snapshot: () => look().snapshot,
    markets: (bot) => look().marketsOf[bot] ?? [],
    bot(bot) {
      const found = look();
      const view = found.views.get(bot) ?? describeBot(found.marketsOf[bot] ?? [], found);
      found.views.set(bot, view);
      return view;
    },
    forget() {
      seen = null;
    },
  };
}

/** Takes off of every timer how old the snapshot may get: a beat must not promise a bot too much. */
function describeBot(markets: readonly MarketSnapshot[], { snapshot, wallMs, agesMs }: Seen): BotView {
  const isArmed = ({ state, guaranteedMs }: MarketSnapshot): boolean =>
    snapshot.phase === 'running' &&
    (state === 'armed' || state === 'retrying') &&
    (guaranteedMs ?? 0) > agesMs;
  const [safe, unsafe]: [MarketSnapshot[], MarketSnapshot[]] = [[], []];
  for (const market of markets) (isArmed(market) ? safe : unsafe).push(market);
  const omitted = Math.max(0, markets.length - MOST_LISTED);
  const listed = (omitted === 0 ? markets : [...unsafe, ...safe].slice(0, MOST_LISTED)).map((market) => {
    const { guaranteedMs } = market;
    const leftMs = guaranteedMs === null ? null : Math.max(0, guaranteedMs - agesMs);
    const described = {
      state: market.state,
      armed: isArmed(market),
      expiresInSeconds: leftMs === null ? null : Math.floor(leftMs / 100) / 10,
      expiresAt: leftMs === null || leftMs === 0 ? null : toSeconds(wallMs + (guaranteedMs ?? 0)),
    };
    return [market.market, described] as const;
  });
  return {
    armed: markets.length > 0 && unsafe.length === 0,
    markets: Object.fromEntries(listed),
    ...(omitted === 0 ? {} : { marketsOmitted: omitted }),
  };
}

/** By when the timers of a bot that failed fire: what its reply says of each market. */
export function describeFiring(markets: readonly MarketSnapshot[], nowWallMs: number): object {
  const entries = markets.slice(0, MOST_LISTED).map(({ market, state, firesByWallMs }) => {
    const leftMs = firesByWallMs === null ? null : Math.max(0, firesByWallMs - nowWallMs);
    const firesInSeconds = leftMs === null ? null : Math.ceil(leftMs / 100) / 10;
    return [
      market,
      { state, firesInSeconds, firesBy: firesByWallMs === null ? null : toSeconds(firesByWallMs) },
    ];
  });
  const omitted = markets.length - entries.length;
  return { markets: Object.fromEntries(entries), ...(omitted > 0 ? { marketsOmitted: omitted } : {}) };
}

function toSeconds(wallMs: number): number {
  return Math.round(wallMs) / 1000;
}
