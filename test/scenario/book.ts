import type { CoreSettings, OrderType, Outcome } from '../../src/core/events.ts';
import type { Timeline } from '../simulation/virtual-clock.ts';
import type { Write } from './bench.ts';

interface Timer {
  readonly cancellationTime: number;
  /** True moment at which it fires. */
  readonly firesMs: number;
}

/** The timers at the exchange: the truth that belief is measured by. Stamps are whole seconds, rounded down. */
export function createBook(timeline: Timeline, settings: CoreSettings, epochMs: number) {
  const timers = new Map<string, Timer>();
  const fired: { readonly market: string; readonly atMs: number }[] = [];
  const applied: Write[] = [];
  let lastNumber = 0;

  return {
    timers,
    fired,
    /** What was carried out, in the order of arrival. */
    applied,
    firedOf: (market: string) => fired.filter((one) => one.market === market),
    /** Carries a request out. With rising nonces one that was overtaken is refused. */
    arrive(write: Write, types: readonly OrderType[] | null): Outcome {
      if (settings.nonce === 'increasing' && write.number < lastNumber)
        return { kind: 'nonce', detail: 'overtaken' };
      lastNumber = write.number;
      applied.push(write);
      const { market, timeoutSeconds } = write;
      if (timeoutSeconds === null) {
        timers.delete(market);
        return { kind: 'deleted' };
      }
      const startTime = Math.floor((epochMs + timeline.nowMs()) / 1000);
      const cancellationTime = startTime + timeoutSeconds;
      const firesMs = cancellationTime * 1000 + settings.cancellationDelayMs - epochMs;
      const timer = { cancellationTime, firesMs };
      timers.set(market, timer);
      timeline.at(firesMs, () => {
        if (timers.get(market) !== timer) return;
        timers.delete(market);
        fired.push({ market, atMs: timeline.nowMs() });
      });
      return { kind: 'applied', timer: { market, startTime, cancellationTime, types } };
    },
  };
}
export type Book = ReturnType<typeof createBook>;
