import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  createFileEvidence,
  createFileLook,
  type FileLook,
  type FileState,
} from '../../src/liveness/file.ts';
import { startRounds } from '../../src/liveness/rounds.ts';
import { folderFor } from './started.ts';
import { createVirtual } from './virtual.ts';

const PATH = '/run/bot/beat';

/** A bot's file in a virtual world, looked at every second. */
function createFileWorld(files = () => [{ bot: 'default', at: PATH }]) {
  const world = createVirtual();
  /** What can be seen of the file, and whether somebody has. */
  const disk = { state: null as FileState | null, failing: false, seen: false };
  const touchesMs: number[] = [];
  let mtimeMs = 5_000_000;
  const find = (): FileLook => {
    if (disk.failing) return { kind: 'failed', detail: 'EIO' };
    disk.seen ||= disk.state !== null;
    return disk.state === null ? { kind: 'absent' } : { kind: 'present', state: disk.state };
  };
  const looks: string[] = [];
  const evidence = createFileEvidence({
    clock: world.clock,
    files,
    probeEveryMs: () => 1000,
    onProblem: world.onProblem,
    look(path, done) {
      looks.push(path);
      world.look(find, done);
    },
  });
  return {
    ...world,
    start: () => world.start(evidence),
    looks,
    disk,
    touchesMs,
    touch: () => {
      touchesMs.push(world.timeline.nowMs());
      disk.state = { mtimeMs: (mtimeMs += 1), size: 0, ino: 7 };
    },
  };
}

describe('a file that the bot touches', () => {
  test('counts when it appears later', () => {
    const { said, told, timeline, touch, start } = createFileWorld();
    start();
    timeline.runUntil(5500);
    touch();
    timeline.runUntil(7500);
    expect(said.map(({ datedMs }) => datedMs)).toEqual([5000]);
    expect(told).toEqual([`default: there is no file ${PATH}`, 'default: -']);
  });

  test.each([
    ['time', { mtimeMs: 11, size: 3, ino: 7 }],
    ['time, even backwards', { mtimeMs: 9, size: 3, ino: 7 }],
    ['size', { mtimeMs: 10, size: 4, ino: 7 }],
    ['place on the disk', { mtimeMs: 10, size: 3, ino: 8 }],
  ])('counts when only its %s changed', (_what, next) => {
    const { said, timeline, disk, start } = createFileWorld();
    disk.state = { mtimeMs: 10, size: 3, ino: 7 };
    start();
    timeline.runUntil(1500);
    disk.state = next;
    timeline.runUntil(5000);
    expect(said).toHaveLength(1);
  });

  test('counts for nothing while it cannot be looked at, and the cause is told once', () => {
    const { said, told, timeline, touch, disk, start } = createFileWorld();
    touch();
    start();
    timeline.runUntil(2500);
    disk.failing = true;
    timeline.runUntil(3500);
    touch();
    timeline.runUntil(9500);
    expect(said).toEqual([]);
    expect(told).toEqual([`default: cannot look at ${PATH}: EIO`]);
    disk.failing = false;
    timeline.runUntil(10_500);
    expect(said.map(({ datedMs }) => datedMs)).toEqual([2000]);
  });

  test('of a reloaded configuration starts anew, one that stays is not disturbed, and none is looked at after the end', () => {
    const maker = { bot: 'maker', at: '/a' };
    let files = [maker, { bot: 'taker', at: '/b' }];
    const { said, looks, timeline, touch, start } = createFileWorld(() => files);
    touch();
    const end = start();
    timeline.runUntil(1500);
    files = [maker, { bot: 'taker', at: '/c' }];
    touch();
    timeline.runUntil(2500);
    expect(said.map(({ bot }) => bot)).toEqual(['maker']);
    touch();
    timeline.runUntil(3500);
    expect(said.map(({ bot }) => bot)).toEqual(['maker', 'maker', 'taker']);
    files = [{ bot: 'taker', at: '/c' }];
    timeline.runUntil(4999);
    touch();
    timeline.runUntil(5000);
    end();
    const { length } = looks;
    timeline.runUntil(20_000);
    expect(looks.slice(-2)).toEqual(['/c', '/c']);
    expect([looks.length, said.length]).toEqual([length, 3]);
  });
});

