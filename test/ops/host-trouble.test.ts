import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  globSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { beginGuard, guard, stageFor } from '../process/harness.ts';
import { endBy, eventually, sleep } from '../process/program.ts';
import { longestGapDuring, ofKind } from '../process/simulated-exchange.ts';

/** Mounts a file system that does not answer; whatever waits for it is freed with the test. */
async function mountHung({ onTestFinished }: TestContext, directory: string): Promise<string> {
  const folder = join(directory, 'hung');
  mkdirSync(folder);
  const server = spawn('python3', [join(import.meta.dirname, 'hung-mount.py'), folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => {
    server.kill('SIGKILL');
    execFileSync('umount', ['-l', folder]);
  });
  await once(server.stdout, 'data');
  return folder;
}

/** A daemon of bots that touch files: one that does so until the test is over, and those whose files hang from the start. */
async function play(context: TestContext, hung: readonly string[], config: object = {}) {
  const { directory } = stageFor(context);
  const folder = await mountHung(context, directory);
  const at = (name: string) => join(directory, name);
  for (const bot of hung) symlinkSync(join(folder, bot), at(`${bot}.alive`));
  const touch = () => writeFileSync(at('well.alive'), '');
  touch();
  const touching = setInterval(touch, 500);
  context.onTestFinished(() => clearInterval(touching));
  const [urlFile, tokenFile] = [at('url'), at('token')];
  writeFileSync(urlFile, 'http://127.0.0.1:9/');
  writeFileSync(tokenFile, 'a-token-of-24-characters');
  const guarded = await beginGuard(context, {
    exchangeFlags: [],
    markets: [...hung, 'well'].map((bot) => ({ market: `${bot.toUpperCase()}_USDT`, bot })),
    timeoutSeconds: 5,
    config: {
      reload: { pollSeconds: 3 },
      control: { listen: ['127.0.0.1:0'], tokenFile },
      notify: { urlFile },
      liveness: { mode: 'file', file: at('{bot}.alive'), ttlSeconds: 5, probeEverySeconds: 1, ...config },
    },
  });
  const hang = (...files: readonly string[]) => {
    for (const file of files) {
      rmSync(file);
      symlinkSync(join(folder, 'file'), file);
    }
  };
  return { ...guarded, urlFile, tokenFile, hang };
}

test.concurrent('files of bots on a file system that hangs cost no other bot its timer', async (context) => {
  const hung = Array.from({ length: 8 }, (_, index) => `hung${index}`);
  const { exchange, daemon } = await play(context, hung, { startupGraceSeconds: 5 });
  await exchange.event('timer-fired', 40_000, ({ market }) => market === 'HUNG0_USDT');
  await sleep(5000);
  expect(ofKind(await exchange.events(), 'timer-fired', 'WELL_USDT')).toEqual([]);
  daemon.signal('SIGTERM');
  expect(await daemon.exit(15_000)).toMatchObject({ code: 0 });
});

test.concurrent('a file system that begins to hang while a reload is under way holds up no renewal', async (context) => {
  const { daemon, exchange, hang } = await play(context, []);
  await daemon.ready();
  const gapMs = await longestGapDuring(exchange, ['WELL_USDT'], async () => {
    daemon.signal('SIGHUP');
    // Between the two looks at the file.
    await sleep(50);
    hang(daemon.secretFile, daemon.configFile);
    await sleep(7000);
  });
  expect(gapMs).toBeLessThan(3000);
});

test.concurrent.for([
  ['the configuration', ['configFile']],
  ['a file with an address', ['urlFile']],
  ['every file that a reload reads', ['keyFile', 'secretFile', 'tokenFile', 'urlFile', 'configFile']],
] as const)(
  'a file system that hangs under %s holds up no renewal, no sign of life and no stop',
  async ([, names], context) => {
    const { daemon, exchange, hang, urlFile, tokenFile } = await play(context, []);
    await daemon.ready();
    const { configFile, secretFile } = daemon;
    const keyFile = join(dirname(secretFile), 'api-key');
    const files = { configFile, urlFile, keyFile, secretFile, tokenFile };
    hang(...names.map((name) => files[name]));
    const gapMs = await longestGapDuring(exchange, ['WELL_USDT'], async () => {
      daemon.signal('SIGHUP');
      await eventually('the refusal of the reload', 20_000, () => daemon.logged('reload-rejected')[0]);
      await sleep(8000);
    });
    expect(gapMs).toBeLessThan(3000);
    expect([ofKind(await exchange.events(), 'timer-fired'), daemon.logged('bot-stale')]).toEqual([[], []]);
    daemon.signal('SIGTERM');
    expect((await daemon.exit(10_000)).code).toBe(0);
  },
);

test('a log on a full disk comes back when there is room, whole, and errors go to standard error meanwhile', async (context) => {
  const disk = join(stageFor(context).directory, 'disk');
  mkdirSync(disk);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', disk]);
  const log = join(disk, 'log');
  const descriptor = openSync(log, 'a');
  context.onTestFinished(() => {
    closeSync(descriptor);
    execFileSync('umount', ['-l', disk]);
  });
  // Of one market alone it would not be an outage.
  const markets = ['AAA_USDT', 'BBB_USDT'];
  const { exchange, daemon } = await beginGuard(context, {
    exchangeFlags: [],
    markets,
    timeoutSeconds: 5,
    config: { log: { level: 'debug' } },
    stdout: descriptor,
  });
  const lines = () => readFileSync(log, 'utf8').split('\n').slice(0, -1);
  await eventually('a renewal in the log', 15_000, () => lines().length > 20);

  const filler = join(disk, 'filler');
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(filler, Buffer.alloc(bavail * bsize));
  const gapMs = await longestGapDuring(exchange, markets, async () => {
    await sleep(4000);
    const full = lines().length;
    await sleep(1500);
    expect(lines().length).toBe(full);
  });
  expect(gapMs).toBeLessThan(3000);
  await exchange.addFaults({ kind: 'hang', mode: 'drop' });
  await eventually('the outage on standard error', 10_000, () => daemon.stderr().includes('"outage-began"'));
  await exchange.clearFaults();

  rmSync(filler);
  await eventually('the end of the outage in the log', 10_000, () =>
    lines().join().includes('"outage-ended"'),
  );
  expect(lines().filter((line) => !/^\{.*\}$/.test(line))).toEqual([]);
  expect(lines().join()).toContain('"outage-began"');
  expect(await endBy(daemon)).toBe(0);
});

/** Where Debian's package `faketime` puts it. */
const [LIBRARY] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1');

test('the wall clock is set by hours under the running daemon, and no renewal is late', async (context) => {
  const clockFile = join(stageFor(context).directory, 'clock');
  const setBy = (seconds: number) => writeFileSync(clockFile, `${seconds < 0 ? '' : '+'}${seconds}\n`);
  setBy(0);
  const { exchange, daemon } = await guard(context, {
    exchangeFlags: [],
    markets: ['AAA_USDT'],
    env: {
      LD_PRELOAD: LIBRARY ?? 'faketime is not installed',
      FAKETIME_TIMESTAMP_FILE: clockFile,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  });
  const gapMs = await longestGapDuring(exchange, ['AAA_USDT'], async () => {
    for (const seconds of [3600, -3600, 0, 300, -300]) {
      setBy(seconds);
      await sleep(4000);
    }
  });
  await daemon.ready();

  expect(daemon.logged('clock-step').length).toBeGreaterThanOrEqual(5);
  // The cadence at T = 10 is 1 s; a timer would have lapsed after 10.
  expect(gapMs).toBeLessThan(3000);
  expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
  expect([daemon.logged('lapsed'), daemon.logged('overdue')]).toEqual([[], []]);
  expect(await endBy(daemon)).toBe(0);
  expect(ofKind(await exchange.events(), 'timer-deleted')).toHaveLength(1);
});
