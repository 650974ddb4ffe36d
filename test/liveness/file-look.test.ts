import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createFileLook, type FileLook } from '../../src/liveness/file.ts';

/** A path in a folder of this test alone, and looks at it or at another one. */
function looking() {
  const directory = mkdtempSync(join(tmpdir(), 'killswitchd-file-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, 'beat');
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

test('a directory that is missing, or a file in its place, means that the file is not there yet', async () => {
  const { path, find } = looking();
  expect(await find(join(path, 'deeper'))).toEqual({ kind: 'absent' });
  writeFileSync(path, '');
  expect(await find(join(path, 'deeper'))).toEqual({ kind: 'absent' });
});

test('what is no file is no evidence, whoever changes it: others make files in a directory, and write to a device', async () => {
  const { path, find } = looking();
  mkdirSync(path);
  expect(await find()).toEqual({ kind: 'failed', detail: 'it is a directory' });
  expect(await find('/dev/null')).toEqual({ kind: 'failed', detail: 'it is no regular file' });
});
