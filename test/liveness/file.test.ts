import { mkdirSync, renameSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

/** A bot's file in a virtual world, looked at every second. Whatever else a host does: `test/simulation`. */
function createFileWorld(files = () => [{ bot: 'default', at: PATH }]) {
  const world = createVirtual();
  /** What can be seen of the file. */
  const disk = { state: null as FileState | null, failing: false };
  let mtimeMs = 5_000_000;
  const find = (): FileLook => {
    if (disk.failing) return { kind: 'failed', detail: 'EIO' };
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
    touch: () => {
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

  test.each([{ mtimeMs: 9 }, { size: 4 }, { ino: 8 }])('counts where %j alone is new', (next) => {
    const { said, timeline, disk, start } = createFileWorld();
    const before = { mtimeMs: 10, size: 3, ino: 7 };
    disk.state = before;
    start();
    timeline.runUntil(1500);
    disk.state = { ...before, ...next };
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

  test('is looked at once at a time, however long a look takes', () => {
    const { timeline, looking, start } = createFileWorld();
    looking.latencyMs = 7000;
    start();
    timeline.runUntil(30_000);
    expect(looking.most).toBe(1);
  });

  test('that gives no answer is told of after 5 s, and another one counts as soon as a reload names it', () => {
    let files = [{ bot: 'default', at: PATH }];
    const { said, told, looks, timeline, looking, touch, start } = createFileWorld(() => files);
    touch();
    looking.latencyMs = 60_000;
    start();
    timeline.runUntil(4999);
    expect(told).toEqual([]);
    timeline.runUntil(9500);
    expect(told).toEqual([`default: cannot look at ${PATH}: there is no answer for 5 s`]);
    expect(looks).toEqual([PATH]);
    files = [{ bot: 'default', at: '/well' }];
    looking.latencyMs = 2;
    timeline.runUntil(10_500);
    touch();
    timeline.runUntil(11_500);
    expect(said.map(({ datedMs }) => datedMs)).toEqual([10_000]);
    expect(told.at(-1)).toBe('default: -');
    // What the first one tells in the end is of no interest.
    timeline.runUntil(70_000);
    expect([said.length, told.length]).toEqual([1, 2]);
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

test('a file whose file system is unmounted and comes back as it was is no beat, and one that a bot made anew is', () => {
  const { said, timeline, touch, disk, start } = createFileWorld();
  touch();
  start();
  timeline.runUntil(1500);
  const { state } = disk;
  for (const found of [null, state, null]) {
    disk.state = found;
    timeline.runUntil(timeline.nowMs() + 2000);
  }
  expect(said).toEqual([]);
  touch();
  timeline.runUntil(9500);
  expect(said.map(({ datedMs }) => datedMs)).toEqual([5000]);
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

test('the touch counts through a link', async () => {
  const { path, find } = looking();
  symlinkSync(`${path}.target`, path);
  expect(await find()).toEqual({ kind: 'absent' });
  writeFileSync(`${path}.target`, '');
  const before = await find();
  writeFileSync(`${path}.target`, 'x');
  expect(await find()).not.toEqual(before);
});

test.each<[string, (path: string) => void, string, FileLook]>([
  ['in a missing folder is no file yet', () => undefined, '/deeper', { kind: 'absent' }],
  ['below a file is no file yet', (path) => writeFileSync(path, ''), '/deeper', { kind: 'absent' }],
  ['that is a directory', (path) => mkdirSync(path), '', { kind: 'failed', detail: 'it is a directory' }],
  [
    'that is a device',
    (path) => symlinkSync('/dev/null', path),
    '',
    { kind: 'failed', detail: 'it is no regular file' },
  ],
  ['that leads to itself', (path) => symlinkSync(path, path), '', { kind: 'failed', detail: 'ELOOP' }],
])('a path %s', async (_what, make, below, seen) => {
  const { path, find } = looking();
  make(path);
  expect(await find(path + below)).toEqual(seen);
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
