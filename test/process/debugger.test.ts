import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { ROOT, sleep } from './program.ts';

const DEBUGGER = /Debugger listening/;
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

test('a daemon that Node was started with by hand is called killswitchd, and SIGUSR1 opens no debugger in it', {
  timeout: 60_000,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  const daemon = await stage.daemon({ exchange: exchange.url, markets: ['AAA_USDT'] });
  await daemon.ready();
  const shown = execFileSync('ps', ['-o', 'comm=,args=', '-p', `${daemon.pid}`], { encoding: 'utf8' });
  expect(shown.trim().split(/\s+/)).toEqual(['killswitchd', 'killswitchd']);
  daemon.signal('SIGUSR1');
  await sleep(500);
  expect(daemon.stderr()).not.toMatch(DEBUGGER);
  expect((await daemon.get('/livez')).status).toBe(200);
  daemon.signal('SIGTERM');
  expect(await daemon.exit()).toMatchObject({ code: 0 });
});

// The handler of the program is there after some 50 ms; until then the option keeps the debugger shut.
test('every way in which Node is started here says --disable-sigusr1', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const ways = {
    'the command of the package': `node ${
      read('src/bin.ts')
        .match(/--disable-sigusr1/g)
        ?.join() ?? ''
    }`,
    'npm start': scripts['start'],
    'npm run demo': scripts['demo'],
    'npm run killswitchd': scripts['killswitchd'],
    'the image': /^ENTRYPOINT .*$/m.exec(read('Dockerfile'))?.[0],
    'its health check': /^ +CMD .*$/m.exec(read('Dockerfile'))?.[0],
    'the command for operators': /^exec .*$/m.exec(read('deploy/systemd/killswitchd'))?.[0],
    'the start of the unit': /^ExecStart=.*$/m.exec(read('deploy/systemd/killswitchd@.service'))?.[0],
    'the reload of the unit': /^ExecReload=.*$/m.exec(read('deploy/systemd/killswitchd@.service'))?.[0],
    'the unit of the exchange': /^ExecStart=.*$/m.exec(
      read('deploy/systemd/killswitchd-exchange.service'),
    )?.[0],
    'the bot of npm start': scripts['start']?.replace(/^.* -- /, ''),
    'the sample bot of systemd': /^ExecStart=.*$/m.exec(read('deploy/systemd/trading-bot.service'))?.[0],
    'the sample bot of Compose': /^ +entrypoint: .*$/m.exec(read('compose.yaml'))?.[0],
    'the sample bot of Kubernetes': /^ +command: .*$/m.exec(
      read('deploy/kubernetes/overlays/sidecar/bot.yaml'),
    )?.[0],
    'the init container that copies keys': /command:[^|]*/.exec(
      read('deploy/kubernetes/overlays/fleet/fleet.yaml'),
    )?.[0],
  };
  const node = /\bnode"?,?(?: "?|\n +- )--disable-sigusr1\b/;
  expect(Object.entries(ways).filter(([, line]) => !node.test(line ?? ''))).toEqual([]);
});
