import { createSystemClock } from '../../src/clock.ts';
import { startControl } from '../../src/operator/control.ts';
import { sampleMarket, sampleSnapshot } from './sample-snapshot.ts';

/** What the process prints when its standard input ends. CPU times are those of the thread that renews. */
export interface LoadReport {
  readonly beats: number;
  readonly otherCalls: number;
  readonly snapshots: number;
  /** Longest time for which no timer had its turn. */
  readonly longestHoldMs: number;
  readonly cpuMs: number;
}

// A listener in a process of its own, in front of a daemon with 2000 markets. Started by `control-flood.test.ts`.
const [address = ''] = process.argv.slice(2);
const clock = createSystemClock();
const markets = Array.from({ length: 2000 }, (_, index) => sampleMarket({ market: `M${index}_USDT` }));
const counts = { beats: 0, otherCalls: 0, snapshots: 0 };
const call = () => {
  counts.otherCalls += 1;
};
const control = await startControl({
  listen: [address],
  token: () => null,
  sources: {
    clock,
    version: '1.2.3',
    snapshot: () => {
      counts.snapshots += 1;
      return sampleSnapshot({ markets: markets.map((market) => ({ ...market })) });
    },
    revision: () => 0,
    status: async () => ['{}'],
    markets: () => markets.map(({ market }) => market),
    elsewhere: () => null,
    bots: () => ['main'],
    ttlMs: () => 15_000,
    hear: () => {
      counts.beats += 1;
      return { counted: true };
    },
    afterGoodbye: async () => [],
    operate: async () => {
      call();
      return [];
    },
    reload: async () => {
      call();
      return { kind: 'unchanged' };
    },
    logLevel: () => 'info',
    setLogLevel: call,
    onRefused: () => {},
  },
});

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};
let longestHoldMs = 0;
let lastMs = cpuMs();
let startMs = lastMs;
setInterval(() => {
  const nowMs = cpuMs();
  longestHoldMs = Math.max(longestHoldMs, nowMs - lastMs);
  lastMs = nowMs;
}, 1);

/** A line on standard input starts the measurement anew; its end ends the process. */
process.stdin.on('data', () => {
  longestHoldMs = 0;
  startMs = lastMs = cpuMs();
  Object.assign(counts, { beats: 0, otherCalls: 0, snapshots: 0 });
  console.log('{}');
});
process.stdin.on('end', () => {
  console.log(JSON.stringify({ ...counts, longestHoldMs, cpuMs: cpuMs() - startMs } satisfies LoadReport));
  process.exit();
});
console.log(JSON.stringify(control.addresses));
