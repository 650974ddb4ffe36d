import { describe, expect, test } from 'vitest';
import { EXIT } from '../../src/cli/edge.ts';
import { ask } from '../docs/program.ts';

describe('a command line that makes no sense says which command it was, what is wrong, and where help is:', () => {
  test.each([
    [['bogus'], ["killswitchd: unknown command 'bogus'", 'Try: killswitchd --help']],
    [['rnu'], ["killswitchd: unknown command 'rnu'", '(Did you mean run?)', 'Try: killswitchd --help']],
    [
      ['run', '--bogus'],
      ["killswitchd run: unknown option '--bogus'", 'Try: killswitchd run --help'],
    ],
    [
      ['pause'],
      [
        "killswitchd pause: required option '--for <duration>' not specified",
        'Try: killswitchd pause --help',
      ],
    ],
    [
      ['exchange', '--profile', 'life'],
      [
        "killswitchd exchange: option '--profile <profile>' argument 'life' is invalid. Allowed choices are documented, live.",
        'Try: killswitchd exchange --help',
      ],
    ],
    [['api'], [expect.stringMatching(/^killswitchd api: no operation is named; allowed: .*ping$/)]],
  ])('%j', async (args, lines) => {
    const { out, err, exitCode } = await ask(args);
    expect({ out, err: err.split('\n'), exitCode }).toEqual({ out: '', err: lines, exitCode: EXIT.usage });
  });
});
