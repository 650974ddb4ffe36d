import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { stageFor } from '../process/harness.ts';
import { eventually, sleep } from '../process/program.ts';
import { linesOf } from '../process/reloading.ts';
import { longestGapMs, ofKind } from '../process/simulated-exchange.ts';

/** Mounts a file system at `folder` that does not answer; whatever waits for it is freed with the test. */
async function mountHung({ onTestFinished }: TestContext, folder: string): Promise<void> {
  mkdirSync(folder);
  const server = spawn('python3', [join(import.meta.dirname, 'hung-mount.py'), folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => {
    server.kill('SIGKILL');
    execFileSync('umount', ['-l', folder]);
  });
  await once(server.stdout, 'data');
}

/** A file that somebody touches until the test is over. */
function keepTouched({ onTestFinished }: TestContext, file: string): string {
  const touch = () => writeFileSync(file, '');
  touch();
  const touching = setInterval(touch, 500);
  onTestFinished(() => clearInterval(touching));
  return file;
}

/** A daemon of a bot that touches a file, and a way to have its files lie on a file system that hangs. */
async function play(context: TestContext) {
  const stage = stageFor(context);
  const folder = join(stage.directory, 'hung');
  await mountHung(context, folder);
  const file = (name: string, text: string) => {
    writeFileSync(join(stage.directory, name), text);
    return join(stage.directory, name);
  };
  const urlFile = file('url', 'http://127.0.0.1:9/');
  const tokenFile = file('token', 'a-token-of-24-characters');
  const alive = keepTouched(context, join(stage.directory, 'alive'));
  const exchange = await stage.exchangeProcess();
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: [{ market: 'AAA_USDT', timeoutSeconds: 5 }],
    config: {
      reload: { pollSeconds: 3 },
      control: { listen: ['127.0.0.1:0'], tokenFile },
      notify: { urlFile },
      liveness: { mode: 'file', file: alive, ttlSeconds: 5, probeEverySeconds: 1 },
    },
  });
  await daemon.ready();
  const hang = (...files: readonly string[]) => {
    for (const file of files) {
      rmSync(file);
      symlinkSync(join(folder, 'file'), file);
    }
  };
  return { exchange, daemon, urlFile, tokenFile, hang };
}

test.concurrent('files of bots on a file system that hangs cost no other bot its timer', async (context) => {
  const stage = stageFor(context);
  const folder = join(stage.directory, 'hung');
  await mountHung(context, folder);
  const hung = Array.from({ length: 8 }, (_, index) => `hung${index}`);
  const fileOf = (bot: string) => join(stage.directory, `${bot}.alive`);
  for (const bot of hung) symlinkSync(join(folder, bot), fileOf(bot));
  keepTouched(context, fileOf('well'));
  const exchange = await stage.exchangeProcess();
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: [...hung, 'well'].map((bot) => ({
      market: `${bot.toUpperCase()}_USDT`,
      timeoutSeconds: 5,
      bot,
    })),
    config: {
      liveness: {
        mode: 'file',
        file: join(stage.directory, '{bot}.alive'),
        ttlSeconds: 5,
        startupGraceSeconds: 5,
        probeEverySeconds: 1,
      },
    },
  });
  await exchange.event('timer-fired', 40_000, ({ market }) => market === 'HUNG0_USDT');
  await sleep(5000);
  expect(ofKind(await exchange.events(), 'timer-fired', 'WELL_USDT')).toEqual([]);
  daemon.signal('SIGTERM');
  expect(await daemon.exit(15_000)).toMatchObject({ code: 0 });
});

test.concurrent('a file system that begins to hang while a reload is under way holds up no renewal', async (context) => {
  const { daemon, exchange, hang } = await play(context);
  const fromMs = await exchange.nowMs();
  daemon.signal('SIGHUP');
  // Between the two looks at the file.
  await sleep(50);
  hang(daemon.secretFile, daemon.configFile);
  await sleep(7000);
  const toMs = await exchange.nowMs();
  expect(longestGapMs(await exchange.events(), 'AAA_USDT', fromMs, toMs)).toBeLessThan(3000);
});

test.concurrent.for([
  ['the configuration', ['configFile']],
  ['a file with an address', ['urlFile']],
  ['every file that a reload reads', ['keyFile', 'secretFile', 'tokenFile', 'urlFile', 'configFile']],
] as const)(
  'a file system that hangs under %s holds up no renewal, no sign of life and no stop',
  async ([, names], context) => {
    const { daemon, exchange, hang, urlFile, tokenFile } = await play(context);
    const { configFile, secretFile } = daemon;
    const keyFile = join(dirname(secretFile), 'api-key');
    const files = { configFile, urlFile, keyFile, secretFile, tokenFile };
    hang(...names.map((name) => files[name]));
    const fromMs = await exchange.nowMs();
    daemon.signal('SIGHUP');
    await eventually('the refusal of the reload', 20_000, () => linesOf(daemon, 'reload-rejected') > 0);
    await sleep(8000);
    const toMs = await exchange.nowMs();
    const events = await exchange.events();
    expect(longestGapMs(events, 'AAA_USDT', fromMs, toMs)).toBeLessThan(3000);
    expect([ofKind(events, 'timer-fired'), daemon.logged('bot-stale')]).toEqual([[], []]);
    daemon.signal('SIGTERM');
    expect((await daemon.exit(10_000)).code).toBe(0);
  },
);
