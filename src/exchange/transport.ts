import { type Attempt, createAttempt } from './attempt.ts';
import { type Connections, createConnections } from './connections.ts';
import { originOf } from './origin.ts';
import type { Transport } from './wire.ts';

export interface TransportOptions {
  /** Base addresses that requests may name. */
  readonly bases: readonly string[];
  /** Connections per base address; those asked for as fresh may go beyond. */
  readonly connections: number;
  /** Certificates in PEM form that are trusted instead of the well-known authorities. */
  readonly ca?: string | undefined;
}

/**
 * The real wire: several plain HTTP/1.1 keep-alive connections per base address, each with one request at a time.
 * Nothing is followed, repeated or timed out here. Throws at once where a base address is not allowed.
 *
 * A new connection has to be opened first, and one that was used before undici looks at once more for a pending close
 * (within the same turn of the event loop); `mayWrite` is asked in the step of the write itself.
 */
export function createTransport({ bases, connections: limit, ca }: TransportOptions): Transport {
  const pools = new Map<string, Connections>();
  for (const base of bases) {
    const origin = originOf(base);
    pools.set(origin, createConnections(origin, limit, ca));
  }
  // No Set, for the reason that the core keeps its attempts in a list.
  const inFlight: Attempt[] = [];

  return {
    send(request, done) {
      const connections = pools.get(request.base);
      if (connections === undefined) {
        const detail = `no connection to ${request.base}: closed, or not a configured address`;
        queueMicrotask(() => done({ kind: 'failed', reason: 'aborted', detail, maybeApplied: false }));
        return () => undefined;
      }
      const attempt = createAttempt(request, connections, (result) => {
        inFlight.splice(inFlight.indexOf(attempt), 1);
        done(result);
      });
      inFlight.push(attempt);
      const leaveQueue = connections.take(request.fresh, (connection) => attempt.begin(connection));
      return () => {
        leaveQueue();
        attempt.giveUp('timeout');
      };
    },
    async close() {
      const closing = [...pools.values()];
      pools.clear();
      for (const attempt of inFlight) attempt.giveUp('aborted');
      await Promise.all(closing.map((connections) => connections.close()));
    },
  };
}
