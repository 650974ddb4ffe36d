import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExchangeEvent } from '../../src/simulator/event-log.ts';
import { eventually, ROOT } from '../process/program.ts';
import { commandsUnder } from './deploy-guide.ts';
import { bootDebian, cloneTo, type DebianHost, runHere } from './systemd-host.ts';

export const DAEMON = 'killswitchd@main';
/** Waits until every market is armed. */
export const ARMED = 'killswitchd healthcheck --ready --exclude bots --wait 30';
export const CONFIG = '/etc/killswitchd/main.yaml';

/** A Debian on which the daemon is installed, and what can be seen and done there. */
export interface Installed extends DebianHost {
  /** A property of a unit, as `systemctl show` has it. */
  readonly show: (property: string, unit?: string) => Promise<string>;
  /** What the journal has of a unit. */
  readonly journal: (unit?: string) => Promise<string>;
  /** Unix milliseconds at which the unit became active, in whole seconds. */
  readonly activeAtMs: (unit?: string) => Promise<number>;
  /** What the exchange wrote down since then, Unix milliseconds. */
  readonly events: (fromMs?: number) => ExchangeEvent[];
  /** Has the exchange answer nothing but 503 for so long; 0 ends that. */
  readonly maintenance: (forMs: number) => Promise<string>;
  /** Has the exchange refuse a market; null ends that. */
  readonly refuse: (market: string | null) => Promise<string>;
  /** Waits for a status line. */
  readonly says: (what: RegExp) => Promise<unknown>;
  /** Changes the configuration by a command of sed. */
  readonly edit: (expression: string) => Promise<string>;
  /** Adds lines to the section [Service] of the daemon's unit and restarts it; without lines, takes them back. */
  readonly dropIn: (...lines: readonly string[]) => Promise<string>;
  /** Waits for a sign of the bot: one that has given none yet consents to no delete. */
  readonly signOfTheBot: () => Promise<unknown>;
  /** The process that has taken the place of this one and is ready. */
  readonly successorOf: (pid: string) => Promise<string>;
}

/** Boots a Debian, builds in a clean clone, and installs with the commands of the guide as they stand there. */
export async function installed(): Promise<Installed> {
  const host = await bootDebian();
  try {
    await install(host);
  } catch (error) {
    await host.end();
    throw error;
  }
  const show = (property: string, unit = DAEMON) => host.must(`systemctl show -P ${property} ${unit}`);
  return {
    ...host,
    show,
    journal: (unit = DAEMON) => host.must(`journalctl --no-pager -o cat -u ${unit}`),
    async activeAtMs(unit = DAEMON) {
      const at = await show('ActiveEnterTimestamp', unit);
      return Number(await host.must(`date -d '${at}' +%s`)) * 1000;
    },
    signOfTheBot: () =>
      eventually('a sign of the bot', 15_000, async () =>
        (await show('StatusText')).includes('default gave a sign') ? true : null,
      ),
    events: (fromMs = 0) => eventsOf(host).filter(({ atMs }) => atMs >= fromMs),
    maintenance: (forMs) => play(host, forMs === 0 ? null : { kind: 'maintenance', forMs }),
    refuse: (market) =>
      play(host, market === null ? null : { kind: 'refusal', status: 422, code: 31, match: { market } }),
    says: (what) =>
      eventually(String(what), 15_000, async () => (what.test(await show('StatusText')) ? true : null)),
    dropIn(...lines) {
      const folder = `/etc/systemd/system/${DAEMON}.service.d`;
      const text = ['[Service]', ...lines].join('\n');
      const change =
        lines.length === 0
          ? `rm -r ${folder}`
          : `mkdir ${folder}\ncat > ${folder}/test.conf <<'END'\n${text}\nEND`;
      return host.must(`${change}\nsystemctl daemon-reload\nsystemctl restart ${DAEMON}\n${ARMED}`);
    },
    successorOf: (pid) =>
      eventually('another process', 60_000, async () => {
        const now = await show('MainPID');
        const isUp = now !== '0' && now !== pid && (await show('ActiveState')) === 'active';
        return isUp && (await host.run(ARMED)).code === 0 ? now : null;
      }),
    edit: (expression) => host.must(`sed -i '${expression}' ${CONFIG}`),
  };
}

async function install(host: DebianHost): Promise<void> {
  const clone = mkdtempSync(join(tmpdir(), 'killswitchd-clone-'));
  try {
    cloneTo(clone, ROOT);
    for (const commands of commandsUnder('### Build')) {
      await runHere('bash', ['-euc', commands], clone);
    }
    copyFileSync(join(clone, 'killswitchd.tgz'), join(host.root, 'srv/killswitchd.tgz'));
  } finally {
    rmSync(clone, { recursive: true, force: true });
  }
  for (const commands of commandsUnder('### Install')) await host.must(`cd /srv\n${commands}`);
}

/** Debian packages as they are on this machine, which is of the same release: the host has no network. Nothing runs yet. */
export async function bring(host: DebianHost, ...packages: readonly string[]): Promise<void> {
  const list = join(host.root, 'srv/files');
  const script = `dpkg -L "$@" | sort -u | grep -vE '^/usr/share/(doc|man)/' > ${list}
    tar -C / --no-recursion -cf - -T ${list} | tar -xf - -C ${host.root}`;
  await runHere('bash', ['-euo', 'pipefail', '-c', script, 'bash', ...packages]);
}

/** Debian's Prometheus; nothing runs yet. */
export async function bringPrometheus(host: DebianHost): Promise<void> {
  await bring(host, 'prometheus', 'prometheus-alertmanager');
  await host.must(`useradd --system --user-group --home-dir /var/lib/prometheus prometheus
    chown -R prometheus:prometheus /var/lib/prometheus
    systemctl daemon-reload`);
}

export function eventsOf({ root }: DebianHost): ExchangeEvent[] {
  const lines = readFileSync(join(root, 'var/log/private/killswitchd-exchange/events.jsonl'), 'utf8').split(
    '\n',
  );
  return lines.slice(0, -1).map((line) => JSON.parse(line) as ExchangeEvent);
}

/** Adds a fault to the exchange; null ends all of them. */
function play(host: DebianHost, fault: object | null): Promise<string> {
  const init =
    fault === null
      ? { method: 'DELETE' }
      : {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(fault),
        };
  const call = `fetch('http://127.0.0.1:17480/simulator/faults', ${JSON.stringify(init)}).then(({ ok }) => ok || process.exit(1))`;
  return host.must(`cat > /tmp/fault.mjs <<'END'\n${call}\nEND\n/opt/killswitchd/bin/node /tmp/fault.mjs`);
}
