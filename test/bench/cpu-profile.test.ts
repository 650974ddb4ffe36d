import { describe, expect, it } from 'vitest';
import { collectionsIn } from './collections.ts';
import { type CpuProfile, PARTS, readProfile } from './cpu-profile.ts';

const DIST = 'file:///opt/killswitchd/dist';
const PACKAGES = 'file:///opt/killswitchd/node_modules';

/** Functions by number: name, where it is, and who calls it. */
const FUNCTIONS: readonly (readonly [name: string, url: string, caller: number])[] = [
  ['(root)', '', -1],
  ['(idle)', '', 0],
  ['(garbage collector)', '', 0],
  ['tick', `${DIST}/keeper.js`, 0],
  ['plan', `${DIST}/core/plan.js`, 3],
  ['toSorted', '', 4],
  ['hash', 'node:crypto', 7],
  ['sign', `${DIST}/exchange/sign.js`, 3],
  ['write', 'node:net', 9],
  ['dispatch', `${PACKAGES}/undici/lib/core/request.js`, 7],
  ['send', `${PACKAGES}/fastify/lib/reply.js`, 0],
  ['write', 'node:internal/streams/writable', 10],
  ['onStreamRead', 'node:internal/stream_base_commons', 0],
  ['validate', `${PACKAGES}/ajv/dist/core/index.js`, 10],
  ['grant', `${DIST}/exchange/limits.js`, 3],
];

/** One sample per millisecond. */
function profileOf(samples: readonly number[]): CpuProfile {
  return {
    nodes: FUNCTIONS.map(([functionName, url], id) => ({
      id,
      callFrame: { functionName, url, lineNumber: 6 },
      children: FUNCTIONS.flatMap(([, , caller], child) => (caller === id ? [child] : [])),
    })),
    startTime: 5000,
    endTime: 5000 + samples.length * 1000,
    samples,
    timeDeltas: samples.map((_, place) => (place === 0 ? 0 : 1000)),
  };
}

const read = (samples: readonly number[], fromUs = 0, untilUs = Number.POSITIVE_INFINITY) =>
  readProfile(profileOf(samples), { fromUs, untilUs });

describe('a profile of the main thread', () => {
  it('is divided into shares that sum to 1', () => {
    const { parts } = read(FUNCTIONS.map((_, id) => id));
    expect(Object.keys(parts)).toEqual([...PARTS]);
    expect(Object.values(parts).reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 10);
  });

  it('counts only what lies within the window, to the part of a sample', () => {
    const { parts, functions } = read([2, 2, 4, 3, 2], 7000, 8500);
    expect(parts).toMatchObject({ core: expect.closeTo(2 / 3, 10), 'garbage collector': 0 });
    expect(functions.map(({ name, place }) => `${name} ${place}`)).toEqual([
      'plan dist/core/plan.js:7',
      'tick dist/keeper.js:7',
    ]);
  });

  it('is not busy while idle', () => {
    const { busyShare, parts } = read([1, 4, 1, 1]);
    expect(busyShare).toBeCloseTo(0.25, 10);
    expect(parts.core).toBe(1);
  });

  it.each([
    ['a native function, for the core that called it', 5, 'core'],
    ['what Node does for a signature', 6, 'signing, nonces, reading the answers'],
    ['what undici writes', 8, 'undici and its sockets'],
    ['what is read from a socket', 12, 'undici and its sockets'],
    ['what the server writes', 11, 'beats, status page and their server'],
    ['a package that has a folder of the same name', 13, 'beats, status page and their server'],
    ['the limiter, apart from the exchange around it', 14, 'limiter'],
    ['what belongs to nobody', 0, 'timers, keeper, the rest'],
  ] as const)('counts %s', (_, sample, part) => {
    expect(read([sample]).parts[part]).toBe(1);
  });

  it('has stretches from one rest to the next, the longest first', () => {
    const { stretches } = read([4, 1, 4, 2, 2, 1]);
    expect(stretches).toEqual([
      {
        fromUs: 7000,
        us: 3000,
        longestSampleUs: 1000,
        parts: [
          ['garbage collector', 2000],
          ['core', 1000],
        ],
      },
      { fromUs: 5000, us: 1000, longestSampleUs: 1000, parts: [['core', 1000]] },
    ]);
  });

  it('is an error where nothing of it lies within the window', () => {
    expect(() => read([4, 4], 90_000)).toThrow('the profile has no busy sample in the window');
  });
});

describe('the trace of the collector', () => {
  const marked = '(+ 48.7 ms in 153 steps since start of marking, biggest step 16.1 ms) ';
  const line = (atMs: number, kind: string, ms: number, heap = '0x3289b000') =>
    `[7:${heap}]   ${atMs} ms: ${kind} 148.8 (225.9) -> 102.8 (226.3) MB, pooled: 0 MB, ${ms} / 0.02 ms  ${kind === 'Scavenge' ? '' : marked}(average mu = 0.998, current mu = 0.964) task; \n`;

  it('counts each generation within the window, of the main thread alone', () => {
    const log = [
      line(900, 'Scavenge', 50),
      line(1000, 'Scavenge', 10.5),
      line(1500, 'Scavenge', 12),
      line(1600, 'Mark-Compact (reduce)', 101.25),
      line(1700, 'Scavenge', 80, '0x4000000'),
      line(2001, 'Mark-Compact', 200),
    ].join('');
    expect(collectionsIn(log, 1000, 2000)).toEqual({
      young: { count: 2, totalMs: 22.5, longestMs: 12, markingMs: 0 },
      full: { count: 1, totalMs: 101.25, longestMs: 101.25, markingMs: 48.7 },
    });
  });

  it('is read where a line of the log lies within it', () => {
    const whole = line(1000, 'Scavenge', 10);
    const log = `${whole.slice(0, 40)}{"level":30,"msg":"armed"}\n${whole.slice(40)}`;
    expect(collectionsIn(log, 0, 2000).young.count).toBe(1);
  });
});
