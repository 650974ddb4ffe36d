import { join } from 'node:path';
import { beforeAll, expect, it, type TestContext } from 'vitest';
import { eventually, sleep } from '../process/program.ts';
import { type Events, ofKind } from '../process/simulated-exchange.ts';
import type { Container } from './container.ts';
import { compileInto, type PodStage, stagePod } from './kubernetes-stage.ts';
import { type ContainerSpec, daemonOf, KUBERNETES, type Labels, only, render } from './manifests.ts';
import { scratch } from './scratch.ts';

/** What the simulated exchange accepts. */
const DEMO = { 'api-key': 'demo-key', 'api-secret': 'demo-secret' };
const SERVE = "require('http').createServer((_, answer) => answer.end()).listen(8080)";
const BOT = ['/nodejs/bin/node', '-e', SERVE];
const ALIVE = 'killswitch_bot_alive{bot="default"} 1';
const directory = scratch('pods');
const dist = join(directory, 'dist');

beforeAll(() => compileInto(dist));

async function stage(context: TestContext, overlay: string, podName: string, secret: Labels = DEMO) {
  const pod = await stagePod(directory, dist, { overlay, podName, secret });
  context.onTestFinished(() => pod.end());
  const container = daemonOf(pod.spec);
  const deleted = () => ofKind(pod.events(), 'timer-deleted').map(({ market }) => market);
  return { pod, container, deleted };
}

const isSaid = (container: Container | undefined, what: string) =>
  eventually(`${what}\n${container?.output()}`, 20_000, () => container?.output().includes(what));
const isTrading = (bot: Container | undefined) => isSaid(bot, 'armed: orders may go out');
const isBotAlive = (pod: PodStage) =>
  eventually('a bot that lives', 20_000, async () => (await pod.ask('/metrics')).body.includes(ALIVE));

const succeeds = (pod: PodStage, container: ContainerSpec, which: 'readinessProbe' | 'livenessProbe') =>
  eventually(`${which}`, 30_000, async () => {
    const status = await pod.probe(container, container[which]);
    return status >= 200 && status < 400;
  });

/** The container that holds the bot back: runs it, and waits until it has ended well. */
async function armed(pod: PodStage): Promise<void> {
  const waits = pod.start(pod.spec.initContainers?.at(-1) ?? daemonOf(pod.spec));
  expect(await waits.exit(30_000), waits.output()).toBe(0);
}

async function stops(container: Container, withinMs?: number): Promise<void> {
  await container.signal('SIGTERM');
  expect(await container.exit(withinMs), container.output()).toBe(0);
}

it('sidecar: the bot starts once all is armed and beats as the same user; its goodbye deletes the timers, and so does a stop beside it', async (context) => {
  const { pod, container, deleted } = await stage(context, 'sidecar', 'sample-bot-5d4f-x2x9z');
  const start = () => pod.spec.containers.map((own) => pod.start(own));
  const daemon = pod.start(container);
  await succeeds(pod, container, 'livenessProbe');
  const waits = armed(pod);
  expect(await Promise.race([waits, sleep(2000).then(() => 'waits')])).toBe('waits');
  await pod.startExchange();
  await waits;
  const [trader] = start();
  await isTrading(trader);
  expect((await pod.ask('/metrics')).body).toContain(ALIVE);
  await findsMetrics(pod, container);

  pod.changeConfig((text) => text.replace('[BTC_USDT, ETH_USDT]', '[BTC_USDT, ETH_USDT, SOL_USDT]'));
  await eventually(
    'the market of the new ConfigMap',
    30_000,
    () => ofKind(pod.events(), 'timer-armed', 'SOL_USDT')[0] ?? null,
  );
  await trader?.signal('SIGTERM');
  expect([await trader?.exit(), trader?.output()]).toEqual([0, expect.stringContaining('goodbye')]);
  const all = ['BTC_USDT', 'ETH_USDT', 'SOL_USDT'];
  expect(deleted().sort()).toEqual(all);
  expect(daemon.hasExited()).toBe(false);

  await isTrading(start()[0]);
  await isBotAlive(pod);
  await stops(daemon, pod.spec.terminationGracePeriodSeconds * 1000);
  expect(deleted().slice(all.length).sort()).toEqual(all);
  expect(ofKind(pod.events(), 'timer-fired')).toEqual([]);
});

