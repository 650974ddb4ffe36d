import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** Counts the modules that a process loads, by package, and writes them to standard error when it ends. */
const COUNTING = `
  import { registerHooks } from 'node:module';
  const counts = {};
  registerHooks({
    load(url, context, next) {
      const name = /.*node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1] ?? 'none';
      counts[name] = (counts[name] ?? 0) + 1;
      return next(url, context);
    },
  });
  process.on('exit', () => console.error('counted ' + JSON.stringify(counts)));
`;

function modulesOf(...command: string[]): Readonly<Record<string, number>> {
  const counting = `data:text/javascript,${encodeURIComponent(COUNTING)}`;
  const { stderr } = spawnSync(process.execPath, ['--import', counting, 'src/main.ts', ...command], {
    encoding: 'utf8',
  });
  return JSON.parse(/^counted (.*)$/m.exec(stderr)?.[1] ?? '{}') as Record<string, number>;
}

test('the daemon reads no package before its first timer that it arms none with', () => {
  // All is loaded before the configuration is looked at.
  const loaded = modulesOf('run', '--config', 'no-such-file.yaml');
  expect(loaded).toMatchObject({ fastify: expect.any(Number), 'prom-client': expect.any(Number) });
  expect(Object.keys(loaded)).not.toContain('typebox');
});
