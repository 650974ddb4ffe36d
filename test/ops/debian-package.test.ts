import { copyFileSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { scopeOfBlock } from '../process/harness.ts';
import { eventually } from '../process/program.ts';
import { ofKind, renewalsOf } from '../process/simulated-exchange.ts';
import { scratch } from './scratch.ts';
import { bootDebian, cloneWithPackages, type DebianHost, runHere } from './systemd-host.ts';
import { bring, eventsOf } from './systemd-stage.ts';

/** What Debian's Python needs to run a bot, and no more. */
const VERSION = basename(realpathSync('/usr/bin/python3'));
const LIBRARIES = [`lib${VERSION}-minimal`, `lib${VERSION}-stdlib`, 'libexpat1', 'zlib1g'];
const PYTHON = ['python3-minimal', `${VERSION}-minimal`, ...LIBRARIES];

const BOT = `import sys, time
sys.path.append("/usr/lib/killswitchd/clients/python")
from killswitchd import KillSwitch

with KillSwitch("unix:/run/killswitchd/main/control.sock") as kill_switch:
    kill_switch.wait_armed()
    while True:
        if kill_switch.beat():
            print("orders may go out", flush=True)
        time.sleep(1)
`;

/** The one file that is edited: the exchange of the test stands for that of the user. */
const CONFIG = `exchange: { baseUrls: ["http://127.0.0.1:17480"] }
defaults: { timeoutSeconds: 20 }
markets: [BTC_USDT, ETH_USDT]
liveness: { mode: beat, ttlSeconds: 5 }
shutdown: { policy: handoff, budgetSeconds: 8 }
web: { listen: ["127.0.0.1:17477"] }
`;

const folder = scratch();
const scope = scopeOfBlock();
let host: DebianHost;
let file: string;

const pidOf = (unit: string) => host.must(`systemctl show -P MainPID ${unit}`);
const marketsOf = (kind: 'timer-armed' | 'timer-fired', from = 0) =>
  ofKind(eventsOf(host).slice(from), kind)
    .map(({ market }) => market)
    .sort();

beforeAll(async () => {
  const clone = cloneWithPackages(join(folder, 'clone'));
  // As somebody builds it whose files nobody else may read.
  await runHere('bash', ['-euc', 'umask 077; chmod -R go= .; npm run package'], clone);
  const [name = ''] = readdirSync(join(clone, 'build')).filter((entry) => entry.endsWith('.deb'));
  file = join(clone, 'build', name);
  host = await bootDebian(scope);
  copyFileSync(file, join(host.root, 'srv', name));
  await bring(host, ...PYTHON);
  writeFileSync(join(host.root, 'srv/bot.py'), BOT);
}, 300_000);

describe('the Debian package', () => {
  it('is called for what it is, and lintian has nothing against it', async () => {
    expect(file).toMatch(/\/killswitchd_\d+\.\d+\.\d+_amd64\.deb$/);
    await runHere('lintian', ['--fail-on', 'error,warning', file]);
  });

  it('protects a Python bot after one command, one edited file and one more command', async () => {
    const begunMs = performance.now();
    await host.must('cd /srv\napt-get install -y ./killswitchd_*.deb', 120_000);
    await host.must('systemctl start killswitchd-exchange');
    await host.must(`cat > /etc/killswitchd/main.yaml <<'END'\n${CONFIG}END`);
    await host.must('systemctl enable --now killswitchd@main');
    const flags = '-p DynamicUser=yes -p SupplementaryGroups=killswitchd -p Environment=HOME=/nonexistent';
    await host.must(`systemd-run --quiet --unit bot ${flags} python3 /srv/bot.py`);
    const said = () => host.must('journalctl -o cat -u bot');
    await eventually('a bot that is protected', 30_000, async () => (await said()).includes('orders may'));
    const tookMs = performance.now() - begunMs;
    console.log(`protected after ${(tookMs / 1000).toFixed(1)} s`);
    expect(tookMs).toBeLessThan(120_000);
    expect(marketsOf('timer-armed')).toEqual(['BTC_USDT', 'ETH_USDT']);
    expect(BOT.trimEnd().split('\n')).toHaveLength(10);
  }, 180_000);

  it('brings the command, its manual and completions, units that are valid, and keys for root alone', async () => {
    expect(await host.must('killswitchd version')).toMatch(/^killswitchd \d+\.\d+\.\d+ \(Node 24\./);
    const share = '/usr/share';
    await host.must(`test -s ${share}/man/man1/killswitchd.1.gz
      test -s ${share}/bash-completion/completions/killswitchd`);
    const documented = await host.must('systemctl show -P Documentation killswitchd@main');
    expect(documented).toContain('man:killswitchd(1)');
    const verify = 'systemd-analyze verify --man=no killswitchd@.service killswitchd-exchange.service';
    expect(await host.run(`cd /usr/lib/systemd/system\n${verify}`)).toMatchObject({ code: 0, stderr: '' });
    const keys = 'stat -c "%a %U" /etc/killswitchd/main.key /etc/killswitchd/main.secret';
    expect(await host.must(keys)).toBe('600 root\n600 root');
    expect(await host.must('killswitchd status --json')).toContain('BTC_USDT');
  });

  it('is upgraded and rolled back while the timers stay armed and the bot goes on', async () => {
    const [daemon, bot] = [await pidOf('killswitchd@main'), await pidOf('bot')];
    const before = eventsOf(host).length;
    const tree = join(folder, 'next');
    const next = join(host.root, 'srv/next.deb');
    const script = `dpkg-deb -R ${file} ${tree}
      sed -i 's/^Version: .*/Version: 99.0.0/' ${tree}/DEBIAN/control
      sed -i 's/"version": ".*"/"version": "99.0.0"/' ${tree}/usr/lib/killswitchd/package.json
      dpkg-deb --root-owner-group -Znone -b ${tree} ${next}`;
    await runHere('bash', ['-euc', script]);
    await host.must('apt-get install -y /srv/next.deb', 120_000);
    expect(await host.must('killswitchd version')).toContain('99.0.0');
    await host.must('apt-get install -y --allow-downgrades /srv/killswitchd_*.deb', 120_000);
    expect(await host.must('killswitchd version')).not.toContain('99.0.0');
    expect(await pidOf('killswitchd@main')).not.toBe(daemon);
    expect(await pidOf('bot')).toBe(bot);
    expect(await host.must('cat /etc/killswitchd/main.yaml')).toBe(CONFIG.trimEnd());
    const since = eventsOf(host).slice(before);
    for (const market of ['BTC_USDT', 'ETH_USDT'])
      expect(renewalsOf(since, market).length).toBeGreaterThan(1);
    expect([...ofKind(since, 'timer-deleted'), ...ofKind(since, 'timer-fired')]).toEqual([]);
  }, 180_000);

  it('is installed as well where a configuration has become wrong, and says that nothing is guarded', async () => {
    await host.must("sed -i 's/mode: beat/mode: baet/' /etc/killswitchd/main.yaml");
    const install = 'apt-get install -y --reinstall /srv/killswitchd_*.deb 2>&1';
    expect(await host.must(install, 120_000)).toContain('a daemon does not start, and guards nothing');
    await host.must("sed -i 's/mode: baet/mode: beat/' /etc/killswitchd/main.yaml");
    const active = async () => (await host.run('systemctl is-active killswitchd@main')).code === 0;
    await eventually('a daemon that runs again', 20_000, active);
  }, 150_000);

  it('guards to the end: the bot is killed, and the exchange cancels its orders', async () => {
    // A bot that was never heard by the new process would be waited for during its startup grace.
    const says = () => host.must('systemctl show -P StatusText killswitchd@main');
    await eventually('a beat to the new daemon', 20_000, async () => (await says()).includes('gave a sign'));
    const before = eventsOf(host).length;
    await host.must('systemctl kill -s KILL bot');
    const fired = () => marketsOf('timer-fired', before);
    await eventually('the timers to fire', 60_000, () => fired().length === 2);
    expect(fired()).toEqual(['BTC_USDT', 'ETH_USDT']);
  }, 90_000);

  it('goes without a trace when it is purged', async () => {
    await host.must('systemctl stop bot || true\napt-get purge -y killswitchd', 60_000);
    const journal = await host.must('journalctl -o cat -u killswitchd@main -u killswitchd-exchange');
    const daemonEnds = journal.lastIndexOf('Stopped killswitchd@main');
    expect(journal.indexOf('Stopping killswitchd-exchange')).toBeGreaterThan(daemonEnds);
    expect(daemonEnds).toBeGreaterThan(0);
    const others = ['/proc', '/srv', '/var/log/apt'].map((path) => `! -path "${path}/*"`).join(' ');
    expect(await host.must(`find / -xdev -name "*killswitchd*" ${others}`)).toBe('');
    // systemd forgets units a moment after it has read its files anew.
    const units = () => host.must('systemctl list-units --all --plain --no-legend "killswitchd*"');
    await eventually('no unit of it', 20_000, async () => (await units()) === '');
  }, 90_000);
});
