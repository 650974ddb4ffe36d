import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Loaded } from '../../src/config/load.ts';
import type { Command } from '../../src/config/meaning.ts';
import { ENVIRONMENT, load } from './fixture.ts';

/** `# TITLE`, `! MESSAGE` each, `> LINE` each that a terminal is shown, and what is loaded. */
const casesOf = (name: string) =>
  readFileSync(join(import.meta.dirname, name), 'utf8')
    .trimEnd()
    .split('\n\n# ')
    .map((text) => {
      const [title = '', ...lines] = text.replace(/^# /, '').split('\n');
      const marked = (mark: string) =>
        lines.filter((line) => line.startsWith(mark)).map((line) => line.slice(mark.length));
      const rest = lines.filter((line) => !/^[!>] /.test(line));
      return { title, messages: marked('! '), shown: marked('> '), rest };
    });
type Case = ReturnType<typeof casesOf>[number];

/** What is told, which lines a terminal is not shown, and a password that is. */
function toldOf(loaded: Loaded, { shown }: Case) {
  if (loaded.kind === 'ok') throw new Error('it was taken');
  const problems = loaded.problems.map((line) => line.replaceAll(/\S+\/killswitchd\.yaml:/g, 'FILE:'));
  const onTerminal = loaded.shown().join('\n');
  const password = /must.never.be.shown/.exec(JSON.stringify(loaded) + onTerminal);
  return { problems, missing: shown.filter((line) => !onTerminal.includes(line)), password };
}
const expectedOf = ({ messages }: Case) => ({ problems: messages, missing: [], password: null });

const WITHOUT_LIVENESS = 'exchange: { baseUrls: [https://exchange.example] }\nmarkets: [BTC_USDT]';

test.each(casesOf('mistakes-in-files.txt'))('a mistake in the file is told: $title', (one) => {
  const command = /\((run|exec)\)/.exec(one.title)?.[1] as Command | undefined;
  const text = one.rest
    .join('\n')
    .replace('(well)', `${WITHOUT_LIVENESS}\nliveness: { mode: none }`)
    .replace('(well but for liveness)', WITHOUT_LIVENESS);
  expect(toldOf(load(`${text}\n`, {}, {}, command), one)).toEqual(expectedOf(one));
});

test.each(casesOf('mistakes-in-variables.txt'))('a mistake in the environment is told: $title', (one) => {
  const env: Record<string, string> = { ...ENVIRONMENT, KILLSWITCHD_MARKETS: 'BTC_USDT' };
  for (const line of one.rest) {
    const [, without, name, value = ''] = /^(-?)(\w+)=?(.*)$/.exec(line) ?? [];
    if (without === '-') delete env[`KILLSWITCHD_${name}`];
    else env[`KILLSWITCHD_${name}`] = value.replace('\\n', '\n');
  }
  expect(toldOf(load(null, env), one)).toEqual(expectedOf(one));
});
