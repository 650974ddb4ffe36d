import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually, ROOT } from '../process/program.ts';
import { ofKind } from '../process/simulated-exchange.ts';
import { commandsUnder } from './deploy-guide.ts';
import { cloneTo } from './systemd-host.ts';
import { ARMED, bringPrometheus, DAEMON, type Installed, installed } from './systemd-stage.ts';

/** Whoever is told by alertmanager.yaml: writes down the path and the body of each message. */
const RECEIVER = `
import { createServer } from 'node:http';
createServer((request, answer) => {
  console.log(request.url);
  request.pipe(process.stdout, { end: false });
  request.on('end', () => answer.end());
}).listen(9095, '127.0.0.1');
`;

let host: Installed;
beforeAll(async () => {
  host = await installed();
  const [start = ''] = commandsUnder('### Start');
  await host.must(start, 90_000);
}, 900_000);
afterAll(async () => {
  await host?.end();
}, 60_000);

/** Waits until the commands say something. */
const saysSoon = (commands: string, what: RegExp) =>
  eventually(`${String(what)} of ${commands}`, 60_000, async () => {
    const { code, stdout } = await host.run(commands);
    return code === 0 && what.test(stdout) ? true : null;
  });

test('every file and every unit that the units name is there', async () => {
  const units = ['killswitchd@.service', 'trading-bot.service', 'killswitchd-exchange.service'].map((name) =>
    readFileSync(join(ROOT, 'deploy/systemd', name), 'utf8'),
  );
  const files = units.flatMap((unit) => unit.match(/\/opt\/killswitchd\/[\w./-]+/g) ?? []);
  expect(files).toContain('/opt/killswitchd/README.md');
  expect(files.filter((file) => !existsSync(join(host.root, file)))).toEqual([]);
  const named = units.flatMap((unit) =>
    [...unit.matchAll(/^(?:Wants|After|Before|WantedBy)=(.*)$/gm)].flatMap(([, names = '']) =>
      names.split(' '),
    ),
  );
  expect(named).toContain('network-online.target');
  for (const name of named) expect([name, await host.show('LoadState', name)]).toEqual([name, 'loaded']);
});

test('another account is another instance, which comes and goes without the first one', async () => {
  const name = 'maker-2-of-the-desk';
  const other = `killswitchd@${name}`;
  const first = await host.show('MainPID');
  await host.must(`cd /etc/killswitchd
    sed 's/17477/17478/; s/BTC_USDT/SOL_USDT/; /ETH_USDT/d; s/mode: beat.*/mode: none }/' main.yaml > ${name}.yaml
    install -m 600 main.secret ${name}.secret`);
  // Without its key it is tried again and again.
  expect((await host.run(`systemctl start ${other}`)).code).not.toBe(0);
  await eventually('the seventh start', 60_000, async () =>
    Number(await host.show('NRestarts', other)) > 6 ? true : null,
  );
  await host.must(`install -m 600 /etc/killswitchd/main.key /etc/killswitchd/${name}.key`);
  await eventually('the second instance', 30_000, async () =>
    (await host.show('ActiveState', other)) === 'active' ? true : null,
  );
  const control = `--control unix:/run/killswitchd/${name}/control.sock`;
  await host.must(`${ARMED} ${control}`);
  const status = await host.must(`killswitchd status ${control}`);
  expect(status).toMatch(/SOL_USDT +armed/);
  // The journal knows how urgent each line is, and what wrote it.
  const urgent = await host.must(`journalctl --no-pager -o cat -t killswitchd -p warning -u ${other}`);
  expect(urgent).toContain('nobody watches the bot');
  expect(urgent).not.toContain('armed: ');
  expect(await host.must(`journalctl --no-pager -o cat -u ${other} -g '^armed: '`)).toMatch(
    /^armed: SOL_USDT is armed until /,
  );
  await host.must(`systemctl stop ${other}`);
  expect(ofKind(host.events(), 'timer-deleted').map(({ market }) => market)).toEqual(['SOL_USDT']);
  expect(await host.must('ls /run/killswitchd')).toBe('main');
  expect([await host.show('MainPID'), await host.show('StatusText')]).toEqual([
    first,
    expect.stringMatching(/^2 of 2 markets armed/),
  ]);
}, 180_000);

test('Debian’s Prometheus and Alertmanager watch it by the commands of the guide, each at its own port', async () => {
  await bringPrometheus(host);
  cloneTo(join(host.root, 'srv/repository'), ROOT);
  await host.must(`cat > /srv/receiver.mjs <<'END'${RECEIVER}END
    systemd-run --quiet --unit receiver /opt/killswitchd/bin/node /srv/receiver.mjs`);

  const [install = '', look = ''] = commandsUnder('## Prometheus and Alertmanager');
  const [silence = ''] = commandsUnder('### How fast, and how quiet');
  expect(silence).toMatch(/^amtool silence add /);
  const [fetch, ...commands] = install.split('\n');
  expect(fetch).toBe('apt-get install prometheus prometheus-alertmanager');
  await host.must(`cd /srv/repository\n${commands.join('\n')}`);
  await saysSoon(look, /killswitch_ready\{account="main", instance="127\.0\.0\.1:17477".*\} => 1 /);

  await host.must(`systemctl stop trading-bot ${DAEMON}`);
  await eventually('a page', 90_000, async () =>
    /^\/page\n.*KillswitchDown/m.test(await host.journal('receiver')) ? true : null,
  );
  await saysSoon(look, /KillswitchDown/);
  await host.must(silence);
  await saysSoon('amtool alert query --alertmanager.url http://127.0.0.1:9093 --silenced', /KillswitchDown/);
}, 300_000);

test('the host shuts down: the timers are deleted, and none fires', async () => {
  await host.must(`systemctl start ${DAEMON} trading-bot`);
  // Deleted is what was guarded for a bot that lives.
  await eventually('a beat', 30_000, async () =>
    (await host.show('StatusText')).includes('default gave a sign') ? true : null,
  );
  const fromMs = Date.now();
  await host.run('systemctl poweroff');
  const deleted = () => ofKind(host.events(fromMs), 'timer-deleted').map(({ market }) => market);
  await eventually('the deletes', 30_000, () => (deleted().length === 2 ? true : null));
  expect(deleted().sort()).toEqual(['BTC_USDT', 'ETH_USDT']);
  expect(ofKind(host.events(fromMs), 'timer-fired')).toEqual([]);
});
