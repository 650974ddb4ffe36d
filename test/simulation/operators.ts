import type { Incarnation, Intent, Shared } from './court.ts';
import type { Fleet } from './hosts.ts';
import type { Judge } from './judge.ts';
import type { Plan, PlannedMarket } from './plan.ts';
import type { Timeline } from './virtual-clock.ts';

/** What people want of a market. */
function createWish(planned: PlannedMarket) {
  return {
    planned,
    timeoutSeconds: planned.timeoutSeconds,
    outUntilMs: 0,
    heldUntilMs: 0,
    /** Until when each daemon takes it for another one's. */
    elsewhereUntilMs: new Map<number, number>(),
  };
}
type Wish = ReturnType<typeof createWish>;

const ARMS_AFTER_MS = 1000;

export type Operators = ReturnType<typeof createOperators>;

/** What people do to the daemons on purpose: reloads of a configuration that all of them share, and commands. */
export function createOperators(plan: Plan, timeline: Timeline, judge: Judge, fleet: () => Fleet) {
  const wishes = plan.markets.map(createWish);
  /** A plan that was read names no market that it does not have. */
  const wishOf = (index: number) => wishes[index] as Wish;
  const { nowMs } = timeline;
  /** A host that stands still is told when it runs again; one that stops is not told any more. */
  function tell(run: (host: Incarnation) => void): void {
    for (const host of fleet().running.values()) {
      host.clock.whenRunning(() => {
        if (host.stoppingMs === null && fleet().running.get(host.daemon) === host) run(host);
      });
    }
  }
  let restored = false;
  const markets = (daemon: number) => sharedOf(wishes, daemon, nowMs());
  const reload = (daemon?: number) =>
    tell((host) => {
      if (daemon === undefined || host.daemon === daemon) reloadHost(plan, host, markets(host.daemon), judge);
    });
  function command(wish: Wish, does: 'arm' | 'pause' | 'disarm' | 'trip', forMs: number): void {
    const { market } = wish.planned;
    tell((host) => {
      const known = host.keeper.snapshot().markets.find((one) => one.market === market);
      if (known === undefined || known.leaving) return;
      const intent: Intent = does === 'arm' ? 'guard' : does;
      // A pause of what was taken out of guard for good changes nothing.
      if (intent !== 'pause' || known.hold === null || known.hold.why === 'paused')
        judge.onIntent(host, market, intent);
      void host.keeper.operate({ does, markets: [market], forMs }, 0);
    });
  }

  return {
    /** As this daemon sees them. */
    markets,
    /** Tells a daemon, or all of them, that its configuration has changed. */
    reload,
    changeTimeout(index: number, timeoutSeconds: number): void {
      const wish = wishOf(index);
      wish.timeoutSeconds = timeoutSeconds;
      judge.onTimeout(wish.planned.market, timeoutSeconds * 1000);
      reload();
    },
    /** Takes the market out of the configuration, and brings it back after `forMs`. */
    remove(index: number, forMs: number): void {
      const wish = wishOf(index);
      wish.outUntilMs = Math.max(wish.outUntilMs, nowMs() + forMs);
      reload();
      timeline.at(nowMs() + forMs, () => reload());
    },
    /**
     * Gives the market to one daemon alone, and back to all after `forMs`. The others learn of either one after the other,
     * the last one after `lagMs`.
     */
    move(index: number, keeper: number, forMs: number, lagMs: number): void {
      const { elsewhereUntilMs } = wishOf(index);
      for (const daemon of plan.daemons.keys()) {
        if (daemon === keeper) continue;
        const learnsMs = nowMs() + (lagMs * (daemon + 1)) / plan.daemons.length;
        timeline.at(learnsMs, () => {
          if (!restored)
            elsewhereUntilMs.set(daemon, Math.max(elsewhereUntilMs.get(daemon) ?? 0, learnsMs + forMs));
          reload(daemon);
        });
        timeline.at(learnsMs + forMs, () => reload(daemon));
      }
    },
    /** Takes the market out of guard, and arms it again after `forMs`; a pause ends by itself. */
    hold(index: number, does: 'pause' | 'disarm' | 'trip', forMs: number): void {
      const wish = wishOf(index);
      wish.heldUntilMs = Math.max(wish.heldUntilMs, nowMs() + forMs);
      command(wish, does, forMs);
      timeline.at(nowMs() + forMs, () => {
        if (nowMs() >= wish.heldUntilMs) command(wish, 'arm', 0);
      });
    },
    /** A lapse took the market out of guard: once everything is restored, somebody arms it again. */
    onLapsed(market: string): void {
      const wish = wishes.find(({ planned }) => planned.market === market);
      if (restored && wish !== undefined) timeline.at(nowMs() + ARMS_AFTER_MS, () => command(wish, 'arm', 0));
    },
    /** Everything is configured, and what is held is armed, from now on. */
    restore(): void {
      // A market that waits for its slow probe is not helped along: it has to come right by itself.
      const held = wishes.filter(({ heldUntilMs }) => heldUntilMs > nowMs());
      for (const wish of wishes) {
        wish.outUntilMs = 0;
        wish.heldUntilMs = 0;
        wish.elsewhereUntilMs.clear();
      }
      restored = true;
      reload();
      for (const wish of held) command(wish, 'arm', 0);
      // What a lapse took out of guard waits for its operator.
      if (plan.onLapse === 'hold') for (const wish of wishes) command(wish, 'arm', 0);
    },
  };
}

function sharedOf(wishes: readonly Wish[], daemon: number, nowMs: number): Shared {
  const shared = { own: [] as PlannedMarket[], elsewhere: [] as PlannedMarket[] };
  for (const { planned, timeoutSeconds, outUntilMs, elsewhereUntilMs } of wishes) {
    const isElsewhere = (elsewhereUntilMs.get(daemon) ?? 0) > nowMs;
    if (outUntilMs <= nowMs) shared[isElsewhere ? 'elsewhere' : 'own'].push({ ...planned, timeoutSeconds });
  }
  return shared;
}

function reloadHost(plan: Plan, host: Incarnation, shared: Shared, judge: Judge): void {
  const { markets } = host.keeper.snapshot();
  for (const { market: name } of plan.markets) {
    const known = markets.find(({ market }) => market === name);
    const guarded = known !== undefined && !known.leaving;
    const isOne = ({ market }: PlannedMarket) => market === name;
    const own = shared.own.some(isOne);
    const elsewhere = shared.elsewhere.some(isOne);
    if (known !== undefined && elsewhere) judge.onMove(host, name, true);
    else if (guarded && own) judge.onMove(host, name, false);
    else if (!own && guarded) judge.onIntent(host, name, 'remove');
    else if (own) {
      judge.onMove(host, name, false);
      judge.onIntent(host, name, 'guard');
    }
  }
  const named = new Set(shared.own.map(({ bot }) => bot));
  for (const bot of named) if (!host.bots.has(bot)) judge.onIntroduced(host, bot);
  for (const bot of host.bots) if (!named.has(bot)) judge.onDismissed(host, bot);
  host.bots = named;
  host.keeper.reload(host.configure(shared));
}
