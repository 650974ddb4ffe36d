import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { stageFor } from '../process/harness.ts';
import { eventually, sleep } from '../process/program.ts';
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
  const stage = stageFor(context);
  const folder = await mountHung(context, stage.directory);
  const at = (name: string) => join(stage.directory, name);
  for (const bot of hung) symlinkSync(join(folder, bot), at(`${bot}.alive`));
  const touch = () => writeFileSync(at('well.alive'), '');
  touch();
  const touching = setInterval(touch, 500);
  context.onTestFinished(() => clearInterval(touching));
  const [urlFile, tokenFile] = [at('url'), at('token')];
  writeFileSync(urlFile, 'http://127.0.0.1:9/');
  writeFileSync(tokenFile, 'a-token-of-24-characters');
  const exchange = await stage.exchangeProcess();
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: [...hung, 'well'].map((bot) => {
      return { market: `${bot.toUpperCase()}_USDT`, timeoutSeconds: 5, bot };
    }),
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
  return { exchange, daemon, urlFile, tokenFile, hang };
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
