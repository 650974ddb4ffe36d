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

/** A way to keep one timer armed. */
export interface Rule {
  readonly name: string;
  /** The rule in a few words. */
  readonly renews: string;
  /** Begins to renew, for as long as the timeline is played. */
  readonly start: (world: RuleWorld) => void;
}

/** Where a rule stands after an attempt that came to nothing. */
interface Failure {
  /** Failures since the last success, this one included. */
  readonly count: number;
  readonly timedOut: boolean;
  /** Since the first attempt of this cycle was written, and since the last good reply. */
  readonly cycleMs: number;
  readonly sinceSuccessMs: number;
  /** How long the failed attempt took. */
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

function oneAtATime(paceOf: (timeoutMs: number, random: () => number) => Pace): Rule['start'] {
  return ({ timeline, timer, timeoutMs, seed }) => {
    const pace = paceOf(timeoutMs, createRandom(seed));
    const later = (delayMs: number, run: () => void) => timeline.at(timeline.nowMs() + delayMs, run);
    let failures = 0;
    let cycleFromMs = timeline.nowMs();
    let successMs = timeline.nowMs();
    /** After a time-out the connection is closed and the next attempt opens another, as HTTP/1.1 clients do. */
    let fresh = false;

    function attempt(): void {
      const writtenMs = timeline.nowMs();
      if (failures === 0) cycleFromMs = writtenMs;
      const what = failures >= (pace.readsAfter ?? Number.POSITIVE_INFINITY) ? 'read' : 'renew';
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
      failures = 0;
      fresh = false;
      if (what === 'renew') successMs = timeline.nowMs();
      later(what === 'renew' ? pace.periodMs(timeline.nowMs() - writtenMs) : 0, attempt);
    }

    function fail(writtenMs: number, timedOut: boolean): void {
      const nowMs = timeline.nowMs();
      failures += 1;
      fresh = timedOut;
      const retryMs = pace.retryMs({
        count: failures,
        timedOut,
        cycleMs: nowMs - cycleFromMs,
        sinceSuccessMs: nowMs - successMs,
        tookMs: nowMs - writtenMs,
      });
      if (retryMs !== null) later(retryMs, attempt);
    }

    attempt();
  };
}

/**
 * Vault's LifetimeWatcher (`api/lifetime_watcher.go`), as intended: sleeps 2/3 T plus a third of a grace of 10 to 20 %
 * of T, and after a failure 10 s, doubled up to 5 min, each +-50 %, never into the grace: there it returns and leaves
 * the rest to its caller, which is not modelled. The client below it has a timeout of 60 s and makes two quick retries
 * of what failed at once (defaults). Versions that compute the backoff and do not sleep (issue 26382) are left out.
 */
const VAULT: Rule = {
  name: 'Vault LifetimeWatcher',
  renews: '2/3 T + jitter; backoff from 10 s; gives up in the last 10-20 % of T',
  start: oneAtATime((timeoutMs, random) => {
    const graceMs = timeoutMs * (0.1 + 0.1 * random());
    let quick = 0;
    let backoffs = 0;
    return {
      periodMs: () => (timeoutMs * 2) / 3 + graceMs / 3,
      patienceMs: () => 60_000,
      retryMs({ count, timedOut, sinceSuccessMs }) {
        if (count === 1) {
          quick = 0;
          backoffs = 0;
        }
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
  }),
};

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
 * client-go's leader election (`tools/leaderelection/leaderelection.go`) with its defaults of 15, 10 and 2 s scaled to
 * T: every 2/15 T, retried on the same grid, given up after 2/3 T (RenewDeadline), when a program exits as a rule. The
 * HTTP timeout is half of that, at least 1 s, as the Kubernetes components set it.
 */
const CLIENT_GO: Rule = {
  name: 'client-go election',
  renews: '2T/15; same retry; gives up after 2T/3',
  start: oneAtATime((timeoutMs) => {
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
  }),
};

/**
 * The kubelet's node lease (`component-helpers/apimachinery/lease/controller.go`; 10 s of 40 s): every T/4 to 1.04 T/4,
 * five attempts at once, then it reads the lease after 200 ms, doubled up to 7 s, until that works, and begins again.
 * Its heartbeat client has a timeout of 10 s.
 */
const KUBELET: Rule = {
  name: 'kubelet node lease',
  renews: 'T/4; 5 attempts at once, then reads, 0.2 to 7 s apart',
  start: oneAtATime((timeoutMs, random) => ({
    periodMs: () => (timeoutMs / 4) * (1 + 0.04 * random()),
    patienceMs: () => 10_000,
    readsAfter: 5,
    retryMs: ({ count }) => (count <= 5 ? 0 : Math.min(100 * 2 ** (count - 5), 7000)),
  })),
};

/**
 * Consul's RenewPeriodic (`api/session.go`): T/2 after the last reply, 1 s after a failure, until T has passed. Its
 * client sets no HTTP timeout; 10 s are assumed. (Its server waits 2 T, which an exchange does not.)
 */
const CONSUL: Rule = {
  name: 'Consul session',
  renews: 'T/2; retry after 1 s',
  start: oneAtATime((timeoutMs) => ({
    periodMs: () => timeoutMs / 2,
    patienceMs: () => ASSUMED_PATIENCE_MS,
    retryMs: ({ sinceSuccessMs }) => (sinceSuccessMs > timeoutMs ? null : 1000),
  })),
};

/**
 * Eureka's TimedSupervisorTask (30 s of 90 s): T/3 after the last beat, good or refused; a beat that hangs is given up
 * after T/3, and the pause is then doubled, up to tenfold. Assumed: the HTTP client gives up no sooner than its
 * supervisor. (Its server lets a lease live for 2 T by mistake, which an exchange does not.)
 */
const EUREKA: Rule = {
  name: 'Eureka heartbeat',
  renews: 'T/3; no retry; twice the pause after a time-out',
  start: oneAtATime((timeoutMs) => {
    const periodMs = timeoutMs / 3;
    return {
      periodMs: () => periodMs,
      patienceMs: () => periodMs,
      retryMs: ({ timedOut, count }) => (timedOut ? periodMs * Math.min(2 ** count, 10) : periodMs),
    };
  }),
};

/**
 * The sample in the exchange's own guide to building a bot: renews a timer of 60 s 45 s after the last time, retries
 * after 5 s. It sets no HTTP timeout; 30 s are assumed, in its favour.
 */
const EXCHANGE_SAMPLE: Rule = {
  name: "the exchange's sample",
  renews: '3/4 T; retry after 5 s',
  start: oneAtATime((timeoutMs) => ({
    periodMs: () => (timeoutMs * 3) / 4,
    patienceMs: () => 30_000,
    retryMs: () => 5000,
  })),
};

/**
 * What BitMEX and Kraken advise: 15 s of 60 s, and nothing about failures, so the next attempt is the next one of the
 * grid. 10 s of HTTP timeout are assumed.
 */
const QUARTER: Rule = {
  name: 'BitMEX, Kraken advice',
  renews: 'T/4; no retry',
  start: oneAtATime((timeoutMs) => {
    const periodMs = timeoutMs / 4;
    const restMs = (tookMs: number) => periodMs - (tookMs % periodMs);
    return {
      periodMs: restMs,
      patienceMs: () => ASSUMED_PATIENCE_MS,
      retryMs: ({ tookMs }) => restMs(tookMs),
    };
  }),
};

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
