import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { threadCpuUsage } from 'node:process';
import { afterAll, describe, expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { type LoadOptions, loadConfig } from '../../src/config/load.ts';
import { loadAside } from '../../src/config/load-aside.ts';

const folder = mkdtempSync(join(tmpdir(), 'load-aside-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const HEAD = 'exchange: { baseUrls: [http://127.0.0.1:1] }\nliveness: { mode: none }\nmarkets:\n';
const marketsOf = (count: number, timeoutSeconds = 600): string =>
  Array.from(
    { length: count },
    (_, index) => `  - { market: M${index}_USDT, timeoutSeconds: ${timeoutSeconds} }\n`,
  ).join('');

function fileWith(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}
const secretFile = fileWith('secret', 'the-secret-of-the-test\n');
const tokenFile = fileWith('token', 'the-token-of-the-test\n');

function optionsFor(file: string): LoadOptions {
  const env = {
    KILLSWITCHD_API_KEY: 'the-key-of-the-test',
    KILLSWITCHD_API_SECRET_FILE: secretFile,
    KILLSWITCHD_CONFIG: file,
    OTHER: 'not for the worker',
  };
  return { env, flags: {}, command: 'run' };
}

/** Everything of a configuration as plain values, secrets as well. */
function plain(config: Config) {
  const { secrets, control } = config;
  return {
    ...config,
    secrets: [
      secrets.apiKey.reveal(),
      secrets.apiKey.origin,
      secrets.apiSecret.reveal(),
      secrets.apiSecret.origin,
    ],
    control: [control.listen, control.tokenFile, control.token?.reveal(), String(control.token)],
  };
}

describe('a configuration that is read on a thread of its own', { timeout: 60_000 }, () => {
  const control = `control: { listen: ["127.0.0.1:0", "unix:${folder}/s"], tokenFile: ${tokenFile} }\n`;

  test.each([
    ['small', 3],
    ['large', 1000],
  ])('is the same as one that is read at once: %s', async (name, count) => {
    const options = optionsFor(fileWith(`${name}.yaml`, HEAD + marketsOf(count) + control));
    const [atOnce, aside] = [loadConfig(options), await loadAside(options)];
    if (atOnce.kind !== 'ok' || aside.kind !== 'ok') throw new Error('not read');
    expect(plain(aside.config)).toEqual(plain(atOnce.config));
    expect(JSON.stringify(aside)).not.toContain('the-token-of-the-test');
  });

  test('has the same mistakes, and shows no secret', async () => {
    const wrong = `${HEAD}${marketsOf(1000)}  - M7_USDT\n  - the-key-of-the-test\nmarket: 5\nweb: { listen: [x] }\n`;
    const options = optionsFor(fileWith('wrong.yaml', wrong));
    const aside = await loadAside(options);
    expect(aside).toEqual(loadConfig(options));
    expect(aside).toMatchObject({ kind: 'invalid' });
    expect(JSON.stringify(aside)).not.toContain('the-key-of-the-test');
    const broken = optionsFor(fileWith('broken.yaml', `${HEAD}${marketsOf(1000)}  - {`));
    expect(await loadAside(broken)).toEqual(loadConfig(broken));
  });

  test('that is not there, or not to be read, is told as ever', async () => {
    for (const file of [join(folder, 'none.yaml'), folder]) {
      const options = optionsFor(file);
      expect(await loadAside(options)).toEqual(loadConfig(options));
    }
  });

  test('costs this thread a small part of what ten thousand markets take', {
    timeout: 60_000,
  }, async () => {
    const options = optionsFor(fileWith('huge.yaml', HEAD + marketsOf(10_000)));
    const cpuMs = async (work: () => unknown): Promise<number> => {
      const before = threadCpuUsage();
      await work();
      const { user, system } = threadCpuUsage(before);
      return (user + system) / 1000;
    };
    const atOnceMs = await cpuMs(() => loadConfig(options));
    // What a host takes away counts as CPU time of its guest: one of the three may be spoilt by it.
    const asideMs: number[] = [];
    for (let round = 0; round < 3; round += 1) asideMs.push(await cpuMs(() => loadAside(options)));
    expect(asideMs.toSorted((one, other) => one - other)[1]).toBeLessThan(atOnceMs / 4);
  });
});
