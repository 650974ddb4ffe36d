import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { read } from '../docs/documents.ts';
import { codeBlocksOf } from '../docs/markdown.ts';
import { startProcess } from '../liveness/started.ts';
import { writeFiles } from './daemon.ts';
import { guard, stageFor } from './harness.ts';
import { eventually, MAIN, sleep } from './program.ts';
import { ofKind } from './simulated-exchange.ts';
import { onTerminal } from './terminal.ts';

describe.concurrent('a daemon that cannot start says why and arms nothing', { timeout: 60_000 }, () => {
  test('when the address of its status page is taken, as by the daemon that already runs, called killswitchd, in which SIGUSR1 opens no debugger', async (context) => {
    const { stage, exchange, daemon } = await guard(context, { markets: ['AAA_USDT'], nodeOptions: [] });
    const { host } = new URL(await daemon.web());
    const config = { web: { listen: [host] } };
    const second = await stage.daemon({ exchange: exchange.url, markets: ['BBB_USDT'], config });
    expect(await second.exit()).toMatchObject({ code: 78 });
    expect(second.stderr()).toMatch(new RegExp(`^killswitchd run: .*${host}.*in use.*\n$`));
    expect(second.stdout()).toBe('');
    const shown = execFileSync('ps', ['-o', 'comm=,args=', '-p', `${daemon.pid}`], { encoding: 'utf8' });
    expect(shown.trim().split(/\s+/)).toEqual(['killswitchd', 'killswitchd']);
    daemon.signal('SIGUSR1');
    await sleep(500);
    expect(daemon.stderr()).not.toMatch(/Debugger listening/);
    const events = await exchange.events();
    expect(ofKind(events, 'timer-armed').map(({ market }) => market)).toEqual(['AAA_USDT']);
    await daemon.ready();
  });

  test('when that is a fault of its own, with 70 and where it happened', async (context) => {
    const planted = `import hooks from 'node:perf_hooks'; hooks.monitorEventLoopDelay = () => { throw new Error('a fault that a test planted'); };`;
    const nodeOptions = ['--import', `data:text/javascript,${encodeURIComponent(planted)}`];
    const stage = stageFor(context);
    const daemon = await stage.daemon({ exchange: 'http://127.0.0.1:9', markets: ['AAA_USDT'], nodeOptions });
    expect(await daemon.exit()).toMatchObject({ code: 70 });
    expect(daemon.stderr()).toMatch(/^Internal error: .*Error: a fault that a test planted\n +at /);
  });

  test('without a file, and names killswitchd.yaml where it lies here', async (context) => {
    const { directory, run } = stageFor(context);
    writeFileSync(join(directory, 'killswitchd.yaml'), 'markets: [BTC_USDT]\n');
    const program = await run(['run'], { cwd: directory });
    expect((await program.exit()).code).toBe(78);
    expect(program.stderr()).toMatch(
      /^No configuration file is named; \.\/killswitchd\.yaml lies here: write --config \.\/killswitchd\.yaml\.\n/,
    );
  });

  test.for([
    ['24.11.1', 78],
    ['24.12.0', 0],
  ] as const)(
    'on Node %s, where that is older than package.json says (exit code %i)',
    async ([version, code], context) => {
      const [, oldest = ''] = /"node": ">=([\d.]+)"/.exec(read('package.json')) ?? [];
      const says = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`;
      const nodeOptions = ['--import', `data:text/javascript,${encodeURIComponent(says)}`];
      const program = await stageFor(context).run(code === 0 ? ['version'] : ['exec', '--', 'true'], {
        nodeOptions,
      });
      expect((await program.exit()).code).toBe(code);
      const told = `killswitchd needs Node ${oldest} or later, and this is Node ${version}.\n`;
      expect(program.stderr()).toBe(code === 0 ? '' : told);
    },
  );
});

describe.concurrent('the command line', { timeout: 60_000 }, () => {
  test('prints all it has to say, however slowly it is read', async (context) => {
    const markets = Array.from({ length: 500 }, (_, index) => `M${index}_USDT`);
    const files = writeFiles(stageFor(context).directory, { exchange: 'https://exchange.example', markets });
    const command = '"$0" "$1" check-config --print --format json --config "$2" | { sleep 3; cat; }';
    const args = ['-c', command, process.execPath, MAIN, files.configFile];
    const env = { PATH: process.env['PATH'], ...files.env };
    const { stdout } = await promisify(execFile)('sh', args, { env, maxBuffer: 16 * 1024 * 1024 });
    expect(stdout.length).toBeGreaterThan(200_000);
    expect((JSON.parse(stdout) as { markets: unknown[] }).markets).toHaveLength(markets.length);
  });

  test('that README shows after the demo guards a bot that beats', async (context) => {
    const block = codeBlocksOf(read('README.md'), 'sh').find((text) => text.includes('--embedded-exchange'));
    const [, line = ''] = /^npm run killswitchd -- (.*)/.exec(block?.replaceAll('\\\n', '') ?? '') ?? [];
    const env = { KILLSWITCHD_WEB_LISTEN: '127.0.0.1:0' };
    const guarded = startProcess(context, process.execPath, [MAIN, ...line.split(/\s+/)], env);
    await eventually('an armed bot', 40_000, () => guarded.output().includes('armed: orders may go out'));
    guarded.signal('SIGTERM');
    expect(await guarded.ended).toEqual([0, null]);
    expect(guarded.output()).toMatch(/^goodbye$/m);
  });

  test('writes its log as text with UTC times on a terminal', async (context) => {
    const args = '--embedded-exchange --markets BTC_USDT --liveness-mode none --web-listen 127.0.0.1:0';
    const terminal = onTerminal(context, [process.execPath, MAIN, 'run', ...args.split(' ')]);
    await eventually('an armed timer', 40_000, () => terminal.shown().includes('is armed'));
    terminal.type('\u0003');
    await terminal.ended;
    const lines = terminal.shown().replace('^C', '').trim().split(/\r?\n/);
    expect(lines.filter((text) => !/^\d\d:\d\d:\d\dZ {2}\S/.test(text))).toEqual([]);
    expect(lines.at(-1)).toContain('Stopped.');
  });
});

// The handler of the program is there after some 50 ms; until then the option keeps the debugger shut.
test.for([
  ['package.json', 4],
  ['src/bin.ts', 1],
  ['Dockerfile', 2],
  ['compose.yaml', 1],
  ['deploy/systemd/killswitchd', 1],
  ['deploy/systemd/killswitchd@.service', 2],
  ['deploy/systemd/killswitchd-exchange.service', 1],
  ['deploy/systemd/trading-bot.service', 1],
  ['deploy/kubernetes/overlays/sidecar/bot.yaml', 1],
  ['deploy/kubernetes/overlays/fleet/fleet.yaml', 1],
] as const)('every start of Node in %s says --disable-sigusr1: %i', ([path, starts]) => {
  const text = read(path).replaceAll(/#.*$/gm, '');
  expect(text.match(/(?:\bnode"?,?(?: "?|\n +- )|\[')--disable-sigusr1\b/g)).toHaveLength(starts);
});
