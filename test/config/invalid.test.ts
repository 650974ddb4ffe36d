import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { expectedOf, loadFixture, shownOf } from './fixture.ts';

const FOLDER = 'test/config';
const fixtures = readdirSync(FOLDER).filter((name) => name.startsWith('invalid-') && !name.endsWith('.ts'));

describe('a configuration with a mistake is refused, and the message says where, what, and what to write', () => {
  it.each(fixtures)('%s', (name) => {
    const path = `${FOLDER}/${name}`;
    const expected = expectedOf(path);
    expect(expected.length, 'the fixture says what it expects').toBeGreaterThan(0);
    const loaded = loadFixture(path);
    expect(loaded).toMatchObject({ kind: 'invalid', problems: expected });
    const shown = loaded.kind === 'invalid' ? loaded.shown.join('\n') : '';
    for (const line of shownOf(path)) expect(shown).toContain(line);
    expect(JSON.stringify(loaded), 'no password is shown').not.toMatch(/must.never.be.shown/);
  });

  it('covers every kind of mistake that the daemon promises to explain', () => {
    for (const kind of [
      'unknown-key.yaml',
      'unknown-variable.env',
      'timeout-4.yaml',
      'timeout-601.yaml',
      'timeout-60s.yaml',
      'duplicate-market.yaml',
      'malformed-market.yaml',
      'empty-market-list.yaml',
      'unknown-order-type.yaml',
      'missing-liveness-mode.yaml',
      'base-http.yaml',
      'key-missing.env',
      'secret-missing.env',
      'cadence-too-slow.yaml',
      'several.yaml',
    ]) {
      expect(fixtures).toContain(`invalid-${kind}`);
    }
  });
});
