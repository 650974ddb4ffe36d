import type { Timeline } from '../simulator/virtual-clock.ts';
import type { Fleet } from './fleet.ts';
import type { Incarnation } from './incarnation.ts';
import type { Intent } from './intent-book.ts';
import type { Judge } from './judge.ts';
import { botName, type Plan, type PlannedMarket } from './plan.ts';

/** What people do to the daemons on purpose: reloads of a configuration that all of them share, and commands. */
export interface Operators {
  readonly markets: () => readonly PlannedMarket[];
  changeTimeout(market: number, timeoutSeconds: number): void;
  /** Takes the market out of the configuration, and brings it back after `forMs`. */
  remove(market: number, forMs: number): void;
  /** Takes the market out of guard, and arms it again after `forMs`; a pause ends by itself. */
  hold(market: number, does: 'pause' | 'disarm' | 'trip', forMs: number): void;
  /** Everything is configured, and what is held is armed, from now on. */
  restore(): void;
}

interface Wish {
  readonly planned: PlannedMarket;
  timeoutSeconds: number;
  outUntilMs: number;
  heldUntilMs: number;
}

export function createOperators(plan: Plan, timeline: Timeline, judge: Judge, fleet: () => Fleet): Operators {
  const wishes = plan.markets.map(
    (planned): Wish => ({ planned, timeoutSeconds: planned.timeoutSeconds, outUntilMs: 0, heldUntilMs: 0 }),
  );
  const { nowMs } = timeline;
  const tell = createTelling(fleet);
  const markets = () =>
    wishes
      .filter(({ outUntilMs }) => outUntilMs <= nowMs())
      .map(({ planned, timeoutSeconds }) => ({ ...planned, timeoutSeconds }));

  const reload = () => tell((host) => reloadHost(plan, host, markets(), judge));
  function command(wish: Wish, does: 'arm' | 'pause' | 'disarm' | 'trip', forMs: number): void {
    const { market } = wish.planned;
    tell((host) => {
      const known = host.keeper.state.byName.get(market);
      if (known === undefined || known.leaving) return;
      const intent: Intent = does === 'arm' ? 'guard' : does;
      // A pause of what was taken out of guard for good changes nothing.
      if (intent !== 'pause' || known.hold === null || known.hold.why === 'paused')
        judge.onIntent(host, market, intent);
      void host.keeper.operate({ does, markets: [market], forMs }, 0);
    });
  }

  return {
    markets,
    changeTimeout(index, timeoutSeconds) {
      const wish = wishes[index];
      if (wish === undefined) return;
      wish.timeoutSeconds = timeoutSeconds;
      judge.onTimeout(wish.planned.market, timeoutSeconds * 1000);
      reload();
    },
    remove(index, forMs) {
      const wish = wishes[index];
      if (wish === undefined) return;
      wish.outUntilMs = Math.max(wish.outUntilMs, nowMs() + forMs);
      reload();
      timeline.at(nowMs() + forMs, reload);
    },
    hold(index, does, forMs) {
      const wish = wishes[index];
      if (wish === undefined) return;
      wish.heldUntilMs = Math.max(wish.heldUntilMs, nowMs() + forMs);
      command(wish, does, forMs);
      timeline.at(nowMs() + forMs, () => {
        if (nowMs() >= wish.heldUntilMs) command(wish, 'arm', 0);
      });
    },
    restore() {
      // A market that waits for its slow probe is not helped along: it has to come right by itself.
      const held = wishes.filter(({ heldUntilMs }) => heldUntilMs > nowMs());
      for (const wish of wishes) {
        wish.outUntilMs = 0;
        wish.heldUntilMs = 0;
      }
      reload();
      for (const wish of held) command(wish, 'arm', 0);
    },
  };
}

/** A host that stands still is told when it runs again; one that stops is not told any more. */
function createTelling(fleet: () => Fleet) {
  return (run: (host: Incarnation) => void): void => {
    for (const host of fleet().running.values()) {
      host.clock.whenRunning(() => {
        if (host.stoppingMs === null && fleet().running.get(host.daemon) === host) run(host);
      });
    }
  };
}

function reloadHost(plan: Plan, host: Incarnation, configured: readonly PlannedMarket[], judge: Judge): void {
  for (const { market: name } of plan.markets) {
    const known = host.keeper.state.byName.get(name);
    const guarded = known !== undefined && !known.leaving;
    const wanted = configured.some(({ market }) => market === name);
    if (guarded !== wanted) judge.onIntent(host, name, wanted ? 'guard' : 'remove');
  }
  for (const { bot } of configured) {
    if (!host.keeper.state.bots.has(botName(bot))) judge.onIntroduced(host, bot);
  }
  host.keeper.reload(host.configure(configured));
}
