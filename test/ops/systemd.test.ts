import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { guideUnder } from '../docs/sections.ts';
import { scopeOfBlock } from '../process/harness.ts';
import { eventually, ROOT, sleep } from '../process/program.ts';
import { ofKind, renewalsOf } from '../process/simulated-exchange.ts';
import { cloneTo } from './systemd-host.ts';
import { ARMED, bring, CONFIG, DAEMON, type Installed, installed } from './systemd-stage.ts';

const MARKETS = ['BTC_USDT', 'ETH_USDT'];
const FOLDER = join(ROOT, 'deploy/systemd');
/** Whoever is told by alertmanager.yaml: writes down the path and the body of each message. */
const RECEIVER = `
import { createServer } from 'node:http';
createServer((request, answer) => {
  console.log(request.url);
  request.pipe(process.stdout, { end: false });
  request.on('end', () => answer.end());
}).listen(9095, '127.0.0.1');
`;

const scope = scopeOfBlock();
let host: Installed;
const show: Installed['show'] = (...asked) => host.show(...asked);
const journal: Installed['journal'] = (...asked) => host.journal(...asked);
const events: Installed['events'] = (...asked) => host.events(...asked);
const deletedSince = (fromMs: number) =>
  ofKind(events(fromMs), 'timer-deleted')
    .map(({ market }) => market)
    .sort();
/** Waits until the commands say something. */
const saysSoon = (commands: string, what: RegExp) =>
  eventually(`${String(what)} of ${commands}`, 90_000, async () => {
    const { code, stdout } = await host.run(commands);
    return code === 0 && what.test(stdout);
  });

beforeAll(async () => {
  host = await installed(scope);
}, 900_000);

describe('the units', () => {
  test('are valid to the last key, and leave little open', async () => {
    const units = '/etc/systemd/system/*killswitchd*.service /etc/systemd/system/trading-bot.service';
    const silence = { code: 0, stdout: '', stderr: '' };
    expect(await host.run(`systemd-analyze verify --man=no ${units}`)).toEqual(silence);
    const security = 'systemd-analyze --no-pager --offline=true --threshold=15 security';
    const { code, stdout } = await host.run(`${security} /etc/systemd/system/killswitchd@.service`);
    expect(stdout).toMatch(/Overall exposure level for killswitchd@i\.service: 1\.1 OK/);
    expect(code).toBe(0);
  });

  test('are installed by the guide, with every file and every unit that they name', async () => {
    const steps = ['Build', 'Install', 'Start', 'Reload', 'Stop', 'Upgrade', 'Roll back'];
    const guide = steps.flatMap((step) => guideUnder(`### ${step}`)).join('\n');
    const names = readdirSync(FOLDER);
    expect(names.filter((name) => !guide.includes(name))).toEqual([]);
    const units = names.filter((name) => name.endsWith('.service'));
    const text = units.map((name) => readFileSync(join(FOLDER, name), 'utf8')).join('\n');
    const files = text.match(/\/opt\/killswitchd\/[\w./-]+/g) ?? [];
    expect(files).toContain('/opt/killswitchd/README.md');
    expect(files.filter((file) => !existsSync(join(host.root, file)))).toEqual([]);
    const lines = [...text.matchAll(/^(?:Wants|After|Before|WantedBy)=(.*)$/gm)];
    const named = lines.flatMap(([, line = '']) => line.split(' '));
    expect(named).toContain('network-online.target');
    for (const name of named) expect([name, await show('LoadState', name)]).toEqual([name, 'loaded']);
  });
});

