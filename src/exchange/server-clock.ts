import type { Instant } from '../core/time.ts';

/** How many answers are remembered: enough to narrow whole seconds to a fraction, few enough to forget drift. */
const SAMPLES = 8;

/** An answer that was longer on its way, through a suspend for example, says too little to correct what is known. */
const LONGEST_TRIP_MS = 4000;

/** An estimate of the exchange's clock. For nonces and for display, never for deciding when a timer lapses. */
export interface ServerClock {
  /** An answer showed the whole Unix second `second` (its `Date` header, or a timer's startTime). */
  observe(second: number, sent: Instant, received: Instant): void;
  /** Unix milliseconds at the exchange; the local wall clock as long as no answer has been seen. */
  estimateMs(now: Instant): number;
}

/**
 * Intersects what the last answers allow (Marzullo): a server that showed second `s` somewhere between sending at `a`
 * and receiving at `b` is ahead of the local clock by something in [s - b, s + 1 - a].
 *
 * The local clock is the time since boot. It does not step and goes on during suspend, so setting the wall clock
 * leaves the estimate as right as it was. Where it does become wrong (a restored virtual machine, a correction at the
 * exchange) the next answer contradicts the older ones, and these are forgotten.
 */
export function createServerClock(): ServerClock {
  let samples: { readonly lowMs: number; readonly highMs: number }[] = [];
  let offsetMs: number | null = null;

  return {
    observe(second, sent, received) {
      if (offsetMs !== null && received.bootMs - sent.bootMs > LONGEST_TRIP_MS) return;
      const sample = {
        lowMs: second * 1000 - received.bootMs,
        highMs: second * 1000 + 1000 - sent.bootMs,
      };
      samples.push(sample);
      if (samples.length > SAMPLES) samples.shift();
      let lowMs = Math.max(...samples.map((known) => known.lowMs));
      let highMs = Math.min(...samples.map((known) => known.highMs));
      if (lowMs > highMs) {
        samples = [sample];
        ({ lowMs, highMs } = sample);
      }
      offsetMs = (lowMs + highMs) / 2;
    },
    estimateMs: (now) => (offsetMs === null ? now.wallMs : now.bootMs + offsetMs),
  };
}
