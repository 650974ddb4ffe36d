import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { ask, commandNames, helpOf } from '../docs/program.ts';
import { VARIABLE_NAMES } from '../docs/schema-tables.ts';
import { fileWith, run } from './stage.ts';

/** What bash offers for the last word of each line, by the script that the program prints. */
async function offered(lines: readonly (readonly string[])[]): Promise<string[][]> {
  const { out } = await ask(['completion', 'bash']);
  const program = [
    `source ${fileWith(out)}`,
    'complete -p killswitchd',
    'offer() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _killswitchd; echo "${COMPREPLY[*]}"; }',
    ...lines.map((words) => `offer killswitchd ${words.map((word) => `'${word}'`).join(' ')}`),
  ];
  const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', program.join('\n')], { encoding: 'utf8' });
  expect(stderr).toBe('');
  const [registered, ...replies] = stdout.trimEnd().split('\n');
  expect(registered).toBe('complete -F _killswitchd killswitchd');
  return replies.map((reply) => reply.split(' '));
}

const wordsOf = (line: string) => line.split(' ');

describe('bash completes', () => {
  test('commands, flags, and the values that are allowed', async () => {
    const offers = [
      ['', (await commandNames()).join(' ')],
      ['ch', 'check-config'],
      ['run --log-f', '--log-format'],
      ['run --log-format ', 'auto json journal text'],
      ['run --log-format = j', 'json journal'],
      ['log-level d', 'debug'],
      ['api create', 'createStockMarketOrder createNewAddress'],
      ['exchange --profile l', 'live'],
    ] as const;
    const [bots, ...replies] = await offered(['exec -- bas', ...offers.map(([line]) => line)].map(wordsOf));
    expect(replies.map((reply) => reply.join(' '))).toEqual(offers.map(([, offer]) => offer));
    expect(bots).toContain('bash');
  });

  test('every flag that help shows', async () => {
    const names = await commandNames();
    const replies = await offered(names.map((name) => [name, '--']));
    for (const [index, name] of names.entries()) {
      const flags = (await helpOf(name)).matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm);
      expect(replies[index], name).toEqual(Array.from(flags, ([, flag]) => flag));
    }
  });
});

test.each(['zsh', 'fish'])('the script for %s names every command and its flags', async (shell) => {
  const { out } = await ask(['completion', shell]);
  for (const name of await commandNames()) {
    expect(out).toContain(name);
    for (const [, flag = ''] of (await helpOf(name)).matchAll(/^ {2}(?:-\w, )?--([a-z-]+)/gm))
      expect(out).toContain(flag);
  }
});

test('zsh takes a value after an equals sign, and both complete a bot as a command of its own', async () => {
  const { out: zsh } = await ask(['completion', 'zsh']);
  expect(zsh).toContain("'--config=[");
  expect(zsh).not.toContain("'--embedded-exchange=[");
  expect(zsh).toContain('[[ $words[1] == -- ]] && { shift words; ((CURRENT--)) }; _normal');
  const { out: fish } = await ask(['completion', 'fish']);
  expect(fish).toContain('(complete -C (string replace -r ');
});

test('the manual has every command, variable and exit code, and nothing that roff would take for a request', async () => {
  const { out } = await ask(['man']);
  const lines = out.split('\n');
  const macros = /^\.(TH|SH|SS|TP|PP|br|BR)\b/;
  expect(lines.filter((line) => /^[.']/.test(line) && !macros.test(line))).toEqual([]);
  const text = out.replaceAll('\\-', '-');
  for (const name of await commandNames()) expect(text).toContain(`.SS ${name}\n`);
  for (const name of VARIABLE_NAMES) expect(text).toContain(`\\fB${name}\\fR`);
  for (const code of [0, 64, 69, 70, 75, 77, 78]) expect(text).toContain(`\\fB${code}\\fR`);
  expect(text).toContain('.PP\nexec ends with');
  const { out: file } = await ask(['man', 'killswitchd.yaml']);
  for (const key of ['exchange.baseUrls', 'markets[].timeoutSeconds', 'liveness.mode'])
    expect(file).toContain(`\\fB${key}\\fR`);
});

test.each([
  ['bogus', /^killswitchd: unknown command 'bogus'\nTry: killswitchd --help$/],
  ['rnu', /^killswitchd: unknown command 'rnu'\n\(Did you mean run\?\)\nTry: killswitchd --help$/],
  ['run --api-secret=abc', /^killswitchd run: unknown option '--api-secret'\n/],
  ['run --bogus', /^killswitchd run: unknown option '--bogus'\nTry: killswitchd run --help$/],
  [
    'pause',
    /^killswitchd pause: required option '--for <duration>' not specified\nTry: killswitchd pause --help$/,
  ],
  [
    'exchange --profile life',
    /^killswitchd exchange: .*'life' is invalid. Allowed choices are documented, live.\n/,
  ],
])('%s says which command it was, what is wrong, and where help is', async (line, says) => {
  const { code, out, err } = await run(line.split(' '));
  expect({ code, out, err: err.join('\n') }).toEqual({ code: 64, out: [], err: expect.stringMatching(says) });
});