describe('the daemon under systemd', { timeout: 180_000 }, () => {
  beforeAll(async () => {
    await host.must('systemctl start killswitchd-exchange');
    await saysSoon('journalctl -o cat -u killswitchd-exchange', /http:\/\/127\.0\.0\.1:17480/);
  }, 60_000);
  beforeEach(async () => {
    await host.must(`systemctl start ${DAEMON} trading-bot; ${ARMED}`, 40_000);
    await host.must('systemctl reset-failed');
  }, 60_000);
  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail') {
      const { stdout } = await host.run(`systemctl --no-pager status ${DAEMON} trading-bot`);
      console.log(`${stdout}\n${(await journal()).split('\n').slice(-40).join('\n')}`);
    }
  });

  test('holds up no boot while the exchange is away and says for what its bot waits; the bot starts when it is armed', async () => {
    await host.must(`systemctl stop trading-bot ${DAEMON}`);
    const fromMs = Date.now();
    await host.maintenance(22_000);
    // What a boot waits for: a target that wants both. The bot alone waits for ten seconds.
    await host.must(`printf '[Unit]\nWants=${DAEMON}.service trading-bot.service\n' \
      > /etc/systemd/system/booted.target; systemctl daemon-reload; systemctl start booted.target`);
    expect(Date.now() - fromMs).toBeLessThan(9000);
    expect([await show('ActiveState'), await show('SubState')]).toEqual(['active', 'running']);
    expect(await show('NRestarts')).toBe('0');
    await host.says(
      /^0 of 2 markets armed, bot default waits for BTC_USDT \(HTTP 503 [^\n]*\), no sign of default yet$/,
    );
    // Past the time of the watchdog, and of the first wait of the bot.
    await sleep(Math.max(0, fromMs + 18_000 - Date.now()));
    expect(await show('MainPID', 'trading-bot')).toBe('0');
    expect(await journal('trading-bot')).toMatch(/waits: .* is not ready for the bot default: timer/);
    await saysSoon('systemctl is-active trading-bot', /^active$/m);
    for (const market of MARKETS) {
      const [first = Number.POSITIVE_INFINITY] = renewalsOf(events(fromMs), market);
      expect(first).toBeGreaterThan(fromMs + 18_000);
      // systemd's own stamp has whole seconds.
      expect(await host.activeAtMs('trading-bot')).toBeGreaterThan(first - 1000);
    }
    await host.says(/^2 of 2 markets armed, least slack 2\d s \(ETH_USDT\), default gave a sign \d s ago$/);
  });

  test('shows key and secret to the service alone', async () => {
    const pid = await show('MainPID');
    const folder = `/run/credentials/${DAEMON}.service`;
    const uid = await host.must(`stat -c %u /proc/${pid}`);
    expect(Number(uid)).toBeGreaterThan(60_000);
    const read = (as: string) =>
      host.run(`setpriv --clear-groups --regid=killswitchd ${as} cat ${folder}/api-secret`);
    expect(await read(`--reuid=${uid}`)).toMatchObject({ code: 0, stdout: 'demo-secret\n' });
    const bot = await host.must(`stat -c %u /proc/${await show('MainPID', 'trading-bot')}`);
    for (const other of [bot, '65534']) {
      const refused = await read(`--reuid=${other}`);
      expect([refused.stdout, refused.code]).toEqual(['', 1]);
    }
    const modes = await host.must('stat -c %a-%U /etc/killswitchd/main.key /etc/killswitchd/main.secret');
    expect(modes).toBe('600-root\n600-root');
    const shown = `cat /proc/${pid}/environ /proc/${pid}/cmdline; journalctl --no-pager -u ${DAEMON}`;
    expect(await host.must(shown)).not.toContain('demo-secret');
  });

  test('opens its socket to its group and to nobody else', async () => {
    const as = (groups: string, command: string) =>
      host.run(`setpriv --reuid=65534 --regid=65534 ${groups} killswitchd ${command}`);
    const asked = 'healthcheck --ready --control unix:/run/killswitchd/main/control.sock';
    expect(await as('--groups=killswitchd', asked)).toMatchObject({ code: 0 });
    expect((await as('--clear-groups', asked)).code).toBe(69);
    // As the runbooks have it, for root and for an operator of the group.
    const all = { code: 0, stdout: expect.stringContaining('All 2 timers are armed.') };
    expect(await host.run('killswitchd status')).toMatchObject(all);
    expect(await as('--groups=killswitchd', 'status')).toMatchObject(all);
  });

  test('has room for its threads, and for those of a reload beside it', async () => {
    const status = await host.must(`cat /proc/${await show('MainPID')}/status`);
    const threads = Number(/^Threads:\t(\d+)$/m.exec(status)?.[1]);
    expect(threads).toBeGreaterThan(64);
    // Where one thread cannot be made, libuv ends the process without a word.
    expect(Number(await show('TasksMax'))).toBeGreaterThan(2 * threads);
  });

  test('is killed by the watchdog when it hangs and started again, and no timer fires; the bot goes on', async () => {
    await host.withOtherConfig(async () => {
      await host.edit('s/timeoutSeconds: 60/timeoutSeconds: 30/');
      await host.must(`systemctl reload ${DAEMON}`);
      const before = { daemon: await show('MainPID'), bot: await show('MainPID', 'trading-bot') };
      const restarts = Number(await show('NRestarts'));
      const fromMs = Date.now();
      await host.must(`kill -STOP ${before.daemon}`);
      await host.successorOf(before.daemon);
      // Fed for the last time at most 5 s before.
      expect(Date.now() - fromMs).toBeGreaterThan(9000);
      expect(Number(await show('NRestarts'))).toBe(restarts + 1);
      expect(await journal()).toMatch(/Watchdog timeout.*\n(.*\n)*.*killed, status=9\/KILL/);
      expect(await show('MainPID', 'trading-bot')).toBe(before.bot);
      // Until every timer that stood when it hung would have fired.
      await sleep(Math.max(0, fromMs + 35_000 - Date.now()));
      const since = events(fromMs);
      const others = since.filter(({ kind }) => /^timer-(fired|deleted|armed)$/.test(kind));
      expect(others).toEqual([]);
      for (const market of MARKETS) expect(ofKind(since, 'timer-updated', market).length).toBeGreaterThan(3);
      expect(await show('StatusText')).toMatch(/^2 of 2 markets armed/);
    });
  });

  test('is killed as well when its loop is busy for ever', async () => {
    await host.must(`echo "process.on('SIGUSR2', () => { for (;;) {} });" > /srv/hang.mjs`);
    await host.dropIn('Environment=NODE_OPTIONS=--import=/srv/hang.mjs', 'WatchdogSec=6s');
    const pid = await show('MainPID');
    await host.must(`kill -USR2 ${pid}`);
    await host.successorOf(pid);
    expect(await journal()).toMatch(/Watchdog timeout[^]*Watchdog timeout/);
    await host.dropIn();
  });

  test('reloads and returns when the new market is armed; a wrong file fails and changes nothing', async () => {
    const pid = await show('MainPID');
    await host.withOtherConfig(async () => {
      const fromMs = Date.now();
      await host.edit('s/^  - BTC_USDT/&\\n  - SOL_USDT/');
      await host.must(`systemctl reload ${DAEMON}`);
      const added = ofKind(events(fromMs), 'timer-armed').map(({ market }) => market);
      expect(added).toEqual(['SOL_USDT']);

      const settled = Date.now();
      await host.edit('s/SOL_USDT/ADA_USDT/; s/timeoutSeconds: 30/timeoutSeconds: 3/');
      const { code, stderr } = await host.run(`systemctl reload ${DAEMON}`);
      expect(code).not.toBe(0);
      expect(stderr).toContain('failed');
      expect(await journal()).toMatch(/markets\[2\]\.timeoutSeconds: found 3; allowed: .*5 to 600/);
      await sleep(7000);
      expect(events(settled).filter(({ kind }) => kind !== 'timer-updated')).toEqual([]);
      expect(ofKind(events(settled), 'timer-updated', 'SOL_USDT').length).toBeGreaterThan(0);
      expect([await show('ActiveState'), await show('SubState')]).toEqual(['active', 'running']);
      expect(await show('MainPID')).toBe(pid);
      expect(await show('StatusText')).toMatch(/^3 of 3 markets armed/);
    });
    await host.says(/^2 of 2 markets armed/);
  });

  test('starts with a key that is refused and says so; a reload after the key was mended names the command that helps', async () => {
    await host.must(`systemctl stop trading-bot ${DAEMON}; echo wrong-key > /etc/killswitchd/main.key`);
    try {
      const fromMs = Date.now();
      await host.must(`systemctl start ${DAEMON}`);
      expect(Date.now() - fromMs).toBeLessThan(10_000);
      await host.says(/^THE EXCHANGE REFUSES THE API KEY: 0 of 2 markets armed/);
      await host.must(`systemctl reload ${DAEMON}`);
    } finally {
      await host.must('echo demo-key > /etc/killswitchd/main.key');
    }
    const helps = 'systemctl restart killswitchd@main';
    expect((await host.run(`systemctl reload ${DAEMON}`)).code).not.toBe(0);
    const { code, stderr } = await host.run('killswitchd reload');
    expect([code, stderr]).toEqual([78, expect.stringContaining(helps)]);
    expect(await journal()).toContain(helps);
    await host.must(`${helps}; killswitchd healthcheck --ready --exclude bots --wait 15`);
    await host.says(/^2 of 2 markets armed/);
    expect((await host.run('killswitchd reload')).code).toBe(0);
  });

  test('fails a reload where the exchange refuses a market, as arm does, and the others are armed', async () => {
    await host.withOtherConfig(async () => {
      await host.edit('s/^  - BTC_USDT/&\\n  - SOL_USDT/');
      await host.refuse('SOL_USDT');
      expect((await host.run(`systemctl reload ${DAEMON}`)).code).not.toBe(0);
      // Also once nothing is new.
      expect((await host.run('killswitchd reload')).code).toBe(69);
      expect((await host.run('killswitchd arm SOL_USDT')).code).toBe(69);
      await host.says(/^2 of 3 markets armed, bot default waits for SOL_USDT \(HTTP 4/);
    });
    await host.refuse(null);
  });

  test('deletes its timers on stop in less than TimeoutStopSec', async () => {
    await host.signOfTheBot();
    const fromMs = Date.now();
    await host.must(`systemctl stop ${DAEMON}`);
    expect(Date.now() - fromMs).toBeLessThan(15_000);
    expect([await show('ActiveState'), await show('Result')]).toEqual(['inactive', 'success']);
    expect(await show('StatusText')).toBe('Stopped: no timer is armed');
    expect(deletedSince(fromMs)).toEqual(MARKETS);
    await sleep(2000);
    const after = events(Math.max(...ofKind(events(fromMs), 'timer-deleted').map(({ atMs }) => atMs)));
    expect(after.filter(({ kind }) => kind.startsWith('timer-') && kind !== 'timer-deleted')).toEqual([]);
  });

  test('has as much time to delete as shutdown.budgetSeconds says, and says that it failed', async () => {
    await host.withOtherConfig(async () => {
      await host.edit('s/budgetSeconds: 8/budgetSeconds: 20/');
      await host.must(`systemctl reload ${DAEMON}`);
      await host.signOfTheBot();
      await host.maintenance(60_000);
      const fromMs = Date.now();
      await host.must(`systemctl stop ${DAEMON}`);
      // More than TimeoutStopSec.
      expect(Date.now() - fromMs).toBeGreaterThan(16_000);
      expect([await show('ActiveState'), await show('Result')]).toEqual(['failed', 'exit-code']);
      expect(await show('ExecMainStatus')).toBe('75');
      expect(await show('StatusText')).toBe('Stopped. NOT CONFIRMED DELETED: 2 timers, see the journal');
    });
    await host.maintenance(0);
  });

  test('stops after the bot where both are stopped', async () => {
    for (const commands of guideUnder('### Stop')) await host.must(commands);
    expect(await journal('trading-bot')).toMatch(
      // A container's kernel may refuse the write that systemd kills a control group with.
      /goodbye\n(.*Failed to kill control group.*\n)*.*Deactivated successfully\.\n.*Stopped .*$/,
    );
    const both = `journalctl --no-pager -o cat -u ${DAEMON} -u trading-bot`;
    const order = await host.must(`${both} | grep -E '^Stopped ' | tail -2`);
    expect(order.split('\n')).toEqual([expect.stringContaining('bot'), expect.stringContaining('timers')]);
  });

  test('is understood without the descriptor too, by way of systemd-notify', async () => {
    const plain = `/opt/killswitchd/bin/node --disable-sigusr1 --max-semi-space-size=4 --max-old-space-size=2000 /opt/killswitchd/dist/main.js run --config ${CONFIG}`;
    await host.dropIn('NotifyAccess=all', 'WatchdogSec=6s', 'ExecStart=', `ExecStart=${plain}`);
    const pid = await show('MainPID');
    await sleep(10_000);
    expect(await show('MainPID')).toBe(pid);
    expect(await show('StatusText')).toMatch(/^2 of 2 markets armed/);
    await host.must(`systemctl reload ${DAEMON}`);
    await host.dropIn();
  });
});

