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

/** The flags of each command, as its help shows them. */
async function flagsOfAll() {
  const flags = new Map<string, string[]>();
  for (const name of await commandNames()) {
    const shown = (await helpOf(name)).matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm);
    flags.set(
      name,
      Array.from(shown, ([, flag = '']) => flag),
    );
  }
  return flags;
}

describe('bash completes', () => {
  test('commands, flags, and the values that are allowed', async () => {
    const offers = [
      ['', (await commandNames()).join(' ')],
      ['ch', 'check-config'],
      ['run --log-f', '--log-format'],
      ['run --log-format ', 'auto json journal text'],
      ['run --log-format = j', 'json journal'],
      ['run --liveness-mode ', 'beat file http none'],
      ['exec --liveness-mode ', 'beat process'],
      ['check-config --liveness-mode ', 'beat file http process none'],
      ['log-level d', 'debug'],
      ['api create', 'createStockMarketOrder createNewAddress'],
      ['exchange --profile l', 'live'],
    ] as const;
    const [bots, ...replies] = await offered(['exec -- bas', ...offers.map(([line]) => line)].map(wordsOf));
    expect(replies.map((reply) => reply.join(' '))).toEqual(offers.map(([, offer]) => offer));
    expect(bots).toContain('bash');
  });

  test('every flag that help shows', async () => {
    const flags = await flagsOfAll();
    const replies = await offered([...flags.keys()].map((name) => [name, '--']));
    expect(replies).toEqual([...flags.values()]);
  });
});

test.each([
  ['zsh', '[[ $words[1] == -- ]] && { shift words; ((CURRENT--)) }; _normal'],
  ['fish', '(complete -C (string replace -r '],
])(
  'the script for %s names every command and its flags, and completes a bot as a command',
  async (shell, bot) => {
    const { out } = await ask(['completion', shell]);
    expect(out).toContain(bot);
    for (const [name, flags] of await flagsOfAll())
      for (const word of [name, ...flags]) expect(out).toContain(word.replace('--', ''));
    // A value after an equals sign is for flags that take one.
    if (shell === 'zsh') expect(out).toMatch(/^(?![^]*'--embedded-exchange=\[)[^]*'--config=\[/);
  },
);

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
  expect(file).toContain('Allowed: a whole number from 5 to 600. Default: 60.');
  expect(file).toContain('Allowed: beat, file, http, process, none.');
});

test.each([
  ['bogus', "killswitchd: unknown command 'bogus'\nTry: killswitchd --help"],
  ['rnu', "killswitchd: unknown command 'rnu'\n(Did you mean run?)\nTry: killswitchd --help"],
  ['help runn', "killswitchd: unknown command 'runn'\n(Did you mean run?)\nTry: killswitchd --help"],
  [
    '--config=abc run',
    "killswitchd: unknown option '--config'\nOptions stand behind the command: killswitchd run --config ...\nTry:",
  ],
  ['run ok.yaml', 'but got 1: ok.yaml.\nA configuration file is named by an option: --config ok.yaml\nTry:'],
  ['check-config ok.yaml', 'A configuration file is named by an option: --config ok.yaml\n'],
  [
    'run --config a.yaml --config b.yaml',
    'killswitchd run: --config: found a second time; allowed: one file',
  ],
  ['run --api-secret=abc', "killswitchd run: unknown option '--api-secret'\nTry: killswitchd run --help"],
  [
    'pause',
    "killswitchd pause: required option '--for <duration>' not specified\nTry: killswitchd pause --help",
  ],
  [
    'exchange --seed --listen 127.0.0.1:0',
    '0.0.1:0.\nPerhaps --seed has no value, and took --listen for it.\nTry:',
  ],
  ['exchange --profile life', "'life' is invalid. Allowed choices are documented, live.\n"],
])('%s says which command it was, what is wrong, and where help is', async (line, says) => {
  const { code, out, err } = await run(line.split(' '));
  expect({ code, out, err: err.join('\n') }).toEqual({
    code: 64,
    out: [],
    err: expect.stringContaining(says),
  });
});
