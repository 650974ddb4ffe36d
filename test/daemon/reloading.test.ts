import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { createReloading } from '../../src/daemon/reloading.ts';
import type { Operations } from '../../src/daemon/telling.ts';
import type { ReloadReport } from '../../src/operator/control-sources.ts';
import { createHandClock } from '../exchange/servers.ts';

const FIRST = { token: '0123456789abcdef'.repeat(2), key: 'key-0123456789', secret: 'secret-0123456789' };
const URL = 'https://notify.example/the/whole/path';

/** Versions of all files of a pod in one folder, as the kubelet puts them there: a link turned in one step. */
function createVolume() {
  const folder = mkdtempSync(join(tmpdir(), 'killswitchd-volume-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  let version = 0;
  const publish = (files: Readonly<Record<string, string>>) => {
    version += 1;
    const own = `..${version}`;
    mkdirSync(join(folder, own));
    for (const [name, text] of Object.entries(files))
      writeFileSync(join(folder, own, name), text, { mode: 0o600 });
    symlinkSync(own, join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
  };
  return { publish, at: (name: string) => join(folder, '..data', name) };
}

/** Reloading on a clock set by hand, over real files: of the configuration, key, secret, token and two addresses. */
function play() {
  const clock = createHandClock(1_700_000_000_000);
  const { publish, at } = createVolume();
  const control = { listen: ['127.0.0.1:17481'], tokenFile: at('token') };
  const content = (notify: object = {}) =>
    JSON.stringify({
      exchange: { baseUrls: ['https://exchange.example'] },
      markets: ['BTC_USDT'],
      liveness: { mode: 'beat' },
      control,
      notify,
    });
  const first = { ...FIRST, config: content() };
  publish(first);
  const env = { KILLSWITCHD_API_KEY_FILE: at('key'), KILLSWITCHD_API_SECRET_FILE: at('secret') };
  const load = () => loadConfig({ env, flags: { config: at('config') } });
  const loaded = load();
  if (loaded.kind !== 'ok') expect.fail(loaded.problems.join());
  let { config } = loaded;
  const problems: string[] = [];
  const reloading = createReloading({
    clock,
    operations: {
      reloadApplied() {},
      reloadUnchanged() {},
      reloadRejected: (_trigger: string, found: readonly string[]) => void problems.push(...found),
    } as unknown as Operations,
    supervision: null,
    config: () => config,
    fileHash: loaded.fileHash,
    filesAnswer: async () => true,
    load,
    secretFiles: ({ notify: { urlFile } }) =>
      ['key', 'secret', 'token'].map(at).concat(urlFile === null ? [] : urlFile),
    apply: (next) => {
      config = next;
    },
    keeper: { settled: async () => [] },
    hide: (text) => text,
  });
  /** Lets so much time pass, in steps in which everything that is due is done. */
  async function pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 50) {
      clock.advance(50);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  /** Begins a reload, and tells what came of it so far. */
  function reload() {
    let report: ReloadReport | null = null;
    void reloading.reload('signal', 0).then((told) => {
      report = told;
    });
    return () => report?.kind ?? null;
  }
  return {
    pass,
    reload,
    content,
    at,
    problems,
    publish: (files: Readonly<Record<string, string>>) => publish({ ...first, ...files }),
    inForce: () => {
      const { control, secrets, notify } = config;
      const { apiKey, apiSecret } = secrets;
      const [token, key, secret] = [control.token, apiKey, apiSecret].map((one) => one?.reveal());
      return { token, key, secret, url: notify.url?.reveal() ?? null };
    },
  };
}

test('takes two looks where nothing has changed', async () => {
  const { pass, reload } = play();
  const outcome = reload();
  await pass(150);
  expect(outcome()).toBe('unchanged');
});

test.each(['token', 'key', 'secret'] as const)(
  'waits for the rest of a %s that is half written',
  async (name) => {
    const { pass, reload, at, inForce } = play();
    const next = `next-${FIRST[name]}`;
    writeFileSync(at(name), next.slice(0, -4));
    const outcome = reload();
    await pass(900);
    writeFileSync(at(name), next);
    await pass(900);
    expect(outcome()).toBe(null);
    await pass(300);
    expect(outcome()).toBe('applied');
    expect(inForce()).toEqual({ ...FIRST, url: null, [name]: next });
  },
);

test('takes the last of two versions of a volume that follow each other, and not a mixture', async () => {
  const { pass, reload, publish, inForce } = play();
  const last = { key: 'key-of-version-3', secret: 'secret-of-version-3', token: 'token-of-version-3' };
  publish({ ...last, token: 'token-of-version-2' });
  const outcome = reload();
  await pass(500);
  publish(last);
  await pass(1300);
  expect(outcome()).toBe('applied');
  expect(inForce()).toEqual({ ...last, url: null });
});

test('waits for the rest of a file that only the new configuration names', async () => {
  const { pass, reload, publish, content, at, inForce } = play();
  publish({ config: content({ urlFile: at('url') }), url: URL.slice(0, -5) });
  const outcome = reload();
  await pass(700);
  writeFileSync(at('url'), URL);
  await pass(1500);
  expect(outcome()).toBe('applied');
  expect(inForce()).toMatchObject({ url: URL });
});

test('gives up on a file that somebody writes again and again, and changes nothing', async () => {
  const { pass, reload, at, problems, inForce } = play();
  const outcome = reload();
  for (let round = 0; round < 120; round += 1) {
    writeFileSync(at('token'), `${FIRST.token}${round}`);
    await pass(50);
  }
  expect(outcome()).toBe('rejected');
  expect(problems).toEqual([expect.stringContaining('or that of a secret or of a token, is being written')]);
  expect(inForce()).toEqual({ ...FIRST, url: null });
});
