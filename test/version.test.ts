import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { folderFor } from './liveness/started.ts';

test.each([
  ['that was written down', 'abc', (file: string) => writeFileSync(file, 'abc\n')],
  ['unknown where nothing was built', 'unknown', () => {}],
  ['unknown where what was written down cannot be read', 'unknown', (file: string) => mkdirSync(file)],
])('the revision is %s', async (_name, revision, write) => {
  const folder = folderFor({ onTestFinished });
  mkdirSync(join(folder, 'dist'));
  writeFileSync(join(folder, 'package.json'), '{ "version": "1.2.3" }');
  const copy = join(folder, 'dist/version.ts');
  copyFileSync('src/version.ts', copy);
  write(join(folder, 'dist/revision.txt'));
  expect(await import(copy)).toMatchObject({ VERSION: '1.2.3', REVISION: revision });
});