describe('whatever a file system and a host do', () => {
  type Happening = (world: ReturnType<typeof createFileWorld>, ms: number) => void;
  const touch: Happening = (world) => world.touch();
  /** A file system is unmounted and comes back with the file as it was, which was known to be there. */
  const vanish: Happening = ({ disk, timeline }) => {
    const { state } = disk;
    if (!disk.seen) return;
    disk.state = null;
    timeline.runUntil(timeline.nowMs() + 2500);
    disk.state = state;
  };
  const others: readonly Happening[] = [
    vanish,
    ({ disk }) => Object.assign(disk, { state: null }),
    ({ disk }, ms) => Object.assign(disk, { failing: ms < 3000 }),
    ({ looking }, ms) => Object.assign(looking, { latencyMs: ms }),
    ({ clock }, ms) => clock.stall(ms),
    ({ clock }, ms) => clock.stepWall((ms - 3000) * 3000),
  ];
  const happening = fc.record({
    afterMs: fc.integer({ min: 0, max: 4000 }),
    happen: fc.constantFrom(...others, touch, touch, touch, touch, touch),
    ms: fc.integer({ min: 0, max: 6000 }),
  });

  test('a beat is never dated later than the last touch, and a touch makes one beat at most', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(happening, { minLength: 1, maxLength: 40 }), (stale, happenings) => {
        const world = createFileWorld();
        const { timeline, said, touchesMs } = world;
        if (stale) world.touch();
        touchesMs.length = 0;
        const end = world.start();
        for (const { afterMs, happen, ms } of happenings) {
          timeline.runUntil(timeline.nowMs() + afterMs);
          happen(world, ms);
        }
        timeline.runUntil(timeline.nowMs() + 20_000);
        end();
        for (const { atMs, datedMs } of said) {
          const before = touchesMs.filter((touchMs) => touchMs <= atMs);
          expect(datedMs).toBeLessThanOrEqual(Math.max(...before) + 1e-6);
        }
        expect(said.length).toBeLessThanOrEqual(touchesMs.length);
        expect(world.looking.most).toBeLessThanOrEqual(1);
      }),
      { numRuns: 400, seed: 4 },
    );
  });
});

/** A path in a folder of this test alone, and looks at it or at another one. */
function looking() {
  const path = join(folderFor({ onTestFinished }), 'beat');
  const look = createFileLook();
  const find = (at = path) => new Promise<FileLook>((resolve) => look(at, resolve));
  return { path, find };
}

test('a real file is another one after each touch: by its time, its content, a time that lies in the past, one in its place', async () => {
  const { path, find } = looking();
  writeFileSync(path, '');
  const touches = [
    () => utimesSync(path, 2e9, 2e9),
    () => writeFileSync(path, 'x'),
    () => utimesSync(path, 1, 1),
    () => {
      writeFileSync(`${path}.new`, 'x');
      utimesSync(`${path}.new`, 1, 1);
      renameSync(`${path}.new`, path);
    },
  ];
  let before = await find();
  for (const touch of touches) {
    expect(await find()).toEqual(before);
    touch();
    const after = await find();
    expect(after.kind).toBe('present');
    expect(after).not.toEqual(before);
    before = after;
  }
});

test('a path that leads nowhere is told, and the touch counts through a link', async () => {
  const { path, find } = looking();
  symlinkSync(path, path);
  expect(await find()).toEqual({ kind: 'failed', detail: 'ELOOP' });
  rmSync(path);
  symlinkSync(`${path}.target`, path);
  expect(await find()).toEqual({ kind: 'absent' });
  writeFileSync(`${path}.target`, '');
  const before = await find();
  expect(before.kind).toBe('present');
  writeFileSync(`${path}.target`, 'x');
  expect(await find()).not.toEqual(before);
});

test('a directory that is missing, or a file in its place, is no file yet; a directory and a device are no evidence', async () => {
  const { path, find } = looking();
  expect(await find(join(path, 'deeper'))).toEqual({ kind: 'absent' });
  writeFileSync(path, '');
  expect(await find(join(path, 'deeper'))).toEqual({ kind: 'absent' });
  rmSync(path);
  mkdirSync(path);
  expect(await find()).toEqual({ kind: 'failed', detail: 'it is a directory' });
  expect(await find('/dev/null')).toEqual({ kind: 'failed', detail: 'it is no regular file' });
});

test('looks at the bots at the pace of a reload within a second: the wait of before would outlast the new evidence', () => {
  const { clock, timeline } = createVirtual();
  const roundsMs: number[] = [];
  let everyMs = 200_000;
  const round = () => void roundsMs.push(timeline.nowMs());
  const end = startRounds(clock, () => everyMs, round);
  timeline.runUntil(2500);
  everyMs = 2000;
  timeline.runUntil(8000);
  everyMs = 4000;
  timeline.runUntil(15_500);
  end();
  timeline.runUntil(60_000);
  expect(roundsMs).toEqual([0, 3000, 5000, 7000, 11_000, 15_000]);
});
