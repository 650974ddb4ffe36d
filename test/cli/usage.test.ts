import { expect, test } from 'vitest';
import { run } from './stage.ts';

test.each([
  ['bogus', /^killswitchd: unknown command 'bogus'\nTry: killswitchd --help$/],
  ['rnu', /^killswitchd: unknown command 'rnu'\n\(Did you mean run\?\)\nTry: killswitchd --help$/],
  ['run --bogus', /^killswitchd run: unknown option '--bogus'\nTry: killswitchd run --help$/],
  [
    'pause',
    /^killswitchd pause: required option '--for <duration>' not specified\nTry: killswitchd pause --help$/,
  ],
  [
    'exchange --profile life',
    /^killswitchd exchange: .*'life' is invalid. Allowed choices are documented, live.\nTry: /,
  ],
])('%s says which command it was, what is wrong, and where help is', async (line, says) => {
  const { code, out, err } = await run(line.split(' '));
  expect({ code, out, err: err.join('\n') }).toEqual({ code: 64, out: [], err: expect.stringMatching(says) });
});
