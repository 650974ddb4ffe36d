import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  createProcessEvidence,
  createSignalLook,
  type LookAtProcess,
  lookAtProc,
  type ProcessState,
  readProc,
  readProcStat,
} from '../../src/liveness/process.ts';
import { startProcess, until } from './started.ts';
import { createVirtual } from './virtual.ts';

const PID = 4711;

/** A child in a virtual world, looked at every second. */
function watched(bots: () => readonly string[] = () => ['default']) {
  const world = createVirtual();
  let seen: ProcessState | null = { state: 'S', startedAt: '100' };
  const evidence = createProcessEvidence({
    clock: world.clock,
    bots,
    probeEveryMs: () => 1000,
    onProblem: world.onProblem,
    look: (_pid, done) => world.look(() => seen, done),
  });
  const end = world.start(evidence);
  return {
    ...world,
    end,
    ended: evidence.ended,
    /** The child is started, and time passes. */
    begin: (untilMs: number) => {
      evidence.began(PID);
      world.timeline.runUntil(untilMs);
    },
    be: (state: string, startedAt = '100') => {
      seen = { state, startedAt };
    },
    vanish: () => {
      seen = null;
    },
  };
}

describe('a child process', () => {
  test.each(['R', 'D'])('in state %s is a beat of the moment that the look was begun', (state) => {
    const { said, be, begin } = watched();
    be(state);
    begin(1500);
    expect(said.map(({ datedMs }) => datedMs)).toEqual([0, 1000]);
  });

  test.each(['T', 't', 'Z', 'X', 'I'])('in state %s gives no evidence, and it is told why', (state) => {
    const { said, told, be, begin, timeline } = watched();
    begin(500);
    be(state);
    timeline.runUntil(10_000);
    expect(said).toHaveLength(1);
    expect(told).toEqual([expect.stringContaining(`(state ${state})`)]);
    be('S');
    timeline.runUntil(11_500);
    expect(said.map(({ says }) => says)).toEqual(['beat', 'beat', 'beat']);
  });

  test('that cannot be seen, or whose number another one has got since, does not count', () => {
    const { said, told, be, vanish, begin, timeline } = watched();
    begin(500);
    be('R', '999');
    timeline.runUntil(10_000);
    vanish();
    timeline.runUntil(20_000);
    expect(said).toHaveLength(1);
    const problems = ['is another one than the bot', 'cannot be seen'];
    expect(told).toEqual(problems.map((problem) => `default: process 4711 ${problem}`));
  });

  test.each([
    [0, 'goodbye'],
    [1, 'fail'],
    [143, 'fail'],
    [null, 'fail'],
  ] as const)(
    'that ended with %s says %s for every bot, and nothing until it is started again',
    (code, word) => {
      const { said, be, looking, begin, ended, timeline } = watched(() => ['maker', 'taker']);
      begin(500);
      expect(said.splice(0).map(({ bot, says }) => `${bot} ${says}`)).toEqual(['maker beat', 'taker beat']);
      looking.latencyMs = 1000;
      timeline.runUntil(1500);
      ended(code);
      ended(code);
      timeline.runUntil(10_000);
      expect(said.map(({ bot, says }) => `${bot} ${says}`)).toEqual([`maker ${word}`, `taker ${word}`]);
      expect(said.splice(0).map(({ atMs, datedMs }) => atMs - datedMs)).toEqual([0, 0]);
      // Started again it has another start time.
      be('S', '200');
      looking.latencyMs = 2;
      begin(10_500);
      expect(said.map(({ bot, says }) => `${bot} ${says}`)).toEqual(['maker beat', 'taker beat']);
    },
  );

  test('is looked at once at a time, and not any more once the source has ended', () => {
    const { said, looking, begin, end, timeline } = watched();
    looking.latencyMs = 7000;
    begin(8000);
    expect(said.map(({ atMs, datedMs }) => atMs - datedMs)).toEqual([7000]);
    end();
    timeline.runUntil(60_000);
    expect(said).toHaveLength(1);
    expect(looking.most).toBe(1);
  });
});

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
