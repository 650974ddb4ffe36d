import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startProcess } from '../liveness/started.ts';
import { eventually } from '../process/program.ts';

const HERE = import.meta.dirname;
const PACKAGE = join(HERE, '../../package.json');
/** What is refused is refused before this; what is measured would take longer. */
const PATIENCE_MS = 60_000;
const SLOW = { timeout: 2 * PATIENCE_MS };

type Context = Parameters<typeof startProcess>[0];

/** With a directory for temporary files of its own, so that what stays behind is seen. */
function start(context: Context, script: string, args: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'killswitchd-flags-'));
  const started = startProcess(context, process.execPath, [join(HERE, script), ...args], { TMPDIR: folder });
  context.onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { ...started, folder };
}

test.concurrent.for([
  ['main.ts', ['--only', 'starts', '--minutes=abc'], 'bench: --minutes is abc; allowed: numbers above 0'],
  [
    'main.ts',
    ['--only', 'starts', '--out', tmpdir()],
    `bench: --out cannot be written: EISDIR: illegal operation on a directory, open '${tmpdir()}'`,
  ],
  ['main.ts', ['--doc', PACKAGE], `bench: ${PACKAGE} holds no report of the bench`],
  [
    'soak.ts',
    ['--minutes', '1'],
    'soak: --minutes is 1; allowed: 2 and more, for 3 samples that are 40 s apart',
  ],
  [
    'soak.ts',
    ['--report', tmpdir()],
    `soak: --report cannot be written: EISDIR: illegal operation on a directory, open '${tmpdir()}'`,
  ],
] as const)(
  '%s refuses %j before anything is made or measured',
  SLOW,
  async ([script, args, says], context) => {
    const { ended, output, folder } = start(context, script, args);
    expect([await ended, output(), readdirSync(folder)]).toEqual([[1, null], `${says}\n`, []]);
  },
);

test.concurrent.for([
  ['main.ts', 'SIGHUP'],
  ['soak.ts', 'SIGTERM'],
] as const)(
  '%s that is ended by %s while it is still made leaves nothing behind',
  SLOW,
  async ([script, signal], context) => {
    const { ended, folder, ...bench } = start(
      context,
      script,
      script === 'main.ts' ? ['--only', 'starts'] : [],
    );
    const rig = () => readdirSync(folder).find((name) => name.startsWith('killswitchd-bench-'));
    const name = await eventually('a folder of its own', PATIENCE_MS, () => rig());
    // As where somebody presses Ctrl-C again, or npm passes on what the terminal has sent already.
    bench.signal(signal);
    bench.signal(signal);
    expect([await ended, existsSync(join(folder, name))]).toEqual([[null, signal], false]);
  },
);
