import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** A folder of this test file alone, gone when its tests are over. */
export function scratch(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `killswitchd-${name}-`));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
