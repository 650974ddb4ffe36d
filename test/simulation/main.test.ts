import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { calm } from './calm.ts';
import { main } from './main.ts';

const folder = mkdtempSync(join(tmpdir(), 'simulate-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a command as `npm run` would, without a process of its own. */
async function run(...args: readonly string[]) {
  const lines: string[] = [];
  const errors: string[] = [];
  const code = await main(
    args,
    (line) => lines.push(line),
    (line) => errors.push(line),
  );
  return { lines, errors, code };
}

function fileWith(name: string, plan: object): string {
  const file = join(folder, name);
  writeFileSync(file, JSON.stringify(plan));
  return file;
}

test('seeds that keep every promise end with 0 and with what was done', async () => {
  expect(await run('simulate', '--seeds', '3', '--seed', '5')).toEqual({
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
  const seeds = await Promise.all([run('simulate', '--seeds', '1'), run('simulate', '--seeds', '1')]);
  const [one, two] = seeds.map(({ lines }) => /from (\d+) on/.exec(lines[0] ?? '')?.[1]);
  expect(one).toMatch(/^\d+$/);
  expect(one).not.toBe(two);
});

test('a plan in a file is run, with its event log where asked for', async () => {
  const { lines, code } = await run('simulate', '--plan', fileWith('plan.json', calm()), '--log');
  expect(lines[0]).toContain(' exchange {"seq":1,');
  expect(lines.some((line) => line.includes(' daemon-0 '))).toBe(true);
  expect(lines.at(-1)).toMatch(/^plan .*: 87\.000 s simulated, \d+ requests, every promise held\.$/);
  expect(code).toBe(0);
});

const odd = fileWith('odd.json', { ...calm(), bots: 0 });

test.each([
  ['simulate', ['--plan', 'x.json', '--seeds', '3'], "'--plan <file>' cannot be used with option '--seeds"],
  ['simulate', ['--plan', join(folder, 'none.json')], 'simulate: '],
  ['simulate', ['--plan', odd], `simulate: ${odd}: plan/bots must be >= 1`],
  ['simulate', ['--seeds', '0'], "argument '0' is invalid. allowed: a whole number from 1 to 1000000000"],
  ['simulate', ['--jobs', '1.5'], "argument '1.5' is invalid. allowed: a whole number from 1 to 256"],
  ['simulate', ['--sedes', '1'], "unknown option '--sedes'"],
  ['compare', ['--samples', '0'], "argument '0' is invalid. allowed: a whole number from 1 to 100000"],
  ['simulat', [], "unknown command 'simulat'"],
])('%s %j ends with 64 and one sentence', async (command, args, sentence) => {
  const { errors, lines, code } = await run(command, ...args);
  expect(errors).toHaveLength(1);
  expect(errors[0]).toContain(sentence);
  expect(lines).toEqual([]);
  expect(code).toBe(64);
});
