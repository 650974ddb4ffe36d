import { existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { folderFor, startProcess } from '../liveness/started.ts';
import { eventually } from '../process/program.ts';

/** What is refused is refused before this; what is measured would take longer. */
const PATIENCE_MS = 60_000;
const SLOW = { timeout: 2 * PATIENCE_MS };

/** With a directory for temporary files of its own, so that what stays behind is seen. */
function start(context: Parameters<typeof startProcess>[0], script: string, args: readonly string[]) {
  const folder = mkdtempSync(join(folderFor(context), 'flags-'));
  const command = [join(import.meta.dirname, script), ...args];
  return { ...startProcess(context, process.execPath, command, { TMPDIR: folder }), folder };
}

test.concurrent.for([
  ['main.ts', ['--minutes=abc'], 'bench: --minutes is abc; allowed: numbers above 0\n'],
  ['main.ts', ['--out', '/'], "bench: EISDIR: illegal operation on a directory, open '/'\n"],
  ['soak.ts', ['--minutes', '1'], 'soak: --minutes is 1; allowed: 2 and more\n'],
  ['soak.ts', ['--report', '/'], "soak: EISDIR: illegal operation on a directory, open '/'\n"],
] as const)('%s refuses %j before it measures anything', SLOW, async ([script, args, says], context) => {
  const { ended, output, folder } = start(context, script, args);
  expect([await ended, output(), readdirSync(folder)]).toEqual([[1, null], says, []]);
});

test.concurrent.for([
  ['main.ts', 'SIGHUP'],
  ['soak.ts', 'SIGTERM'],
] as const)('%s that %s ends at its start leaves nothing behind', SLOW, async ([script, signal], context) => {
  const { ended, folder, ...bench } = start(context, script, []);
  const name = await eventually('a folder of its own', PATIENCE_MS, () =>
    readdirSync(folder).find((entry) => entry.startsWith('killswitchd-bench-')),
  );
  // As where somebody presses Ctrl-C again, or npm passes on what the terminal has sent already.
  bench.signal(signal);
  bench.signal(signal);
  expect([await ended, existsSync(join(folder, name))]).toEqual([[null, signal], false]);
});
