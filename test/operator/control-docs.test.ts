import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ControlRefusal, REFUSALS } from '../../src/operator/control-sources.ts';
import { asker, createSpy, messageOf, start } from './control-fixture.ts';

const document = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'http.md'), 'utf8');
const section = document.split(/^## /m).find((text) => text.startsWith('The control listener')) ?? '';

test('docs/http.md lists every endpoint of the control listener with its method, and no other', async () => {
  const ask = asker((await start(createSpy())).addresses[0]);
  const [, allowed = ''] = /allowed: ([^;]*)/.exec(messageOf(await ask('/nothing-like-it'))) ?? [];
  const rows = [...section.matchAll(/^\| `(GET|POST) (\/v1\/[a-z-]+)` +\|/gm)];
  expect(rows.map(([, , path = '']) => path).toSorted()).toEqual(allowed.split(', ').toSorted());
  for (const [, method, path = ''] of rows) {
    const { status } = await ask(path, { method: method === 'GET' ? 'GET' : 'POST' });
    expect(status, path).not.toBe(405);
  }
});

test('docs/http.md lists every refusal with its status, once', () => {
  const rows = [...section.matchAll(/^\| (\d{3}) +\| `([a-z_]+)` +\|/gm)];
  const expected = REFUSALS.map((code) => `${new ControlRefusal(code, '').status} ${code}`);
  expect(rows.map(([, status, code]) => `${status} ${code}`).toSorted()).toEqual(expected.toSorted());
});

test('docs/http.md shows a reply to a beat as it is made', async () => {
  const shown = /^```json\n([\s\S]*?)^```/m.exec(section)?.[1] ?? '';
  const { body } = await asker((await start(createSpy())).addresses[0])('/v1/beat?bot=main');
  const keysOf = (value: unknown): unknown =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).map(([key, inner]) => [key, keysOf(inner)])
      : typeof value;
  expect(keysOf(JSON.parse(shown))).toEqual(keysOf(body));
});
