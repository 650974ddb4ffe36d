import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { recipe } from '../docs/sections.ts';
import { startProcess } from '../liveness/started.ts';
import { type Stage, stageFor } from '../process/harness.ts';
import { eventually, ROOT } from '../process/program.ts';
import { DEMO, type RunningExchange } from '../process/simulated-exchange.ts';
import { npmInstall } from './npm-install.ts';

const run = promisify(execFile);
const PM2 = 'pm2@7.0.4';
const MINUTES_MS = 60_000;

/** A folder as the user of a recipe has it: configuration, key, the example bot, and the command. */
function homeFor(stage: Stage, exchange: RunningExchange, control: string) {
  const home = join(stage.directory, 'home');
  const config = join(home, '.config/killswitchd');
  const bin = join(home, '.local/bin');
  for (const folder of [config, bin, join(home, 'bot')]) mkdirSync(folder, { recursive: true });
  const text = JSON.stringify({
    exchange: { baseUrls: [exchange.url] },
    markets: [{ market: 'BTC_USDT', timeoutSeconds: 5 }],
    liveness: { mode: 'beat', ttlSeconds: 5 },
    control: { listen: [control] },
    web: { listen: [] },
  });
  for (const folder of [config, home]) writeFileSync(join(folder, 'killswitchd.yaml'), text);
  writeFileSync(join(config, 'api-key'), `${DEMO.key}\n`, { mode: 0o600 });
  writeFileSync(join(config, 'api-secret'), `${DEMO.secret}\n`, { mode: 0o600 });
  const program = `#!/bin/sh\nexec "${process.execPath}" "${ROOT}/src/main.ts" "$@"\n`;
  writeFileSync(join(bin, 'killswitchd'), program, { mode: 0o755 });
  for (const folder of [home, join(home, 'bot')]) {
    copyFileSync(join(ROOT, 'config/clients/bot.py'), join(folder, 'bot.py'));
    copyFileSync(join(ROOT, 'clients/python/killswitchd.py'), join(folder, 'killswitchd.py'));
  }
  const key = {
    KILLSWITCHD_API_KEY_FILE: join(config, 'api-key'),
    KILLSWITCHD_API_SECRET_FILE: join(config, 'api-secret'),
  };
  return { home, bin, key };
}

test('pm2 runs daemon and bot by the recipe: stopping the bot deletes the timers, a killed one is started again', {
  timeout: 5 * MINUTES_MS,
}, async (context) => {
  const stage = stageFor(context);
  const control = `unix:${join(stage.directory, 'control.sock')}`;
  const exchange = await stage.exchangeProcess();
  const { home, bin, key } = homeFor(stage, exchange, control);
  await npmInstall(join(stage.directory, 'pm2'), PM2);
  const [ecosystem = ''] = recipe('pm2', 'js');
  const text = ecosystem.replaceAll('unix:/run/killswitchd/control.sock', control);
  writeFileSync(join(home, 'ecosystem.config.cjs'), text);
  const env = {
    ...key,
    PATH: `${bin}:${process.env['PATH'] ?? ''}`,
    HOME: home,
    PM2_HOME: join(stage.directory, 'pm2-home'),
  };
  const pm2 = async (...args: readonly string[]) => {
    const bins = join(stage.directory, 'pm2/node_modules/.bin/pm2');
    return (await run(bins, args, { cwd: home, env, timeout: MINUTES_MS })).stdout;
  };
  const trades = (times: number) =>
    eventually(`bot ${times} that trades`, MINUTES_MS, () => {
      const log = join(env.PM2_HOME, 'logs/bot-out.log');
      const said = existsSync(log) ? readFileSync(log, 'utf8') : '';
      return said.match(/^armed: orders may go out/gm)?.length === times;
    });
  try {
    await pm2('start', 'ecosystem.config.cjs');
    await trades(1);
    const pid = Number(await pm2('pid', 'bot'));
    process.kill(pid, 'SIGKILL');
    await eventually('another bot', MINUTES_MS, async () => {
      const next = Number(await pm2('pid', 'bot'));
      return next > 0 && next !== pid;
    });
    await trades(2);
    await pm2('stop', 'bot');
    expect(await exchange.event('timer-deleted', MINUTES_MS)).toMatchObject({ market: 'BTC_USDT' });
    await pm2('stop', 'killswitchd');
  } finally {
    await pm2('kill');
  }
});

test('the units of systemd --user pass systemd-analyze, and what they start guards the bot and ends in order', {
  timeout: 3 * MINUTES_MS,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchangeProcess();
  const runtime = join(stage.directory, 'runtime');
  mkdirSync(join(runtime, 'killswitchd'), { recursive: true });
  const control = `unix:${runtime}/killswitchd/control.sock`;
  const { home } = homeFor(stage, exchange, control);
  const units = recipe('systemd --user', 'ini').map((unit) =>
    unit.replaceAll('%h', home).replaceAll('%t', runtime),
  );
  const folder = join(stage.directory, 'units');
  mkdirSync(folder);
  const files = ['killswitchd', 'bot'].map((name, index) => {
    const file = join(folder, `${name}.service`);
    writeFileSync(file, units[index] ?? '');
    return file;
  });
  const env = { PATH: process.env['PATH'], HOME: home, XDG_RUNTIME_DIR: runtime };
  const verified = await run('systemd-analyze', ['verify', '--user', '--man=no', ...files], { env });
  expect(verified.stderr.split('\n').filter((line) => line.includes(folder))).toEqual([]);
  const start = (unit = '') => {
    const pairs = [...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]);
    const [program = '', ...args] = (/^ExecStart=(.*)$/m.exec(unit)?.[1] ?? '').split(' ');
    return startProcess(context, program, args, Object.fromEntries(pairs));
  };
  const daemon = start(units[0]);
  const waits = start(units[1]?.replace(/^ExecStart=.*\n/m, '').replace('ExecStartPre=', 'ExecStart='));
  expect(await waits.ended).toEqual([0, null]);
  const bot = start(units[1]);
  await eventually('a guarded bot', MINUTES_MS, () => bot?.output().includes('armed: orders may go out'));
  bot?.signal('SIGTERM');
  expect(await bot?.ended).toEqual([0, null]);
  await exchange.event('timer-deleted', 10_000);
  daemon?.signal('SIGTERM');
  expect(await daemon?.ended).toEqual([0, null]);
});
