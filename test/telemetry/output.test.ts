import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempDisposableSync, openSync, readSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createWriter } from '../../src/telemetry/output.ts';

/** A pipe whose reader takes something only where the test says so. */
function openPipe() {
  const folder = mkdtempDisposableSync(join(tmpdir(), 'output-'));
  const path = join(folder.path, 'pipe');
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  onTestFinished(() => {
    closeSync(reader);
    closeSync(writer);
    folder.remove();
  });
  const bytes = Buffer.alloc(1_000_000);
  return { writer, read: () => bytes.toString('latin1', 0, readSync(reader, bytes)) };
}

const TOO_MUCH = 'x'.repeat(200_000);

function timeOf(run: () => void): number {
  const startedMs = performance.now();
  run();
  return performance.now() - startedMs;
}

test.each([
  ['in all', false],
  ['anew for each text', true],
])(
  'a reader that takes nothing is waited for %s, and what it has not taken by then is dropped',
  (_, anew) => {
    const { writer, read } = openPipe();
    const { write, isGone } = createWriter(writer, 30, anew);
    expect(timeOf(() => write(TOO_MUCH))).toBeGreaterThan(290);
    read();
    write('whole\n');
    expect(read()).toBe('whole\n');
    const againMs = timeOf(() => write(TOO_MUCH));
    if (anew) expect(againMs).toBeGreaterThan(290);
    else expect(againMs).toBeLessThan(290);
    expect(isGone()).toBe(false);
  },
);