/** The pod monitor names the port and the path under which the daemon has its metrics, and they fit its memory. */
async function findsMetrics(pod: PodStage, sidecar: ContainerSpec): Promise<void> {
  const monitor = only(render(join(KUBERNETES, 'pod-monitor')), 'PodMonitor') as unknown as {
    spec: { podMetricsEndpoints: { port: string; path: string }[] };
  };
  expect(monitor.spec.podMetricsEndpoints).toHaveLength(1);
  for (const { port, path } of monitor.spec.podMetricsEndpoints) {
    const number = sidecar.ports?.find(({ name }) => name === port)?.containerPort;
    expect(number).toBe(17477);
    const { body } = await pod.ask(path);
    expect(body).toContain('killswitch_ready 1');
    const usedBytes = Number(/^process_resident_memory_bytes (\S+)$/m.exec(body)?.[1]);
    const [, mebibytes] = /^(\d+)Mi$/.exec(String(sidecar.resources.limits['memory'])) ?? [];
    expect(usedBytes / 2 ** 20).toBeLessThan(Number(mebibytes) * 0.75);
  }
}

it('sidecar: a bot of another user is let in where control.access is group, and not before', async (context) => {
  const { pod, container } = await stage(context, 'sidecar', 'sample-bot-5d4f-u1u1u');
  await pod.startExchange();
  const stranger = pod.spec.containers.map((own) => ({
    ...own,
    securityContext: { ...own.securityContext, runAsUser: 1000, runAsGroup: 1000 },
  }));
  const first = pod.start(container);
  await armed(pod);
  const [shut] = stranger.map((own) => pod.start(own));
  await isSaid(shut, 'EACCES');
  await shut?.signal('SIGKILL');
  await first.signal('SIGTERM');
  // No bot was ever heard: its timers are left to fire.
  expect(await first.exit(), first.output()).toBe(75);

  pod.changeConfig((text) => `${text}control: { access: group }\n`);
  pod.start(container);
  await armed(pod);
  const [admitted] = stranger.map((own) => pod.start(own));
  await isTrading(admitted);
});

it('standalone: arms while a bot elsewhere answers, and hands its timers on when it is told to stop', async (context) => {
  const { pod, container, deleted } = await stage(context, 'standalone', 'killswitchd-7c9d-abcde');
  await pod.startExchange();
  pod.startOther(BOT);
  const daemon = pod.start(container);
  await succeeds(pod, container, 'readinessProbe');
  await succeeds(pod, container, 'livenessProbe');
  await isBotAlive(pod);
  const before = ofKind(pod.events(), 'timer-updated').length;
  await stops(daemon);
  expect(ofKind(pod.events(), 'timer-updated').length).toBeGreaterThanOrEqual(before + 2);
  expect(deleted()).toEqual([]);
});

it('fleet: every market is armed by one shard, each with its own key, and handed on', async (context) => {
  const names = ['killswitchd-0', 'killswitchd-1', 'killswitchd-2'];
  const secret = Object.fromEntries(
    names.flatMap((name) => [
      [`${name}.api-key`, `key-of-${name}`],
      [`${name}.api-secret`, `secret-of-${name}`],
    ]),
  );
  const armed: string[] = [];
  for (const name of names) {
    const { pod, container, deleted } = await stage(context, 'fleet', name, secret);
    await pod.startExchange({
      KILLSWITCHD_API_KEY: `key-of-${name}`,
      KILLSWITCHD_API_SECRET: `secret-of-${name}`,
    });
    pod.startOther(BOT);
    for (const first of pod.spec.initContainers ?? [])
      expect(await pod.start(first).exit(), first.name).toBe(0);
    const daemon = pod.start(container);
    await succeeds(pod, container, 'readinessProbe');
    await succeeds(pod, container, 'livenessProbe');
    expect(pod.filesOf('killswitchd-key')).toEqual([`${name}.api-key`, `${name}.api-secret`]);
    const own = ofKind(pod.events(), 'timer-armed').map(({ market }) => market);
    expect(own).not.toEqual([]);
    armed.push(...own);
    await stops(daemon);
    expect(deleted()).toEqual([]);
    const renewed = new Set(ofKind(pod.events(), 'timer-updated').map(({ market }) => market));
    expect([...renewed].sort()).toEqual(own.sort());
  }
  const markets = ['ADA', 'BTC', 'DOGE', 'DOT', 'ETH', 'LTC', 'SOL', 'XRP'].map((base) => `${base}_USDT`);
  expect(armed.sort()).toEqual(markets);
});

it('trial: runs as it stands, and ends in the order of a pod: the bot, the daemon, the exchange', async (context) => {
  const { pod } = await stage(context, 'trial', 'sample-bot-5d4f-t0t0t');
  const sidecars = [];
  for (const container of pod.spec.initContainers ?? []) {
    if (container.restartPolicy === 'Always') sidecars.unshift(pod.start(container));
    else await armed(pod);
  }
  const [bot] = pod.spec.containers.map((container) => pod.start(container));
  await isTrading(bot);
  expect((await pod.ask('/')).body).toContain('BTC_USDT');
  await bot?.signal('SIGTERM');
  expect(await bot?.exit()).toBe(0);
  const { body } = await pod.ask('/simulator/events', 17480);
  expect(ofKind(JSON.parse(body) as Events, 'timer-deleted')).toHaveLength(2);
  for (const container of sidecars) await stops(container);
});
