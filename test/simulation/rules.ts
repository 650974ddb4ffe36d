import { createRandom } from '../../src/simulator/random.ts';
import type { SingleTimer } from './compare.ts';
import type { Timeline } from './virtual-clock.ts';

/** What a renewal rule is put into. Milliseconds; `seed` feeds whatever the rule draws. */
export interface RuleWorld {
  readonly timeline: Timeline;
  readonly timer: SingleTimer;
  readonly timeoutMs: number;
  readonly seed: number;
}

/** A way to keep one timer armed, in a few words and in code. */
export interface Rule {
  readonly name: string;
  readonly renews: string;
  readonly start: (world: RuleWorld) => void;
}

/** An attempt that came to nothing: the failures since the last success, this one included, and milliseconds. */
interface Failure {
  readonly count: number;
  readonly timedOut: boolean;
  /** Since the first attempt of this cycle was written, and since the last good reply. */
  readonly cycleMs: number;
  readonly sinceSuccessMs: number;
  readonly tookMs: number;
}

/** A rule that makes one attempt at a time. */
interface Pace {
  /** From a good reply to the next attempt. */
  readonly periodMs: (tookMs: number) => number;
  /** How long an attempt may stay unanswered: the HTTP timeout of the client. */
  readonly patienceMs: (cycleMs: number) => number;
  /** From a failure to the next attempt; null where the rule gives up for good. */
  readonly retryMs: (failure: Failure) => number | null;
  /** After this many failures the lease is read, and only a good read lets attempts go on. */
  readonly readsAfter?: number;
}

/** HTTP timeout of a client whose library sets none. Assumed, as in the study that these models come from. */
const ASSUMED_PATIENCE_MS = 10_000;

function oneAtATime(
  name: string,
  renews: string,
  paceOf: (timeoutMs: number, random: () => number) => Pace,
): Rule {
  function start({ timeline, timer, timeoutMs, seed }: RuleWorld): void {
    const { readsAfter = Number.POSITIVE_INFINITY, ...pace } = paceOf(timeoutMs, createRandom(seed));
    const { nowMs } = timeline;
    const later = (delayMs: number, run: () => void) => timeline.at(nowMs() + delayMs, run);
    let count = 0;
    let cycleFromMs = nowMs();
    let successMs = nowMs();
    /** After a time-out the connection is closed and the next attempt opens another, as HTTP/1.1 clients do. */
    let fresh = false;

    function attempt(): void {
      const writtenMs = nowMs();
      if (count === 0) cycleFromMs = writtenMs;
      const what = count >= readsAfter ? 'read' : 'renew';
      const cancel = timer.send({ what, fresh }, ({ kind }) => {
        cancelTimeout();
        if (kind === 'refused') fail(writtenMs, false);
        else succeed(writtenMs, what);
      });
      const cancelTimeout = later(pace.patienceMs(writtenMs - cycleFromMs), () => {
        cancel();
        fail(writtenMs, true);
      });
    }
    function succeed(writtenMs: number, what: 'renew' | 'read'): void {
      count = 0;
      fresh = false;
      if (what === 'renew') successMs = nowMs();
      later(what === 'renew' ? pace.periodMs(nowMs() - writtenMs) : 0, attempt);
    }
    function fail(writtenMs: number, timedOut: boolean): void {
      count += 1;
      fresh = timedOut;
      const [cycleMs, sinceSuccessMs] = [nowMs() - cycleFromMs, nowMs() - successMs];
      const retryMs = pace.retryMs({ count, timedOut, cycleMs, sinceSuccessMs, tookMs: nowMs() - writtenMs });
      if (retryMs !== null) later(retryMs, attempt);
    }
    attempt();
  }
  return { name, renews, start };
}

/**
 * Vault's LifetimeWatcher (`api/lifetime_watcher.go`), as intended: sleeps 2/3 T plus a third of a grace of 10 to 20 %
 * of T, and after a failure 10 s, doubled up to 5 min, each +-50 %, never into the grace, where it leaves the rest to
 * its caller. Its client has a timeout of 60 s and makes two quick retries of what failed at once.
 */
const VAULT = oneAtATime(
  'Vault LifetimeWatcher',
  '2/3 T + jitter; backoff from 10 s; gives up in the last 10-20 % of T',
  (timeoutMs, random) => {
    const graceMs = timeoutMs * (0.1 + 0.1 * random());
    let quick = 0;
    let backoffs = 0;
    return {
      periodMs: () => (timeoutMs * 2) / 3 + graceMs / 3,
      patienceMs: () => 60_000,
      retryMs({ count, timedOut, sinceSuccessMs }) {
        if (count === 1) [quick, backoffs] = [0, 0];
        if (!timedOut && quick < 2) {
          quick += 1;
          return quick * (1000 + 500 * random());
        }
        quick = 0;
        const sleepMs = Math.min(10_000 * 2 ** backoffs, 300_000) * (0.5 + random());
        backoffs += 1;
        return timeoutMs - sinceSuccessMs - sleepMs <= graceMs ? null : sleepMs;
      },
    };
  },
);

