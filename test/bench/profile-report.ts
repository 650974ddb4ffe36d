import type { Collections } from './collections.ts';
import { type Busy, PARTS, type ProfileWindow, type Stretch } from './cpu-profile.ts';
import type { measureDaemon } from './measures.ts';
import type { MemoryAnswer, MemoryLook } from './probe.ts';
import { tableOf } from './table.ts';

/** What was measured of a daemon under the profiler. */
export interface Profiled {
  readonly markets: number;
  readonly window: Awaited<ReturnType<typeof measureDaemon>>;
  /** The window by the clock of the profile. */
  readonly ran: ProfileWindow;
  readonly busy: Busy;
  readonly collections: { readonly young: Collections; readonly full: Collections };
  readonly memory: MemoryAnswer;
}

const FUNCTIONS = 10;
const STRETCHES = 5;
const PARTS_OF_A_STRETCH = 2;

export function renderProfile(profiled: Profiled): string {
  const { ran, busy, memory } = profiled;
  return [
    figures(profiled),
    shares(busy),
    functions(busy),
    collected(profiled),
    stretches(busy.stretches, ran),
    memoryOf(memory),
  ].join('\n\n');
}

function figures({ markets, window }: Profiled): string {
  const { seconds, seen, cpuSeconds, cpuPer1000, rssMb, lateness } = window;
  const late = lateness === null ? [] : [lateness.p50, lateness.p99, lateness.p999, lateness.max];
  return tableOf(
    [`${markets} markets under the profiler, ${seconds.toFixed(1)} s, ${seen.renewals} renewals`, ''],
    [
      ['CPU per 1,000 renewals [s]', cpuPer1000.toFixed(3)],
      ['CPU of all threads, the profiler among them', `${percent(cpuSeconds / seconds)} of a core`],
      ['RSS, median [MB]', rssMb.toFixed(0)],
      [
        'Lateness against the planned time, p50 / p99 / p99.9 / max [ms]',
        late.length === 0 ? 'too few renewals' : late.map((ms) => ms.toFixed(1)).join(' / '),
      ],
    ],
  );
}

function shares({ busyShare, parts }: Busy): string {
  return tableOf(
    [`Share of the time that the main thread was busy: ${percent(busyShare)} of the window`, ''],
    PARTS.map((part) => [part, percent(parts[part])]),
  );
}

function functions({ functions: all }: Busy): string {
  return tableOf(
    ['Most self time', 'Where', 'Share'],
    all.slice(0, FUNCTIONS).map(({ name, place, share }) => [name, place, percent(share)]),
  );
}

function collected({ collections: { young, full }, window }: Profiled): string {
  const minutes = window.seconds / 60;
  const row = (name: string, { count, totalMs, longestMs, markingMs }: Collections) => [
    name,
    String(count),
    totalMs.toFixed(1),
    longestMs.toFixed(1),
    markingMs.toFixed(1),
    (count / minutes).toFixed(1),
    (totalMs / minutes).toFixed(1),
  ];
  return tableOf(
    [
      'Collections',
      'Count',
      'Total [ms]',
      'Longest [ms]',
      'Marked before [ms]',
      'Count per minute',
      'Total per minute [ms]',
    ],
    [row('young generation', young), row('full', full)],
  );
}

function stretches(longest: readonly Stretch[], { fromUs }: ProfileWindow): string {
  return tableOf(
    ['Longest without a rest [ms]', 'At [s]', 'Longest sample [ms]', 'With'],
    longest.slice(0, STRETCHES).map((stretch) => [
      (stretch.us / 1000).toFixed(1),
      ((stretch.fromUs - fromUs) / 1e6).toFixed(1),
      (stretch.longestSampleUs / 1000).toFixed(1),
      stretch.parts
        .slice(0, PARTS_OF_A_STRETCH)
        .map(([part, us]) => `${part} ${(us / 1000).toFixed(1)} ms`)
        .join('; '),
    ]),
  );
}

function memoryOf({ before, after }: MemoryAnswer): string {
  const row = (name: string, read: (look: MemoryLook) => number | undefined) => [
    name,
    megabytes(read(before)),
    megabytes(read(after)),
  ];
  const space = (wanted: string, { spaces }: MemoryLook) => spaces.find(({ name }) => name === wanted);
  return tableOf(
    ['Memory [MB]', 'After the window', 'After a forced collection'],
    [
      row('RSS', ({ rssBytes }) => rssBytes),
      row('heap in use', ({ heapBytes }) => heapBytes),
      row('external', ({ externalBytes }) => externalBytes),
      ...before.spaces
        .filter(({ name, sizeBytes }) => sizeBytes > 0 || space(name, after)?.sizeBytes !== 0)
        .flatMap(({ name }) => [
          row(`${name}, in use`, (look) => space(name, look)?.usedBytes),
          row(`${name}, size`, (look) => space(name, look)?.sizeBytes),
        ]),
    ],
  );
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

function megabytes(bytes: number | undefined): string {
  return bytes === undefined ? '' : (bytes / 2 ** 20).toFixed(1);
}
