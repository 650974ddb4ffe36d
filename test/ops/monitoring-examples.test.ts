import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { deployed, readDeployed } from '../deploy/rules.ts';
import { guideUnder } from '../docs/sections.ts';
import { ROOT } from '../process/program.ts';
import { scratch } from './scratch.ts';

const directory = scratch();
const ALERTMANAGER = deployed('prometheus/alertmanager.yaml');
const run = (command: string, ...args: readonly string[]): string =>
  execFileSync(command, args, { encoding: 'utf8', stdio: 'pipe' });

test.each([
  ['KillswitchDown', 'critical', 'pager'],
  ['KillswitchOutage', 'warning', 'tickets'],
  ['KillswitchWatchdog', 'info', 'watchdog'],
  ['SomethingElse', 'critical', 'tickets'],
])('%s of severity %s goes to %s', (alert, severity, receiver) => {
  const labels = [`alertname=${alert}`, `severity=${severity}`];
  expect(run('amtool', 'config', 'routes', 'test', '--config.file', ALERTMANAGER, ...labels).trim()).toBe(
    receiver,
  );
});

test('the scrape job for Kubernetes takes a sidecar with the labels that the rules rely on, and leaves others alone', () => {
  /** What becomes of a pod's container, with its labels handed over instead of discovered. */
  const discovered = (labels: object): unknown => {
    const { scrape_configs } = parse(readDeployed('prometheus/scrape-kubernetes.yaml')) as {
      scrape_configs: { kubernetes_sd_configs: unknown; job_name: string }[];
    };
    const { kubernetes_sd_configs: discovery, ...job } = scrape_configs[0] ?? { job_name: '' };
    expect(discovery).toEqual([{ role: 'pod' }]);
    const meta = Object.entries(labels).map(([name, value]) => [`__meta_kubernetes_${name}`, value]);
    const targets = [{ targets: ['10.1.2.3:17477'], labels: Object.fromEntries(meta) }];
    const file = join(directory, 'kubernetes.yaml');
    writeFileSync(file, stringify({ scrape_configs: [{ ...job, static_configs: targets }] }));
    const said = run('promtool', 'check', 'service-discovery', '--timeout=1s', file, job.job_name);
    return (JSON.parse(said.slice(said.indexOf('['))) as { labels: object }[])[0]?.labels;
  };
  const sidecar = {
    pod_container_port_name: 'killswitchd',
    pod_container_init: 'true',
    pod_phase: 'Running',
    namespace: 'trading',
    pod_name: 'maker-5f7c-abcde',
    pod_node_name: 'node-3',
    pod_label_app_kubernetes_io_instance: 'maker',
  };
  expect(discovered(sidecar)).toMatchObject({
    job: 'killswitchd',
    instance: '10.1.2.3:17477',
    namespace: 'trading',
    pod: 'maker-5f7c-abcde',
    node: 'node-3',
    account: 'maker',
  });
  const others = [{ pod_container_port_name: 'http' }, { pod_phase: 'Succeeded' }, { pod_phase: 'Failed' }];
  for (const other of others) expect(discovered({ ...sidecar, ...other })).toEqual({});
});

test('the commands of deploy/README.md put the dashboards where Grafana looks for them', () => {
  const [install = ''] = guideUnder('## Grafana').map((commands) =>
    commands
      .replace('systemctl restart grafana-server', '')
      .replaceAll(/ \/(etc|var)\//g, ` ${directory}/$1/`),
  );
  const provisioning = join(directory, 'etc/grafana/provisioning');
  for (const folder of ['dashboards', 'datasources'])
    mkdirSync(join(provisioning, folder), { recursive: true });
  run('sh', '-ec', `cd ${ROOT}\n${install}`);
  const { providers } = parse(readFileSync(join(provisioning, 'dashboards/killswitchd.yaml'), 'utf8')) as {
    providers: { options: { path: string } }[];
  };
  const dashboards = providers.flatMap(({ options }) => readdirSync(join(directory, options.path)));
  expect(dashboards).toEqual(['killswitchd-bot.json', 'killswitchd-fleet.json']);
});
