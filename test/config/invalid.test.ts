import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { askedFor, loadFixture } from './fixture.ts';

const FOLDER = 'test/config';
const fixtures = readdirSync(FOLDER).filter((name) => name.startsWith('invalid-') && !name.endsWith('.ts'));

describe('a configuration with a mistake is refused, and the message says where, what, and what to write', () => {
  it.each(fixtures)('%s', (name) => {
    const path = `${FOLDER}/${name}`;
    const expected = askedFor(path, 'expect');
    expect(expected.length, 'the fixture says what it expects').toBeGreaterThan(0);
    const loaded = loadFixture(path);
    expect(loaded).toMatchObject({ kind: 'invalid', problems: expected });
    const shown = loaded.kind === 'invalid' ? loaded.shown().join('\n') : '';
    for (const line of askedFor(path, 'shown')) expect(shown).toContain(line);
    expect(JSON.stringify(loaded) + shown, 'no password is shown').not.toMatch(/must.never.be.shown/);
  });
});
