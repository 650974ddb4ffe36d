import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { guideUnder } from '../docs/sections.ts';
import { folderFor } from '../liveness/started.ts';
import type { Scope } from '../process/harness.ts';
import { eventually } from '../process/program.ts';
import { eventsIn } from '../process/simulated-exchange.ts';
import { bootDebian, cloneTo, type DebianHost, runHere } from './systemd-host.ts';

export const DAEMON = 'killswitchd@main';
/** Waits until every market is armed. */
export const ARMED = 'killswitchd healthcheck --ready --exclude bots --wait 30';
export const CONFIG = '/etc/killswitchd/main.yaml';

export type Installed = Awaited<ReturnType<typeof installed>>;

/**
 * Boots a Debian, builds in a clean clone, and installs with the commands of the guide as they stand there. Returns what
 * can be seen and done on it.
 */
export async function installed(scope: Scope) {
  const host = await bootDebian(scope);
  await install(host, cloneTo(folderFor(scope)));
  /** A property of a unit, as `systemctl show` has it. */
  const show = (property: string, unit = DAEMON) => host.must(`systemctl show -P ${property} ${unit}`);
  /** Waits for a status line. */
  const says = (what: RegExp) =>
    eventually(String(what), 15_000, async () => what.test(await show('StatusText')));
  return {
    ...host,
    show,
    says,
    /** What the journal has of a unit. */
    journal: (unit = DAEMON) => host.must(`journalctl --no-pager -o cat -u ${unit}`),
    /** Unix milliseconds at which a unit became active, in whole seconds. */
    async activeAtMs(unit: string) {
      const at = await show('ActiveEnterTimestamp', unit);
      return Number(await host.must(`date -d '${at}' +%s`)) * 1000;
    },
    /** Waits for a sign of the bot: one that has given none yet consents to no delete. */
    signOfTheBot: () => says(/default gave a sign/),
    /** What the exchange wrote down since then, Unix milliseconds. */
    events: (fromMs = 0) => eventsOf(host).filter(({ atMs }) => atMs >= fromMs),
    /** Has the exchange answer nothing but 503 for so long; 0 ends that. */
    maintenance: (forMs: number) => play(host, forMs === 0 ? null : { kind: 'maintenance', forMs }),
    /** Has the exchange refuse a market; null ends that. */
    refuse: (market: string | null) =>
      play(host, market === null ? null : { kind: 'refusal', status: 422, code: 31, match: { market } }),
    /** Adds lines to the section [Service] of the daemon's unit and restarts it; without lines, takes them back. */
    dropIn(...lines: readonly string[]) {
      const folder = `/etc/systemd/system/${DAEMON}.service.d`;
      const text = ['[Service]', ...lines].join('\n');
      const add = `mkdir ${folder}\ncat > ${folder}/test.conf <<'END'\n${text}\nEND`;
      const change = lines.length === 0 ? `rm -r ${folder}` : add;
      return host.must(`${change}\nsystemctl daemon-reload\nsystemctl restart ${DAEMON}\n${ARMED}`);
    },
    /** The process that has taken the place of this one and is ready. */
    successorOf: (pid: string) =>
      eventually('another process', 60_000, async () => {
        const now = await show('MainPID');
        const isUp = now !== '0' && now !== pid && (await show('ActiveState')) === 'active';
        return isUp && (await host.run(ARMED)).code === 0 ? now : null;
      }),
    /** Changes the configuration by a command of sed. */
    edit: (expression: string) => host.must(`sed -i '${expression}' ${CONFIG}`),
    /** Runs `work`, and puts the configuration back as it was before, for a daemon that still runs as well. */
    async withOtherConfig(work: () => Promise<void>) {
      const config = await host.must(`cat ${CONFIG}`);
      try {
        await work();
      } finally {
        await host.must(`cat > ${CONFIG} <<'END'\n${config}\nEND
          ! systemctl is-active -q ${DAEMON} || systemctl reload ${DAEMON}`);
      }
    },
  };
}

async function install(host: DebianHost, clone: string): Promise<void> {
  for (const commands of guideUnder('### Build')) await runHere('bash', ['-euc', commands], clone);
  copyFileSync(join(clone, 'killswitchd.tgz'), join(host.root, 'srv/killswitchd.tgz'));
  for (const commands of guideUnder('### Install')) await host.must(`cd /srv\n${commands}`);
}

/** Debian packages as they are on this machine, which is of the same release: the host has no network. Nothing runs yet. */
export async function bring(host: DebianHost, ...packages: readonly string[]): Promise<void> {
  const list = join(host.root, 'srv/files');
  const script = `dpkg -L "$@" | sort -u | grep -vE '^/usr/share/(doc|man)/' > ${list}
    tar -C / --no-recursion -cf - -T ${list} | tar -xf - -C ${host.root}`;
  await runHere('bash', ['-euo', 'pipefail', '-c', script, 'bash', ...packages]);
}

export const eventsOf = ({ root }: DebianHost) =>
  eventsIn(join(root, 'var/log/private/killswitchd-exchange/events.jsonl'));

/** Adds a fault to the exchange; null ends all of them. */
function play(host: DebianHost, fault: object | null): Promise<string> {
  const headers = { 'content-type': 'application/json' };
  const add = { method: 'POST', headers, body: JSON.stringify(fault) };
  const init = fault === null ? { method: 'DELETE' } : add;
  const call = `fetch('http://127.0.0.1:17480/simulator/faults', ${JSON.stringify(init)}).then(({ ok }) => ok || process.exit(1))`;
  return host.must(`cat > /tmp/fault.mjs <<'END'\n${call}\nEND\n/opt/killswitchd/bin/node /tmp/fault.mjs`);
}
