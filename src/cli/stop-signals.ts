import type { Clock } from '../ports.ts';
import type { Edge } from './edge.ts';

/** `timeout` and some supervisors signal a process and its group: the same signal comes twice within milliseconds. */
const SAME_SIGNAL_MS = 1000;

/** What a daemon that ends by a signal has around it. */
export interface Around {
  readonly edge: Edge;
  readonly clock: Clock;
  /** Ends the process because of an error of its own. */
  readonly crash: (error: unknown) => void;
}

/** Calls `run` for SIGTERM and SIGINT. The same signal again within a second is the one before and does not count. */
export function onStopSignals(
  { edge, clock }: Pick<Around, 'edge' | 'clock'>,
  run: (signal: 'SIGTERM' | 'SIGINT') => void,
): void {
  let last: { readonly signal: string; readonly monoMs: number } | null = null;
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    edge.onSignal(signal, () => {
      const { monoMs } = clock.now();
      if (last?.signal === signal && monoMs - last.monoMs < SAME_SIGNAL_MS) return;
      last = { signal, monoMs };
      run(signal);
    });
}
