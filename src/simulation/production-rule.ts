import type { Outcome } from '../core/outcome.ts';
import { type CoreSettings, LOOKS_PER_MS } from '../core/settings.ts';
import { createKeeper } from '../keeper.ts';
import type { Clock, Exchange } from '../ports.ts';
import { createHostClock } from '../simulator/virtual-clock.ts';
import { createSimulatedLimiter } from './limiter.ts';
import type { Rule, RuleWorld } from './rules.ts';
import type { Reply, SingleTimer } from './single-timer.ts';

const MARKET = 'BTC_USDT';
const BASE = 'https://simulated';

/** Not a model: the core and the keeper that run in production, with the settings of a fresh configuration. */
export const PRODUCTION_RULE: Rule = {
  name: 'killswitchd',
  renews: 'T/10 within 1 s and 10 s; retry after a quarter of what is left; overlapping',
  start(world) {
    const clock = createHostClock(world.timeline);
    createKeeper({
      settings: settingsOf(world),
      clock,
      exchange: createExchange(world.timer, clock),
      observe: () => {},
    }).start();
  },
};

function settingsOf({ timeoutMs, seed }: RuleWorld): CoreSettings {
  return {
    markets: [{ market: MARKET, timeoutMs, types: null, renewEveryMs: null, bot: 'default' }],
    nonce: 'increasing',
    bases: [BASE],
    sameAccount: false,
    budget: { requests: 5000, windowMs: 10_000 },
    connections: 8,
    liveness: { mode: 'none', ttlMs: 15_000, startupGraceMs: 60_000, onStale: 'expire' },
    onLapse: 'rearm',
    shutdown: { policy: 'delete', budgetMs: 8000 },
    ping: { everyMs: 5000, timeoutMs: 3000 },
    cancellationDelayMs: 0,
    requestLifetimeMs: 10_000,
    handover: { elsewhere: [], forMs: 0 },
    looksPerMs: LOOKS_PER_MS,
    seed,
    flaw: null,
  };
}

function createExchange(timer: SingleTimer, clock: Clock): Exchange {
  let pingHangs = false;
  return {
    sync({ fresh, mayWrite }, settled) {
      const giveUp = timer.send({ what: 'renew', fresh, mayWrite }, (reply) => settled(outcomeOf(reply)));
      return () => {
        giveUp();
        const timedOut = {
          kind: 'transient',
          reason: 'timeout',
          detail: 'given up',
          maybeApplied: true,
        } as const;
        clock.after(0, () => settled(timedOut));
      };
    },
    ping(_base, timeoutMs, settled) {
      const begunMs = clock.now().monoMs;
      let over = false;
      const end = (ok: boolean, hangs: boolean) => {
        if (over) return;
        over = true;
        pingHangs = hangs;
        const latencyMs = clock.now().monoMs - begunMs;
        settled(ok ? { ok, latencyMs } : { ok, latencyMs, reason: 'network', detail: 'no pong' });
      };
      const cancel = timer.send({ what: 'read', fresh: pingHangs }, ({ kind }) =>
        end(kind === 'read', false),
      );
      clock.after(timeoutMs, () => {
        cancel();
        end(false, true);
      });
      return cancel;
    },
    acquire: createSimulatedLimiter(clock, () => false),
  };
}

function outcomeOf(reply: Reply): Outcome {
  switch (reply.kind) {
    case 'applied': {
      const { startTime, cancellationTime } = reply;
      return { kind: 'applied', timer: { market: MARKET, startTime, cancellationTime, types: null } };
    }
    case 'unwritten':
      return { kind: 'transient', reason: 'aborted', detail: 'not allowed to leave', maybeApplied: false };
    case 'read':
    case 'refused':
      return { kind: 'transient', reason: 'http_5xx', detail: 'refused', maybeApplied: true };
  }
}