describe('a daemon that cannot start', () => {
  test('is tried again until its file is mended, and its bot is not started', async () => {
    await host.must(`systemctl stop trading-bot ${DAEMON}`);
    await host.withOtherConfig(async () => {
      await host.edit('s/^liveness:/livness:/');
      expect((await host.run(`systemctl start ${DAEMON}`)).code).not.toBe(0);
      expect((await host.run('systemctl start trading-bot')).code).not.toBe(0);
      await eventually('the seventh start', 100_000, async () => Number(await show('NRestarts')) > 6);
      expect(await journal()).toMatch(/livness: unknown key; .*did you mean liveness\?/);
      expect(await show('MainPID', 'trading-bot')).toBe('0');
    });
    await saysSoon(`systemctl is-active ${DAEMON} trading-bot`, /active\nactive/);
  });
});

describe('the guide', () => {
  const follow = async (heading: string) => {
    for (const commands of guideUnder(heading)) await host.must(`cd /srv\n${commands}`, 90_000);
  };

  test('has a host from nothing to a bot that is guarded', async () => {
    await host.must(`systemctl stop trading-bot ${DAEMON} killswitchd-exchange`);
    const [start = '', ...checks] = guideUnder('### Start');
    const shown = await host.must(start, 90_000);
    expect(shown).toMatch(/Active: active \(running\)[^]*Active: active \(running\)/);
    expect(shown).toMatch(/BTC_USDT +armed/);
    await host.says(/^2 of 2 markets armed/);
    const enabled = await host.must('systemctl is-enabled killswitchd-exchange killswitchd@main trading-bot');
    expect(enabled).toBe('enabled\nenabled\nenabled');
    for (const commands of checks) expect(await host.must(commands, 90_000)).toContain('accepts the key');
    await follow('### Reload');
    await follow('### Messages');
    // A file that the daemon could not read would have held up its start.
    expect(await show('Environment')).toMatch(/NOTIFY_URL_FILE=\/run\/credentials\/\S+\/notify-url/);
    await follow('### Stop');
    expect(await show('StatusText')).toBe('Stopped: no timer is armed');
    const running = async () => {
      await host.says(/^2 of 2 markets armed/);
      return host.must(`readlink /proc/$(systemctl show -P MainPID ${DAEMON})/exe`);
    };
    const before = await host.must('readlink /opt/killswitchd');
    await host.must(`cd /tmp && tar -xzf /srv/killswitchd.tgz && mv ${before} killswitchd-next
      tar -c killswitchd-next | gzip -1 > /srv/killswitchd.tgz`);
    await follow('### Upgrade');
    expect(await running()).toBe('/opt/killswitchd-next/bin/node');
    await follow('### Roll back');
    expect(await running()).toBe(`/opt/${before}/bin/node`);
  });

  test('has another account as another instance, which comes and goes without the first one', async () => {
    const name = 'maker-2-of-the-desk';
    const other = `killswitchd@${name}`;
    const first = await show('MainPID');
    const fromMs = Date.now();
    await host.must(`cd /etc/killswitchd
      sed 's/17477/17478/; s/BTC_USDT/SOL_USDT/; /ETH_USDT/d; s/mode: beat.*/mode: none }/' main.yaml > ${name}.yaml
      install -m 600 main.secret ${name}.secret`);
    // Without its key it is tried again and again.
    expect((await host.run(`systemctl start ${other}`)).code).not.toBe(0);
    await eventually('the seventh start', 60_000, async () => Number(await show('NRestarts', other)) > 6);
    await host.must(`install -m 600 /etc/killswitchd/main.key /etc/killswitchd/${name}.key`);
    await saysSoon(`systemctl show -P ActiveState ${other}`, /^active$/m);
    const control = `--control unix:/run/killswitchd/${name}/control.sock`;
    await host.must(`${ARMED} ${control}`);
    expect(await host.must(`killswitchd status ${control}`)).toMatch(/SOL_USDT +armed/);
    // The journal knows how urgent each line is, and what wrote it.
    const urgent = await host.must(`journalctl --no-pager -o cat -t killswitchd -p warning -u ${other}`);
    expect(urgent).toContain('nobody watches the bot');
    expect(urgent).not.toContain('armed: ');
    const armed = `journalctl --no-pager -o cat -u ${other} -g '^armed: '`;
    expect(await host.must(armed)).toMatch(/^armed: SOL_USDT is armed until /);
    await host.must(`systemctl stop ${other}`);
    expect(deletedSince(fromMs)).toEqual(['SOL_USDT']);
    expect(await host.must('ls /run/killswitchd')).toBe('main');
    expect(await show('MainPID')).toBe(first);
    expect(await show('StatusText')).toMatch(/^2 of 2 markets armed/);
  }, 180_000);

  test('has Debian’s Prometheus and Alertmanager watch the daemon, each at its own port', async () => {
    await bring(host, 'prometheus', 'prometheus-alertmanager');
    cloneTo(join(host.root, 'srv/repository'));
    await host.must(`useradd --system --user-group --home-dir /var/lib/prometheus prometheus
      chown -R prometheus:prometheus /var/lib/prometheus
      systemctl daemon-reload
      cat > /srv/receiver.mjs <<'END'${RECEIVER}END
      systemd-run --quiet --unit receiver /opt/killswitchd/bin/node /srv/receiver.mjs`);
    const [install = '', look = ''] = guideUnder('## Prometheus and Alertmanager');
    const [silence = ''] = guideUnder('### How fast, and how quiet');
    expect(silence).toMatch(/^amtool silence add /);
    const [fetch, ...commands] = install.split('\n');
    expect(fetch).toBe('apt-get install prometheus prometheus-alertmanager');
    await host.must(`cd /srv/repository\n${commands.join('\n')}`);
    await saysSoon(look, /killswitch_ready\{account="main", instance="127\.0\.0\.1:17477".*\} => 1 /);

    await host.must(`systemctl stop trading-bot ${DAEMON}`);
    await saysSoon('journalctl -o cat -u receiver', /^\/page\n.*KillswitchDown/m);
    await saysSoon(look, /KillswitchDown/);
    await host.must(silence);
    const silenced = 'amtool alert query --alertmanager.url http://127.0.0.1:9093 --silenced';
    await saysSoon(silenced, /KillswitchDown/);
  }, 300_000);
});

test('the host shuts down: the timers are deleted, and none fires', async () => {
  await host.must(`systemctl start ${DAEMON} trading-bot`);
  // Deleted is what was guarded for a bot that lives.
  await host.signOfTheBot();
  const fromMs = Date.now();
  await host.run('systemctl poweroff');
  await eventually('the deletes', 30_000, () => deletedSince(fromMs).length === 2);
  expect(deletedSince(fromMs)).toEqual(MARKETS);
  expect(ofKind(events(fromMs), 'timer-fired')).toEqual([]);
});
