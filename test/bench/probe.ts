// Loaded before a subject of whose inside something is asked. It answers over the channel of its process.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { getHeapSpaceStatistics } from 'node:v8';

export interface ProbeAsk {
  readonly probe: 'watch-loop' | 'watch-turns' | 'read' | 'heap' | 'memory';
}

export interface ProbeAnswer {
  readonly probe: 'loop' | 'heap';
  /** Milliseconds: the event loop's delay as Node samples it, less the sampling interval. */
  readonly delayP99Ms: number;
  readonly delayMaxMs: number;
  /** CPU time of the longest single turn of the event loop, where turns were watched. */
  readonly longestTurnMs: number;
  /** Bytes in use, after a collection where the process lets one be forced. */
  readonly heapBytes: number;
  readonly externalBytes: number;
  /** Whatever keeps the process alive: sockets, timers, watchers. */
  readonly resources: number;
}

/** The memory of a subject at one moment, in bytes. */
export interface MemoryLook {
  readonly heapBytes: number;
  readonly externalBytes: number;
  readonly rssBytes: number;
  readonly spaces: readonly {
    readonly name: string;
    readonly usedBytes: number;
    readonly sizeBytes: number;
  }[];
}

/** As it was, and after a collection where the process lets one be forced. */
export interface MemoryAnswer {
  readonly before: MemoryLook;
  readonly after: MemoryLook;
}

const SAMPLE_MS = 10;
const delay = monitorEventLoopDelay({ resolution: SAMPLE_MS });
let watchingTurns = false;
let longestTurnMs = 0;
let turnAtMs = 0;

/** CPU time of the main thread: on a machine that others use, the time of day would show those instead. */
function busyMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Turns the loop without a rest: what one turn holds it for is then seen to the microsecond. Costs a core. */
function turn(): void {
  const now = busyMs();
  longestTurnMs = Math.max(longestTurnMs, now - turnAtMs);
  turnAtMs = now;
  if (watchingTurns) setImmediate(turn);
}

function answer(probe: ProbeAnswer['probe']): void {
  const { heapUsed, external } = process.memoryUsage();
  const said: ProbeAnswer = {
    probe,
    delayP99Ms: delay.count > 0 ? Math.max(0, delay.percentile(99) / 1e6 - SAMPLE_MS) : 0,
    delayMaxMs: delay.count > 0 ? Math.max(0, delay.max / 1e6 - SAMPLE_MS) : 0,
    longestTurnMs,
    heapBytes: heapUsed,
    externalBytes: external,
    resources: process.getActiveResourcesInfo().length,
  };
  process.send?.(said);
}

function collect(): void {
  for (let round = 0; round < 3; round += 1) globalThis.gc?.();
}

function lookAtMemory(): MemoryLook {
  const { heapUsed, external, rss } = process.memoryUsage();
  return {
    heapBytes: heapUsed,
    externalBytes: external,
    rssBytes: rss,
    spaces: getHeapSpaceStatistics().map((space) => ({
      name: space.space_name,
      usedBytes: space.space_used_size,
      sizeBytes: space.space_size,
    })),
  };
}

function answerMemory(): void {
  const before = lookAtMemory();
  collect();
  const said: MemoryAnswer = { before, after: lookAtMemory() };
  process.send?.(said);
}

process.on('message', ({ probe }: ProbeAsk) => {
  switch (probe) {
    case 'watch-loop':
      delay.reset();
      delay.enable();
      break;
    case 'watch-turns':
      longestTurnMs = 0;
      turnAtMs = busyMs();
      watchingTurns = true;
      setImmediate(turn);
      break;
    case 'read':
      delay.disable();
      watchingTurns = false;
      answer('loop');
      break;
    case 'heap':
      collect();
      answer('heap');
      break;
    case 'memory':
      answerMemory();
      break;
  }
});
// The channel alone keeps no subject alive.
process.channel?.unref();
