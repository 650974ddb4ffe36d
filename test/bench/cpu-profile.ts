/** What Node's CPU profiler writes, as far as it is read here: microseconds of the clock that only goes forward. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  readonly startTime: number;
  readonly endTime: number;
  /** By sample: the function that ran. */
  readonly samples: readonly number[];
  /** By sample: how long after the one before it was taken. */
  readonly timeDeltas: readonly number[];
}

/** A function as called along one path. */
interface ProfileNode {
  readonly id: number;
  readonly callFrame: {
    readonly functionName: string;
    readonly url: string;
    /** The first is 0. */
    readonly lineNumber: number;
  };
  readonly children?: readonly number[];
}

export interface ProfileWindow {
  readonly fromUs: number;
  readonly untilUs: number;
}

export const PARTS = [
  'undici and its sockets',
  'core',
  'signing, nonces, reading the answers',
  'limiter',
  'counters, log, values of the metrics',
  'page of metrics',
  'garbage collector',
  'beats, status page and their server',
  'timers, keeper, the rest',
] as const;
export type Part = (typeof PARTS)[number];

const REST: Part = 'timers, keeper, the rest';
const SERVER: Part = 'beats, status page and their server';
const SOCKETS: Part = 'undici and its sockets';

/** By the place of a function; the first that fits counts. */
const PART_OF_PLACE: readonly (readonly [RegExp, Part])[] = [
  [/^node_modules\/undici\//, SOCKETS],
  [/^(node_modules\/bottleneck\/|dist\/exchange\/(limits|lessor|turns)\.js)/, 'limiter'],
  [/^dist\/core\//, 'core'],
  [/^dist\/exchange\//, 'signing, nonces, reading the answers'],
  [/^(dist\/telemetry\/(metrics|families)\.js|node_modules\/prom-client)/, 'page of metrics'],
  [
    /^(dist\/telemetry\/|node_modules\/(pino|sonic-boom|prom-client)\/)/,
    'counters, log, values of the metrics',
  ],
  [/^(dist\/(operator|liveness)\/|node_modules\/@?fastify\/|node:_http_)/, SERVER],
  [/^dist\//, REST],
];
const SOCKET_PLACE =
  /^node:(net|tls|stream|_tls_|_stream_|internal\/(net|tls|streams?|stream_base_commons)\b)/;

interface FunctionTime {
  readonly name: string;
  readonly place: string;
  readonly share: number;
}

/** A time in which the main thread had something to do throughout. */
export interface Stretch {
  readonly fromUs: number;
  readonly us: number;
  /** Much longer than the others are: the process was not on its core, or one call into the system took so long. */
  readonly longestSampleUs: number;
  /** Microseconds, the most first. */
  readonly parts: readonly (readonly [Part, number])[];
}

/** Where the time of the main thread went in a window. Shares are of the time in which it was busy. */
export interface Busy {
  /** Share of the window. */
  readonly busyShare: number;
  readonly parts: Readonly<Record<Part, number>>;
  /** By self time, the most first. */
  readonly functions: readonly FunctionTime[];
  /** The longest first. */
  readonly stretches: readonly Stretch[];
}

/** Throws where the profile has nothing of the window, or the main thread nothing to do in it. */
export function readProfile(profile: CpuProfile, window: ProfileWindow): Busy {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const parts = partsOf(profile, nodes);
  const self = new Map<string, number>();
  const byPart = new Map<Part, number>();
  const stretches = createStretches();
  let allUs = 0;
  let busyUs = 0;
  for (const { id, fromUs, us } of slicesIn(profile, window)) {
    const node = nodes.get(id);
    if (node === undefined) throw new Error(`the profile has no node ${id}`);
    allUs += us;
    if (node.callFrame.functionName === '(idle)') {
      stretches.end();
      continue;
    }
    const part = parts.get(id) ?? REST;
    busyUs += us;
    addTo(byPart, part, us);
    addTo(self, titleOf(node), us);
    stretches.add(fromUs, us, part);
  }
  if (busyUs === 0) throw new Error('the profile has no busy sample in the window');
  return {
    busyShare: busyUs / allUs,
    parts: Object.fromEntries(PARTS.map((part) => [part, (byPart.get(part) ?? 0) / busyUs])) as Record<
      Part,
      number
    >,
    functions: mostFirst(self).map(([title, us]) => {
      const [name = '', place = ''] = title.split('\n');
      return { name, place, share: us / busyUs };
    }),
    stretches: stretches.longestFirst(),
  };
}

/** What each sample stands for within the window: the time until the next one, as Chrome's DevTools have it. */
function* slicesIn(
  { samples, timeDeltas, startTime, endTime }: CpuProfile,
  window: ProfileWindow,
): Generator<{ readonly id: number; readonly fromUs: number; readonly us: number }> {
  let atUs = startTime;
  for (const [place, id] of samples.entries()) {
    atUs += timeDeltas[place] ?? 0;
    const deltaUs = timeDeltas[place + 1];
    const nextUs = deltaUs === undefined ? endTime : atUs + deltaUs;
    const fromUs = Math.max(atUs, window.fromUs);
    const us = Math.min(nextUs, window.untilUs) - fromUs;
    if (us > 0) yield { id, fromUs, us };
  }
}

/** By node: the part of the first function on the way up, beginning with its own, that belongs to one. */
function partsOf({ nodes }: CpuProfile, byId: ReadonlyMap<number, ProfileNode>): ReadonlyMap<number, Part> {
  const parts = new Map<number, Part>();
  const below = new Set(nodes.flatMap(({ children = [] }) => children));
  const todo = nodes.filter(({ id }) => !below.has(id)).map((node) => ({ node, above: REST }));
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const part = partOf(next.node, next.above);
    parts.set(next.node.id, part);
    for (const child of next.node.children ?? []) {
      const node = byId.get(child);
      if (node !== undefined) todo.push({ node, above: part });
    }
  }
  return parts;
}

function partOf({ callFrame: { functionName, url } }: ProfileNode, above: Part): Part {
  if (functionName === '(garbage collector)') return 'garbage collector';
  const place = placeOf(url);
  const own = PART_OF_PLACE.find(([places]) => places.test(place));
  if (own !== undefined) return own[1];
  // The server writes to sockets as well; what is read from one has no caller.
  return SOCKET_PLACE.test(place) && above !== SERVER ? SOCKETS : above;
}

/** From the folder of the packages or of the program on: `dist/core/plan.js`. */
function placeOf(url: string): string {
  return /^.*\/(node_modules\/.*)$/.exec(url)?.[1] ?? /^.*?\/(dist\/.*)$/.exec(url)?.[1] ?? url;
}

function titleOf({ callFrame: { functionName, url, lineNumber } }: ProfileNode): string {
  const place = url === '' ? '' : `${placeOf(url)}:${lineNumber + 1}`;
  return `${functionName === '' ? '(anonymous)' : functionName}\n${place}`;
}

function createStretches() {
  const found: Stretch[] = [];
  let fromUs = 0;
  let longestSampleUs = 0;
  let parts = new Map<Part, number>();
  const end = () => {
    if (parts.size > 0) {
      const us = [...parts.values()].reduce((sum, part) => sum + part, 0);
      found.push({ fromUs, us, longestSampleUs, parts: mostFirst(parts) });
    }
    longestSampleUs = 0;
    parts = new Map();
  };
  return {
    add(atUs: number, us: number, part: Part): void {
      if (parts.size === 0) fromUs = atUs;
      longestSampleUs = Math.max(longestSampleUs, us);
      addTo(parts, part, us);
    },
    end,
    longestFirst(): readonly Stretch[] {
      end();
      return found.toSorted((one, other) => other.us - one.us);
    },
  };
}

function addTo<Key>(sums: Map<Key, number>, key: Key, us: number): void {
  sums.set(key, (sums.get(key) ?? 0) + us);
}

function mostFirst<Key>(sums: ReadonlyMap<Key, number>): [Key, number][] {
  return [...sums].sort(([, one], [, other]) => other - one);
}
