import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { calm } from './calm.ts';
import { main } from './main.ts';
import { printPlan } from './plan-reader.ts';

const folder = mkdtempSync(join(tmpdir(), 'simulate-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a command as `npm run` would, without a process of its own. */
async function run(args: readonly string[], watched = false) {
  const lines: string[] = [];
  const errors: string[] = [];
  const out = (line: string) => lines.push(line);
  const code = await main(args, { out, err: (line) => errors.push(line), watched });
  return { lines, errors, code };
}
const simulate = (...args: readonly string[]) => run(['simulate', '--out', folder, ...args]);

function fileWith(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

test('seeds that keep every promise end with 0 and with what was done', async () => {
  expect(await simulate('--seeds', '3', '--seed', '5')).toEqual({
    lines: [
      expect.stringMatching(/^3 seeds from 5 on, 0\.\d h simulated, \d+ requests to the exchange\.$/),
      expect.stringMatching(/^\d+\.\d\d simulated hours per CPU second\.$/),
      'Every promise held.',
    ],
    errors: [],
    code: 0,
  });
});

test('the first seed is drawn at random and printed', async () => {
  const seeds = await Promise.all([simulate('--seeds', '1'), simulate('--seeds', '1')]);
  const [one, two] = seeds.map(({ lines }) => /from (\d+) on/.exec(lines[0] ?? '')?.[1]);
  expect(one).toMatch(/^\d+$/);
  expect(one).not.toBe(two);
});

test('a number of hours is gone on for, and a terminal is told how far it is', async () => {
  const { lines, errors } = await run(['simulate', '--hours', '0.15', '--jobs', '1', '--seed', '1'], true);
  expect(Number(lines[0]?.split(' ')[0])).toBeGreaterThan(1);
  expect(Number(lines[0]?.split(' ')[0])).toBeLessThan(8);
  expect(errors.at(-1)).toMatch(/^ ?100 % {2}\d seeds, 0\.\d h simulated, 0 failing$/);
});

test('a plan in a file is run, with its event log where asked for', async () => {
  const { lines, code } = await simulate('--plan', fileWith('plan.json', printPlan(calm())), '--log');
  expect(lines[0]).toContain(' exchange {"seq":1,');
  expect(lines.some((line) => line.includes(' daemon-0 '))).toBe(true);
  expect(lines.at(-1)).toMatch(/^plan .*: 87\.000 s simulated, \d+ requests, every promise held\.$/);
  expect(code).toBe(0);
});

const odd = fileWith('odd.json', JSON.stringify({ ...calm(), bots: 0 }));

test.each([
  ['simulate', ['--plan', 'x.json', '--seeds', '3'], '--plan runs one plan; leave out --seeds and --hours'],
  ['simulate', ['--log', '--seeds', '3'], '--log prints the events of one seed'],
  ['simulate', ['--plan', join(folder, 'none.json')], '--plan: cannot read '],
  ['simulate', ['--plan', odd], `--plan: ${odd}: plan/bots must be >= 1`],
  ['simulate', ['--seeds', '0'], '--seeds is 0; allowed: a whole number from 1 to 4294967295'],
  ['simulate', ['--hours', 'long'], '--hours is long; allowed: a number of hours'],
  ['simulate', ['--jobs', '1.5'], '--jobs is 1.5; allowed: a whole number from 1 to 256'],
  ['simulate', ['--sedes', '1'], "Unknown option '--sedes'"],
  ['compare', ['--samples', '0'], '--samples is 0; allowed: a whole number from 1 to 100000'],
  ['simulat', [], 'the command is simulat; allowed: simulate, compare'],
])('%s %j ends with 64 and one sentence', async (command, args, sentence) => {
  const { errors, lines, code } = await run([command, ...args]);
  expect(errors).toHaveLength(1);
  expect(errors[0]).toContain(`${command}: ${sentence}`);
  expect(lines).toEqual([]);
  expect(code).toBe(64);
});
