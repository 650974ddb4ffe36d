import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createFileEvidence, createFileLook, type FileLook } from '../../src/liveness/file.ts';
import { createReal } from './real.ts';
import { until } from './started.ts';

function watched(name = 'beat') {
  const directory = mkdtempSync(join(tmpdir(), 'killswitchd-file-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, name);
  const real = createReal({ onTestFinished });
  let looks = 0;
  const look = createFileLook();
  const evidence = createFileEvidence({
    clock: real.clock,
    files: () => [{ bot: 'default', path }],
    probeEveryMs: () => 50,
    onProblem: real.onProblem,
    look: (looked, done) =>
      look(looked, (found) => {
        done(found);
        looks += 1;
      }),
  });
  /** Resolves when two whole looks have been made from now on. */
  const looked = () => {
    const enough = looks + 3;
    return until('two looks', () => looks >= enough);
  };
  return { ...real, directory, path, evidence, looked };
}

test('a real file counts each time that it is touched, never dated later than the touch', async () => {
  const { said, nowMs, path, start, evidence, looked } = watched();
  writeFileSync(path, '');
  start(evidence);
  await looked();
  expect(said).toEqual([]);
  // By its time, by its content, by another file in its place, and by a time that lies in the past.
  const touches = [
    () => utimesSync(path, new Date(), new Date()),
    () => writeFileSync(path, 'x'),
    () => {
      writeFileSync(`${path}.new`, 'x');
      renameSync(`${path}.new`, path);
    },
    () => utimesSync(path, 1, 1),
  ];
  for (const touch of touches) {
    said.length = 0;
    const beforeMs = nowMs();
    touch();
    const afterMs = nowMs();
    await until('a beat', () => said.length > 0);
    await looked();
    expect(said).toHaveLength(1);
    expect(said[0]?.datedMs).toBeLessThanOrEqual(afterMs);
    // A busy machine may be slow to look: not older than seconds.
    expect(said[0]?.datedMs).toBeGreaterThan(beforeMs - 10_000);
  }
});

test('a path that leads nowhere is told, and the touch counts through a link', async () => {
  const { said, told, directory, path, start, evidence, looked } = watched();
  symlinkSync(path, path);
  start(evidence);
  await looked();
  expect(told).toEqual([`default: cannot look at ${path}: ELOOP`]);
  rmSync(path);
  writeFileSync(join(directory, 'target'), '');
  symlinkSync(join(directory, 'target'), path);
  await looked();
  expect(said).toEqual([]);
  writeFileSync(join(directory, 'target'), 'x');
  await until('a beat', () => said.length > 0);
});

test('a directory that is missing, or a file in its place, means that the file is not there yet', async () => {
  const look = createFileLook();
  const found = (path: string) => new Promise<FileLook>((resolve) => look(path, resolve));
  const { path } = watched();
  expect(await found(join(path, 'deeper'))).toEqual({ kind: 'absent' });
  writeFileSync(path, '');
  expect(await found(join(path, 'deeper'))).toEqual({ kind: 'absent' });
});

test('what is no file is no evidence, whoever changes it: others make files in a directory, and write to a device', async () => {
  const { said, told, directory, path, start, evidence, looked } = watched();
  writeFileSync(join(directory, 'other'), '');
  mkdirSync(path);
  start(evidence);
  await looked();
  writeFileSync(join(path, 'made-by-somebody-else'), '');
  await looked();
  expect(said).toEqual([]);
  expect(told.at(-1)).toMatch(/cannot look at .*: it is a directory$/);
  const look = createFileLook();
  const found = await new Promise<FileLook>((resolve) => look('/dev/null', resolve));
  expect(found).toEqual({ kind: 'failed', detail: 'it is no regular file' });
});

test('a hundred files are all looked at', async () => {
  const look = createFileLook();
  const { path } = watched();
  writeFileSync(path, 'x');
  const found = await Promise.all(
    Array.from({ length: 100 }, () => new Promise<FileLook>((resolve) => look(path, resolve))),
  );
  expect(found.every(({ kind }) => kind === 'present')).toBe(true);
});
