import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  createSignalLook,
  type LookAtProcess,
  lookAtProc,
  type ProcessState,
  readProc,
  readProcStat,
} from '../../src/liveness/process.ts';
import { startProcess, until } from './started.ts';

const seenBy = (look: LookAtProcess, pid: number) =>
  new Promise<ProcessState | null>((resolve) => look(pid, resolve));
/** The main thread ends, and another goes on. */
const THREADED = `
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
`;
const stateOf = (pid: number) => readProcStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.state;

describe('a look at a process', () => {
  test('is not led astray by its name', async () => {
    const bot = startProcess({ onTestFinished }, process.execPath, [
      '-e',
      'process.title = "b) Z 1 (x"; console.log("up"); setInterval(() => {}, 1000)',
    ]);
    await until('the bot to run', () => bot.output().includes('up'));
    expect(readFileSync(`/proc/${bot.pid}/stat`, 'latin1')).toContain('(b) Z 1 (x)');
    const seen = await seenBy(lookAtProc, bot.pid);
    expect(['R', 'S']).toContain(seen?.state);
    expect(seen?.startedAt).toMatch(/^[1-9]\d*$/);
  });

  test('tells one that is dead and not buried', async () => {
    const parent = startProcess({ onTestFinished }, process.execPath, [
      '-e',
      'console.log("child " + require("node:child_process").spawn("sleep", ["60"]).pid + ".")',
    ]);
    await until('the child', () => /child \d+\./.test(parent.output()));
    const pid = Number(/child (\d+)\./.exec(parent.output())?.[1]);
    // A parent that is stopped does not ask for the end of its child.
    parent.signal('SIGSTOP');
    await until('the parent to be stopped', () => stateOf(parent.pid) === 'T');
    process.kill(pid, 'SIGKILL');
    await until('the child to die', () => stateOf(pid) === 'Z');
    expect(await seenBy(lookAtProc, pid)).toMatchObject({ state: 'Z' });
  });

  test('takes one whose main thread has ended for what its other threads are', async () => {
    const bot = startProcess({ onTestFinished }, 'python3', ['-c', THREADED]);
    await until('the main thread to end', () => stateOf(bot.pid) === 'Z');
    const seen = await seenBy(lookAtProc, bot.pid);
    expect(seen).toMatchObject({ state: 'S', startedAt: expect.stringMatching(/^[1-9]\d*$/) });
    bot.signal('SIGSTOP');
    await until('the other thread to be stopped', () => readProc(bot.pid)?.state === 'T');
    bot.signal('SIGKILL');
    await bot.ended;
    expect(await seenBy(lookAtProc, bot.pid)).toBeNull();
  });

  test('finds nothing where there is nothing', async () => {
    expect(await seenBy(lookAtProc, 2 ** 22 + 1)).toBeNull();
    expect(readProcStat('')).toBeNull();
    expect(readProcStat('12 (name) S')).toBeNull();
  });

  test('by signal tells only whether it is there', async () => {
    const look = createSignalLook((pid) => pid === 12);
    expect(await seenBy(look, 12)).toEqual({ state: 'R', startedAt: null });
    expect(await seenBy(look, 13)).toBeNull();
  });
});
