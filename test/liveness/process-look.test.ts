import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  createProcessEvidence,
  createSignalLook,
  type LookAtProcess,
  lookAtProc,
  type ProcessState,
  readProcStat,
} from '../../src/liveness/process.ts';
import { createReal } from './real.ts';
import { startProcess, until } from './started.ts';

const IDLE = ['-e', 'setInterval(() => {}, 1000); console.log("up")'];
const BUSY = ['-e', 'console.log("up"); for (;;);'];

const seenBy = (look: LookAtProcess, pid: number) =>
  new Promise<ProcessState | null>((resolve) => look(pid, resolve));
const stateOf = (pid: number) => readProcStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.state;

async function watched(args: readonly string[], { tellsOfEnd = false } = {}) {
  const real = createReal({ onTestFinished });
  const evidence = createProcessEvidence({
    clock: real.clock,
    bots: () => ['maker', 'taker'],
    probeEveryMs: () => 50,
    onProblem: real.onProblem,
    look: lookAtProc,
  });
  real.start(evidence);
  const bot = startProcess({ onTestFinished }, process.execPath, args);
  if (tellsOfEnd) bot.child.once('exit', evidence.ended);
  evidence.began(bot.pid);
  await until('the bot to run', () => bot.output().includes('up'));
  return { ...real, bot };
}

describe('a real child', () => {
  test.each([
    ['waits', IDLE],
    ['computes', BUSY],
  ])('that %s gives evidence for every bot', async (_what, args) => {
    const { said, told } = await watched(args);
    await until('beats', () => said.length >= 6);
    expect(new Set(said.map(({ bot, says }) => `${bot} ${says}`))).toEqual(
      new Set(['maker beat', 'taker beat']),
    );
    expect(told).toEqual([]);
  });

  test('that is stopped gives no evidence of after that, and gives evidence again when it goes on', async () => {
    const { bot, said, told, nowMs } = await watched(IDLE);
    await until('beats', () => said.length >= 4);
    bot.signal('SIGSTOP');
    await until('the bot to be stopped', () => stateOf(bot.pid) === 'T');
    const stoppedMs = nowMs();
    await until('the stop to be seen', () => told.length === 2);
    expect(told[0]).toBe(`maker: process ${bot.pid} is stopped (state T)`);
    await until('more looks', () => nowMs() > stoppedMs + 500);
    expect(said.every(({ datedMs }) => datedMs <= stoppedMs)).toBe(true);
    const beats = said.length;
    bot.signal('SIGCONT');
    await until('beats', () => said.length > beats);
  });

  test('that is killed gives no evidence of after that, even where nobody tells of its end', async () => {
    const { bot, said, told, nowMs } = await watched(IDLE);
    await until('beats', () => said.length >= 4);
    bot.signal('SIGKILL');
    await bot.ended;
    const deadMs = nowMs();
    await until('the end to be seen', () => told.length >= 2);
    expect(told[0]).toContain(`process ${bot.pid} `);
    expect(said.every(({ datedMs }) => datedMs <= deadMs)).toBe(true);
  });

  test.each([
    ['process.exit(0)', 'goodbye'],
    ['process.exit(3)', 'fail'],
    ['process.kill(process.pid, "SIGKILL")', 'fail'],
  ])('that ends by %s has this as its last word: %s', async (end, word) => {
    const { bot, said } = await watched(['-e', `console.log("up"); setTimeout(() => ${end}, 100)`], {
      tellsOfEnd: true,
    });
    await bot.ended;
    expect(said.slice(-2).map(({ bot: name, says }) => `${name} ${says}`)).toEqual([
      `maker ${word}`,
      `taker ${word}`,
    ]);
  });
});

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
