import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { exampleListen } from '../deploy/example-config.ts';
import { stageFor } from '../process/harness.ts';
import { ROOT } from '../process/program.ts';
import { commandsUnder } from './deploy-guide.ts';

const FOLDER = join(ROOT, 'deploy/systemd');
const UNITS = ['killswitchd@.service', 'trading-bot.service', 'killswitchd-exchange.service'];
const [DAEMON = '', BOT = '', EXCHANGE = ''] = UNITS.map((name) => readFileSync(join(FOLDER, name), 'utf8'));
const ALL = [DAEMON, BOT, EXCHANGE].join('\n');
const GUIDE = [
  '### Build',
  '### Install',
  '### Start',
  '### Reload',
  '### Stop',
  '### Upgrade',
  '### Roll back',
]
  .flatMap(commandsUnder)
  .join('\n');

/** The values of a key, in their order. */
const valuesOf = (unit: string, key: string): string[] =>
  [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value);

/** Runs the program of this repository. */
async function killswitchd(args: readonly string[], env: Record<string, string> = {}) {
  const run = promisify(execFile)(process.execPath, [join(ROOT, 'src/main.ts'), ...args], {
    env: { PATH: process.env['PATH'], ...env },
  });
  return run.then(
    ({ stdout }) => ({ code: 0, stdout }),
    (error: { code: number; stderr: string }) => ({ code: error.code, stdout: error.stderr }),
  );
}

test('every file is installed by the guide', () => {
  const missing = readdirSync(FOLDER).filter((name) => !GUIDE.includes(name));
  expect(missing).toEqual([]);
});

test('every command and flag in a unit, the operators’ command and the guide is one that the program has', async () => {
  const lines = `${ALL}\n${GUIDE}`
    .split('\n')
    .map((line) => /(?:dist\/main\.js|(?:^|\/| )killswitchd) ((?:[a-z-]+)(?: .*)?)$/.exec(line)?.[1])
    .filter((line) => line !== undefined && !line.includes('/usr/local'));
  expect(lines.length).toBeGreaterThan(5);
  for (const line of lines) {
    const [command = '', ...args] = (line ?? '').split(' ');
    const flags = args.filter((arg) => arg.startsWith('--'));
    const { code, stdout } = await killswitchd([command, '--help']);
    expect([line, code]).toEqual([line, 0]);
    for (const flag of flags) expect(stdout).toMatch(new RegExp(`^ +(-\\w, )?${flag}\\b`, 'm'));
  }
});

test('the unit has room for the threads of the daemon and of a reload beside it', async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchangeProcess();
  const daemon = await stage.daemon({ exchange: exchange.url, markets: ['BTC_USDT'] });
  await daemon.ready();
  const [, threads = ''] =
    /^Threads:\t(\d+)$/m.exec(readFileSync(`/proc/${daemon.pid}/status`, 'utf8')) ?? [];
  expect(Number(threads)).toBeGreaterThan(64);
  // Where one thread cannot be made, libuv ends the process without a word.
  expect(Number(valuesOf(DAEMON, 'TasksMax')[0])).toBeGreaterThan(2 * Number(threads));
});

test('the sample configuration is right with the variables of the unit, and fits the simulated exchange', async () => {
  const variables = valuesOf(DAEMON, 'Environment').map((pair) => pair.split('=') as [string, string]);
  const env = Object.fromEntries(variables.map(([name, value]) => [name, value.replaceAll('%i', 'main')]));
  // A credential that is not loaded has no file.
  const credentials = valuesOf(DAEMON, 'LoadCredential').map((value) => value.split(':')[0]);
  const named = variables
    .filter(([name]) => name.endsWith('_FILE'))
    .map(([, value]) => value.replace('%d/', ''));
  expect(named).toEqual(credentials);
  const { KILLSWITCHD_API_KEY_FILE: _key, KILLSWITCHD_API_SECRET_FILE: _secret, ...rest } = env;
  const demo = { KILLSWITCHD_API_KEY: 'demo-key', KILLSWITCHD_API_SECRET: 'demo-secret' };
  const config = join(FOLDER, 'main.yaml');
  const checked = await killswitchd(['check-config', '--config', config], { ...rest, ...demo });
  expect(checked).toMatchObject({ code: 0 });
  const { exchange, web } = parse(readFileSync(config, 'utf8')) as {
    exchange: { baseUrls: string[] };
    web: { listen: string[] };
  };
  // Where prometheus.yaml looks for it.
  expect(web.listen).toEqual(exampleListen());
  const [listen] = /--listen (\S+)/.exec(EXCHANGE)?.slice(1) ?? [];
  expect(exchange.baseUrls).toEqual([`http://${listen}`]);
});

test('socket, configuration and secrets lie where unit, bot and guide look for them', () => {
  const socket = /KILLSWITCHD_CONTROL_LISTEN=(\S+)/.exec(DAEMON)?.[1] ?? '';
  expect(valuesOf(DAEMON, 'ExecReload')[0]).toContain(`--control ${socket}`);
  expect(socket).toBe(`unix:/run/${valuesOf(DAEMON, 'RuntimeDirectory')[0]}/control.sock`);
  const sockets = [...`${BOT}\n${GUIDE}`.matchAll(/unix:\S+\.sock/g)].map(([found]) => found);
  expect(new Set(sockets)).toEqual(new Set([socket.replace('%i', 'main')]));
  const instances = [...`${ALL}\n${GUIDE}`.matchAll(/(?<![\w.-])killswitchd@(\w[\w-]*)/g)];
  expect(new Set(instances.map(([, account]) => `${account}.yaml`))).toEqual(new Set(['main.yaml']));
  expect(readdirSync(FOLDER)).toContain('main.yaml');
  const ends = [...ALL.matchAll(/\/etc\/killswitchd\/%i(\.\w+)/g)].map(([, end = '']) => end);
  const wanted = [...new Set(ends)];
  expect(wanted.toSorted((one, other) => one.localeCompare(other))).toEqual(['.key', '.secret', '.yaml']);
  for (const end of wanted) expect(GUIDE).toContain(`/etc/killswitchd/main${end}`);
  const [group] = valuesOf(DAEMON, 'Group');
  expect(valuesOf(BOT, 'SupplementaryGroups')).toEqual([group]);
  expect(readFileSync(join(FOLDER, 'killswitchd.sysusers'), 'utf8')).toContain(`g ${group} -`);
});
