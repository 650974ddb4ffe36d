import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { afterAll, expect, test } from 'vitest';
import type { Edge } from '../../src/cli/edge.ts';
import { registerSimulate } from '../../src/cli/simulate.ts';
import { printPlan } from '../../src/simulation/plan-text.ts';
import { calm } from './plans.ts';

const folder = mkdtempSync(join(tmpdir(), 'simulate-command-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs the command as the program would, without a process of its own. */
async function run(args: readonly string[], terminal = false) {
  const lines: string[] = [];
  const errors: string[] = [];
  const exits: number[] = [];
  const edge: Edge = {
    env: {},
    out: (line) => lines.push(line),
    err: (line) => errors.push(line),
    terminal,
    nodeVersion: 'v24',
    isoTime: String,
    onSignal: () => () => {},
    onCrash: () => () => {},
    finish: (code) => exits.push(code),
    exitNow: (code) => exits.push(code),
  };
  const program = new Command('killswitchd').configureOutput({ writeErr: () => {} }).exitOverride();
  registerSimulate(program, edge);
  await program.parseAsync(['simulate', '--out', folder, ...args], { from: 'user' });
  return { lines, errors, exits };
}

function fileWith(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

test('seeds that keep every promise end with 0 and with what was done', async () => {
  const { lines, errors, exits } = await run(['--seeds', '3', '--seed', '5']);
  expect(lines).toEqual([
    expect.stringMatching(/^3 seeds, 0\.\d h simulated, \d+ requests to the exchange\.$/),
    expect.stringMatching(/^\d+\.\d\d simulated hours per CPU second\.$/),
    'Every promise held.',
  ]);
  expect(errors).toEqual([]);
  expect(exits).toEqual([0]);
});

test('a number of hours is gone on for, and a terminal is told how far it is', async () => {
  const { lines, errors } = await run(['--hours', '0.15', '--jobs', '1'], true);
  expect(Number(lines[0]?.split(' ')[0])).toBeGreaterThan(1);
  expect(Number(lines[0]?.split(' ')[0])).toBeLessThan(8);
  expect(errors.at(-1)).toMatch(/^ ?100 % {2}\d seeds, 0\.\d h simulated, 0 failing$/);
});

test('a plan in a file is run, with its event log where asked for', async () => {
  const file = fileWith('plan.json', printPlan(calm()));
  const { lines, exits } = await run(['--plan', file, '--log']);
  expect(lines[0]).toContain(' exchange {"seq":1,');
  expect(lines.some((line) => line.includes(' daemon-0 '))).toBe(true);
  expect(lines.at(-1)).toMatch(/^plan .*: 87\.000 s simulated, \d+ requests, every promise held\.$/);
  expect(exits).toEqual([0]);
});

test('the event log of one seed is printed', async () => {
  const { lines } = await run(['--seed', '7', '--log']);
  expect(lines.some((line) => line.includes(' exchange {"seq":1,'))).toBe(true);
});

test.each([
  [
    'a plan and seeds',
    ['--plan', 'x.json', '--seeds', '3'],
    '--plan runs one plan; leave out --seeds and --hours',
  ],
  [
    'the log of many seeds',
    ['--log', '--seeds', '3'],
    '--log prints the events of one seed; leave out --seeds and --hours',
  ],
  ['a file that is not there', ['--plan', join(folder, 'none.json')], '--plan: cannot read '],
])('%s ends with 64 and one sentence', async (_what, args, sentence) => {
  const { errors, exits } = await run(args);
  expect(errors).toHaveLength(1);
  expect(errors[0]).toContain(`killswitchd simulate: ${sentence}`);
  expect(exits).toEqual([64]);
});

test('a plan that makes no sense is refused with its place', async () => {
  const file = fileWith('odd.json', JSON.stringify({ ...calm(), bots: 0 }));
  const { errors, exits } = await run(['--plan', file]);
  expect(errors).toEqual([
    `killswitchd simulate: --plan: ${file}: plan.bots is 0; expected a whole number from 1 to 1000`,
  ]);
  expect(exits).toEqual([64]);
});

test.each([
  ['--seeds', '0'],
  ['--hours', 'long'],
  ['--jobs', '1.5'],
  ['--seed', '-1'],
])('%s %s is refused', async (flag, value) => {
  await expect(run([flag, value])).rejects.toThrow(CommanderError);
});
