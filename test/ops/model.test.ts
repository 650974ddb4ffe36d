import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { scratch } from './scratch.ts';

const folder = scratch();
copyFileSync(join(import.meta.dirname, '../model/killswitch.pml'), join(folder, 'killswitch.pml'));

/** What spin says about the model of one market with these definitions: every state is visited. */
function check(definitions: readonly string[]): string {
  const flags = definitions.map((name) => `-D${name}`);
  const here = { cwd: folder, stdio: 'ignore' } as const;
  execFileSync('spin', [...flags, '-a', 'killswitch.pml'], here);
  execFileSync('gcc', ['-O1', '-DSAFETY', '-DCOLLAPSE', '-o', 'pan', 'pan.c'], here);
  const options = { cwd: folder, encoding: 'utf8', timeout: 110_000 } as const;
  return spawnSync(join(folder, 'pan'), ['-m500000'], options).stdout;
}

it.each([
  ['with rising nonces', ['WRITES=3']],
  ['in a nonce window, with a pause', ['WRITES=3', 'WINDOW', 'PAUSE']],
  ['in a nonce window, over two lives', ['WRITES=3', 'WINDOW', 'LIVES=2']],
])('the model keeps its promises %s', (_, definitions) => {
  const said = check(definitions);
  expect(said).toContain('errors: 0');
  expect(said).not.toContain('max search depth too small');
});

it.each([
  ['a delete does not wait for renewals', ['BUG_BESIDE']],
  ['a stop forgets requests of unknown outcome', ['WINDOW', 'BUG_STRAY']],
  ['evidence is checked before the write', ['BUG_GATE']],
  ['a confirmation forgets a delete that may still land', ['WINDOW', 'PAUSE', 'BUG_STRAYDEL']],
  ['a confirmation counts from its answer', ['WINDOW', 'PAUSE', 'BUG_ANSWER']],
  ['a new life forgets the one before it', ['WINDOW', 'LIVES=2', 'BUG_FORGET']],
  ['a stop deletes without new evidence', ['BUG_DEAD']],
])('the model finds that %s', (_, definitions) => {
  expect(check(['WRITES=4', ...definitions])).toContain('assertion violated');
});
