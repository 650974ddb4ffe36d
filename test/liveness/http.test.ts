import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createHttpEvidence, type ProbeAnswer } from '../../src/liveness/http.ts';
import { createVirtual } from './virtual.ts';

interface Way {
  /** How long a probe takes to the bot, and the answer back. */
  readonly toMs: number;
  readonly backMs: number;
  readonly answer: ProbeAnswer;
}

const OK: ProbeAnswer = { kind: 'answered', status: 200 };
const LATE: ProbeAnswer = { kind: 'failed', detail: 'no answer' };

/** Bots with a URL in a virtual world. `handle` is asked the moment that a probe reaches a bot; null hangs. */
function watched(options: {
  readonly urls?: () => readonly { bot: string; at: string }[];
  readonly everyMs?: number;
  readonly way?: () => Way | null;
}) {
  const { urls = () => [{ bot: 'default', at: 'http://bot/' }], everyMs = 5000 } = options;
  const way = options.way ?? (() => ({ toMs: 10, backMs: 10, answer: OK }));
  const world = createVirtual();
  const open: string[] = [];
  const handledMs: number[] = [];
  const timeouts: number[] = [];
  let underWay = 0;
  let most = 0;
  const evidence = createHttpEvidence({
    clock: world.clock,
    urls,
    probeEveryMs: () => everyMs,
    onProblem: world.onProblem,
    open(url) {
      open.push(url);
      return {
        probe(timeoutMs, done) {
          timeouts.push(timeoutMs);
          underWay += 1;
          most = Math.max(most, underWay);
          let over = false;
          const end = (answer: ProbeAnswer) => {
            if (over) return;
            over = true;
            underWay -= 1;
            done(answer);
          };
          world.clock.after(timeoutMs, () => end(LATE));
          const taken = way();
          if (taken === null) return;
          world.timeline.at(world.timeline.nowMs() + taken.toMs, () => {
            if (taken.answer === OK) handledMs.push(world.timeline.nowMs());
            world.later(taken.backMs, () => end(taken.answer));
          });
        },
        close() {
          open.splice(open.indexOf(url), 1);
        },
      };
    },
  });
  const end = world.start(evidence);
  return { ...world, end, open, handledMs, timeouts, most: () => most };
}

describe('a URL of the bot', () => {
  test('that answers 200 is a beat of the moment that the probe was sent', () => {
    const { said, timeline } = watched({ way: () => ({ toMs: 300, backMs: 400, answer: OK }) });
    timeline.runUntil(6000);
    expect(said.map(({ atMs, datedMs }) => [atMs, datedMs])).toEqual([
      [700, 0],
      [5700, 5000],
    ]);
  });

  test.each([204, 299, 301, 404, 503])(
    'that answers %i is a beat only below 300, else it counts for nothing and is told once',
    (status) => {
      const answer = { kind: 'answered', status } as const;
      const { said, told, timeline } = watched({ way: () => ({ toMs: 1, backMs: 1, answer }) });
      timeline.runUntil(11_000);
      expect(said).toHaveLength(status < 300 ? 3 : 0);
      expect(told).toEqual(status < 300 ? [] : [`default: HTTP ${status}, not 2xx`]);
    },
  );

  test('that hangs counts for nothing, has one probe at a time, and counts again when it answers', () => {
    let hangs = true;
    const { said, told, most, timeline } = watched({
      way: () => (hangs ? null : { toMs: 1, backMs: 1, answer: OK }),
    });
    timeline.runUntil(20_000);
    expect(said).toEqual([]);
    hangs = false;
    timeline.runUntil(26_000);
    expect(said).toHaveLength(1);
    expect(told).toEqual(['default: no answer', 'default: -']);
    expect(most()).toBe(1);
  });

  test.each([
    [5000, 1000],
    [1000, 1000],
    [300, 300],
  ])('that is probed every %i ms has %i ms to answer', (everyMs, timeoutMs) => {
    const { timeouts, timeline } = watched({ everyMs });
    timeline.runUntil(20_000);
    expect(new Set(timeouts)).toEqual(new Set([timeoutMs]));
  });

  test('that changes by a reload has a connection of its own, and after the end nothing is told any more', () => {
    let urls = ['a', 'b'].map((name) => ({ bot: name, at: `http://${name}/` }));
    const way = () => ({ toMs: 10, backMs: 900, answer: OK });
    const { open, said, timeline, end } = watched({ urls: () => urls, way });
    timeline.runUntil(1000);
    expect(open).toEqual(['http://a/', 'http://b/']);
    urls = [{ bot: 'b', at: 'http://c/' }];
    timeline.runUntil(6000);
    expect(open).toEqual(['http://c/']);
    expect(said.map(({ bot }) => bot)).toEqual(['a', 'b', 'b']);
    timeline.runUntil(10_500);
    end();
    expect(open).toEqual([]);
    timeline.runUntil(30_000);
    expect(said).toHaveLength(3);
  });
});

describe('whatever the network, the bot and the host do', () => {
  test('a beat is never dated later than the bot last answered a probe', () => {
    const way = fc.option(
      fc.record({
        toMs: fc.integer({ min: 0, max: 1500 }),
        backMs: fc.integer({ min: 0, max: 1500 }),
        answer: fc.constantFrom(OK, { kind: 'answered', status: 503 } as const, LATE),
      }),
      { nil: null },
    );
    const stall = fc.record({
      atMs: fc.integer({ min: 0, max: 60_000 }),
      forMs: fc.integer({ min: 0, max: 9000 }),
      stepMs: fc.integer({ min: -9e6, max: 9e6 }),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 300, max: 5000 }),
        fc.array(way, { minLength: 1, maxLength: 30 }),
        fc.array(stall, { maxLength: 4 }),
        (everyMs, ways, stalls) => {
          let probes = 0;
          const world = watched({
            everyMs,
            way: () => {
              probes += 1;
              return ways[probes % ways.length] ?? null;
            },
          });
          for (const { atMs, forMs, stepMs } of stalls) {
            world.timeline.at(atMs, () => {
              world.clock.stall(forMs);
              world.clock.stepWall(stepMs);
            });
          }
          world.timeline.runUntil(70_000);
          world.end();
          for (const { atMs, datedMs } of world.said) {
            const handledMs =
              world.handledMs.filter((moment) => moment <= atMs).at(-1) ?? Number.NEGATIVE_INFINITY;
            expect(datedMs).toBeLessThanOrEqual(handledMs + 1e-6);
          }
          expect(world.said.length).toBeLessThanOrEqual(world.handledMs.length);
          expect(world.most()).toBeLessThanOrEqual(1);
        },
      ),
      { numRuns: 300, seed: 4 },
    );
  });
});