/**
 * etcd clientv3 (`client/v3/lease.go`): due T/3 after the last reply, looked at every 500 ms, and sent again every
 * 500 ms until a reply comes, without waiting for one. A broken stream is opened again after 500 ms. The backoff of the
 * gRPC connection below it (up to 120 s while connections are refused) is left out, in its favour.
 */
const ETCD: Rule = {
  name: 'etcd clientv3',
  renews: 'T/3; sent again every 500 ms, overlapping',
  start({ timeline, timer, timeoutMs }) {
    const later = (delayMs: number, run: () => void) => timeline.at(timeline.nowMs() + delayMs, run);
    let dueMs = timeline.nowMs();
    let stream = 0;
    function look(opened: number): void {
      if (opened !== stream) return;
      if (timeline.nowMs() >= dueMs) {
        timer.send({ what: 'renew', fresh: false }, ({ kind }) => {
          if (kind === 'applied') {
            dueMs = timeline.nowMs() + timeoutMs / 3;
          } else if (opened === stream) {
            stream += 1;
            const next = stream;
            later(500, () => look(next));
          }
        });
      }
      later(500, () => look(opened));
    }
    look(stream);
  },
};

/**
 * client-go's leader election (`tools/leaderelection/leaderelection.go`), its defaults of 15, 10 and 2 s scaled to T.
 * The HTTP timeout is half of the deadline, at least 1 s, as the Kubernetes components set it.
 */
const CLIENT_GO = oneAtATime('client-go election', '2T/15; same retry; gives up after 2T/3', (timeoutMs) => {
  const periodMs = (timeoutMs * 2) / 15;
  const deadlineMs = (timeoutMs * 2) / 3;
  return {
    periodMs: () => periodMs,
    patienceMs: (cycleMs) => Math.min(Math.max(timeoutMs / 3, 1000), deadlineMs - cycleMs),
    retryMs({ cycleMs }) {
      const nextMs = (Math.floor(cycleMs / periodMs + 1e-9) + 1) * periodMs;
      return nextMs >= deadlineMs - 1e-6 ? null : nextMs - cycleMs;
    },
  };
});

/** The kubelet's node lease (`component-helpers/apimachinery/lease/controller.go`; 10 s of 40 s). */
const KUBELET = oneAtATime(
  'kubelet node lease',
  'T/4; 5 attempts at once, then reads, 0.2 to 7 s apart',
  (timeoutMs, random) => ({
    periodMs: () => (timeoutMs / 4) * (1 + 0.04 * random()),
    patienceMs: () => 10_000,
    readsAfter: 5,
    retryMs: ({ count }) => (count <= 5 ? 0 : Math.min(100 * 2 ** (count - 5), 7000)),
  }),
);

/** Consul's RenewPeriodic (`api/session.go`), until T has passed. (Its server waits 2 T, which an exchange does not.) */
const CONSUL = oneAtATime('Consul session', 'T/2; retry after 1 s', (timeoutMs) => ({
  periodMs: () => timeoutMs / 2,
  patienceMs: () => ASSUMED_PATIENCE_MS,
  retryMs: ({ sinceSuccessMs }) => (sinceSuccessMs > timeoutMs ? null : 1000),
}));

/**
 * Eureka's TimedSupervisorTask (30 s of 90 s): a beat that hangs is given up after T/3, and the pause is then doubled,
 * up to tenfold. Assumed: the HTTP client gives up no sooner than its supervisor.
 */
const EUREKA = oneAtATime(
  'Eureka heartbeat',
  'T/3; no retry; twice the pause after a time-out',
  (timeoutMs) => ({
    periodMs: () => timeoutMs / 3,
    patienceMs: () => timeoutMs / 3,
    retryMs: ({ timedOut, count }) => (timeoutMs / 3) * (timedOut ? Math.min(2 ** count, 10) : 1),
  }),
);

/** The sample in the exchange's own guide to building a bot. It sets no HTTP timeout; 30 s are assumed, in its favour. */
const EXCHANGE_SAMPLE = oneAtATime("the exchange's sample", '3/4 T; retry after 5 s', (timeoutMs) => ({
  periodMs: () => (timeoutMs * 3) / 4,
  patienceMs: () => 30_000,
  retryMs: () => 5000,
}));

/** What BitMEX and Kraken advise: nothing about failures, so the next attempt is the next one of the grid. */
const QUARTER = oneAtATime('BitMEX, Kraken advice', 'T/4; no retry', (timeoutMs) => {
  const restMs = (tookMs: number) => timeoutMs / 4 - (tookMs % (timeoutMs / 4));
  return {
    periodMs: restMs,
    patienceMs: () => ASSUMED_PATIENCE_MS,
    retryMs: ({ tookMs }) => restMs(tookMs),
  };
});

/**
 * Renewal rules of well-known clients as their documents and sources state them, each a small model. None of them
 * learns of the end of an outage but by its own next attempt.
 */
export const DOCUMENTED_RULES: readonly Rule[] = [
  ETCD,
  CLIENT_GO,
  KUBELET,
  QUARTER,
  CONSUL,
  EUREKA,
  VAULT,
  EXCHANGE_SAMPLE,
];
