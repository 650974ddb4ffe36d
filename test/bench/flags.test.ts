import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../process/program.ts';

const BENCH = 'main.ts';
const SOAK = 'soak.ts';
const PACKAGE = join(import.meta.dirname, '../../package.json');
/** What is refused is refused before this; what is measured would take longer. */
const PATIENCE_MS = 60_000;
/** Each test starts several processes, one after the other. */
const SLOW = { timeout: 2 * PATIENCE_MS };

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'killswitchd-flags-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** With a directory for temporary files of its own, so that what stays behind is seen. */
function start(script: string, args: readonly string[]) {
  const child = spawn(process.execPath, [join(import.meta.dirname, script), ...args], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PATIENCE_MS,
  });
  const ended = Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)]);
  return { child, ended };
}

async function refused(script: string, ...args: string[]): Promise<string> {
  const [[code], out, said] = await start(script, args).ended;
  expect([code, out, readdirSync(folder)]).toEqual([1, '', []]);
  return said;
}

describe('flags of the bench that are wrong are refused before anything is made or measured', SLOW, () => {
  it('where --minutes is no number greater than 0', async () => {
    for (const minutes of ['0', 'abc'])
      expect(await refused(BENCH, '--only', 'starts', `--minutes=${minutes}`)).toBe(
        `bench: --minutes is ${minutes}; allowed: numbers above 0\n`,
      );
  });

  it('where the file of --doc holds no report', async () => {
    expect(await refused(BENCH, '--doc', PACKAGE)).toBe(`bench: ${PACKAGE} holds no report of the bench\n`);
    const program = join(import.meta.dirname, BENCH);
    expect(await refused(BENCH, '--doc', program)).toBe(`bench: ${program} holds no report of the bench\n`);
  });
});

describe('flags of the soak that are wrong are refused before anything is made or measured', SLOW, () => {
  it('where --minutes leave no time for the samples that a slope takes', async () => {
    expect(await refused(SOAK, '--minutes', '1')).toBe(
      'soak: --minutes is 1; allowed: 2 and more, for 3 samples that are 40 s apart\n',
    );
    expect(await refused(SOAK, '--minutes', 'Infinity')).toBe(
      'soak: --minutes is Infinity; allowed: finite numbers greater than 0\n',
    );
  });

  it('where the file of --report cannot be written', async () => {
    expect(await refused(SOAK, '--report', folder)).toBe(
      `soak: --report cannot be written: EISDIR: illegal operation on a directory, open '${folder}'\n`,
    );
  });
});

describe('a bench that is ended while it is still made', SLOW, () => {
  it.each([
    [BENCH, 'SIGHUP'],
    [SOAK, 'SIGINT'],
    [SOAK, 'SIGTERM'],
  ] as const)(
    'leaves nothing behind, whatever it is and whichever signal: %s, %s',
    async (script, signal) => {
      const { child, ended } = start(script, script === BENCH ? ['--only', 'starts'] : []);
      const rig = () => readdirSync(folder).find((name) => name.startsWith('killswitchd-bench-'));
      const name = await eventually('a folder of its own', PATIENCE_MS, () => rig() ?? null);
      // As where somebody presses Ctrl-C again, or npm passes on what the terminal has sent already.
      child.kill(signal);
      child.kill(signal);
      const [[code, by]] = await ended;
      expect([code, by, existsSync(join(folder, name))]).toEqual([null, signal, false]);
    },
  );
});
