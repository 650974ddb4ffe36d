import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, type TestContext } from 'vitest';
import { eventually, sleep } from '../process/program.ts';
import { type Events, ofKind } from '../process/simulated-exchange.ts';
import { compileInto, type PodStage, stagePod } from './kubernetes-stage.ts';
import { type ContainerSpec, daemonOf, KUBERNETES, only, render } from './manifests.ts';

/** What the simulated exchange accepts. */
const DEMO = { 'api-key': 'demo-key', 'api-secret': 'demo-secret' };
const BOT = [
  '/nodejs/bin/node',
  '-e',
  "require('http').createServer((_, answer) => answer.end()).listen(8080)",
];
const directory = mkdtempSync(join(tmpdir(), 'killswitchd-pods-'));
const dist = join(directory, 'dist');

beforeAll(() => compileInto(dist));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function stage(
  context: TestContext,
  overlay: string,
  podName: string,
  secret: Readonly<Record<string, string>> = DEMO,
): Promise<PodStage> {
  const pod = await stagePod(directory, dist, { overlay, podName, secret });
  context.onTestFinished(() => pod.end());
  return pod;
}

const succeeds = (pod: PodStage, container: ContainerSpec, which: 'readinessProbe' | 'livenessProbe') =>
  eventually(`${which}`, 30_000, async () => {
    const status = await pod.probe(container, container[which]);
    return status >= 200 && status < 400 ? true : null;
  });

/** The container that holds the bot back: runs it, and waits until it has ended well. */
async function armed(pod: PodStage): Promise<void> {
  const waits = pod.start(pod.spec.initContainers?.at(-1) ?? daemonOf(pod.spec));
  expect(await waits.exit(30_000), waits.output()).toBe(0);
}

it('sidecar: the bot starts once all is armed, beats as the same user, and its goodbye deletes the timers', async (context) => {
  const pod = await stage(context, 'sidecar', 'sample-bot-5d4f-x2x9z');
  const [bot] = pod.spec.containers;
  const sidecar = daemonOf(pod.spec);
  if (bot === undefined) throw new Error('the pod has no bot');

  const daemon = pod.start(sidecar);
  await succeeds(pod, sidecar, 'livenessProbe');
  const waits = armed(pod);
  expect(await Promise.race([waits, sleep(2000).then(() => 'waits')])).toBe('waits');
  await pod.startExchange();
  await waits;
  const trader = pod.start(bot);
  await eventually(`a beat\n${daemon.output()}`, 20_000, () =>
    trader.output().includes('armed: orders may go out') ? true : null,
  );
  expect((await pod.ask('/metrics')).body).toContain('killswitch_bot_alive{bot="default"} 1');

  pod.changeConfig((text) => text.replace('[BTC_USDT, ETH_USDT]', '[BTC_USDT, ETH_USDT, SOL_USDT]'));
  await eventually(
    'the market of the new ConfigMap',
    30_000,
    () => ofKind(pod.events(), 'timer-armed', 'SOL_USDT')[0] ?? null,
  );

  await trader.signal('SIGTERM');
  expect(await trader.exit(), trader.output()).toBe(0);
  expect(trader.output()).toContain('goodbye');
  const deleted = () =>
    ofKind(pod.events(), 'timer-deleted')
      .map(({ market }) => market)
      .sort();
  expect(deleted()).toEqual(['BTC_USDT', 'ETH_USDT', 'SOL_USDT']);
  expect(daemon.hasExited()).toBe(false);
  await daemon.signal('SIGTERM');
  expect(await daemon.exit(), daemon.output()).toBe(0);
  expect(ofKind(pod.events(), 'timer-fired')).toEqual([]);
});

it('sidecar: told to stop beside a living bot it deletes the timers inside of the time that the pod has', async (context) => {
  const pod = await stage(context, 'sidecar', 'sample-bot-5d4f-k8k8k');
  const sidecar = daemonOf(pod.spec);
  await pod.startExchange();
  const daemon = pod.start(sidecar);
  await armed(pod);
  for (const container of pod.spec.containers) pod.start(container);
  await eventually('a beat', 20_000, async () =>
    (await pod.ask('/metrics')).body.includes('killswitch_bot_alive{bot="default"} 1') ? true : null,
  );
  await daemon.signal('SIGTERM');
  expect(await daemon.exit(pod.spec.terminationGracePeriodSeconds * 1000), daemon.output()).toBe(0);
  expect(
    ofKind(pod.events(), 'timer-deleted')
      .map(({ market }) => market)
      .sort(),
  ).toEqual(['BTC_USDT', 'ETH_USDT']);
});

it('sidecar: a bot of another user is let in where control.access is group, and not before', async (context) => {
  const pod = await stage(context, 'sidecar', 'sample-bot-5d4f-u1u1u');
  const sidecar = daemonOf(pod.spec);
  await pod.startExchange();
  const stranger = pod.spec.containers.map((container) => ({
    ...container,
    securityContext: { ...container.securityContext, runAsUser: 1000, runAsGroup: 1000 },
  }));
  const first = pod.start(sidecar);
  await armed(pod);
  const [shut] = stranger.map((container) => pod.start(container));
  await eventually('the refusal', 20_000, () => (shut?.output().includes('EACCES') ? true : null));
  await shut?.signal('SIGKILL');
  await first.signal('SIGTERM');
  // No bot was ever heard: its timers are left to fire.
  expect(await first.exit(), first.output()).toBe(75);

  pod.changeConfig((text) => `${text}control: { access: group }\n`);
  pod.start(sidecar);
  await armed(pod);
  const [admitted] = stranger.map((container) => pod.start(container));
  await eventually('a beat', 20_000, () =>
    admitted?.output().includes('armed: orders may go out') ? true : null,
  );
});

it('standalone: arms while a bot elsewhere answers, and hands its timers on when it is told to stop', async (context) => {
  const pod = await stage(context, 'standalone', 'killswitchd-7c9d-abcde');
  const container = daemonOf(pod.spec);
  await pod.startExchange();
  pod.startOther(BOT);
  const daemon = pod.start(container);
  await succeeds(pod, container, 'readinessProbe');
  await succeeds(pod, container, 'livenessProbe');
  await eventually('the bot', 20_000, async () =>
    (await pod.ask('/metrics')).body.includes('killswitch_bot_alive{bot="default"} 1') ? true : null,
  );
  const before = ofKind(pod.events(), 'timer-updated').length;
  await daemon.signal('SIGTERM');
  expect(await daemon.exit(), daemon.output()).toBe(0);
  expect(ofKind(pod.events(), 'timer-updated').length).toBeGreaterThanOrEqual(before + 2);
  expect(ofKind(pod.events(), 'timer-deleted')).toEqual([]);
});

it('pod monitor and network policy name the port and the path under which the daemon has its metrics, which fit its memory', async (context) => {
  const pod = await stage(context, 'sidecar', 'sample-bot-5d4f-m0m0m');
  const sidecar = daemonOf(pod.spec);
  await pod.startExchange();
  pod.start(sidecar);
  await armed(pod);
  const monitor = only(render(join(KUBERNETES, 'pod-monitor')), 'PodMonitor') as unknown as {
    spec: { podMetricsEndpoints: { port: string; path: string }[] };
  };
  for (const { port, path } of monitor.spec.podMetricsEndpoints) {
    const number = sidecar.ports?.find(({ name }) => name === port)?.containerPort;
    expect(number).toBe(17477);
    const { body } = await pod.ask(path);
    expect(body).toContain('killswitch_ready 1');
    const usedBytes = Number(/^process_resident_memory_bytes (\S+)$/m.exec(body)?.[1]);
    const mebibytes = (quantity: unknown) => Number(/^(\d+)Mi$/.exec(String(quantity))?.[1]);
    expect(usedBytes / 2 ** 20).toBeLessThan(mebibytes(sidecar.resources.limits['memory']) * 0.75);
  }
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
    const pod = await stage(context, 'fleet', name, secret);
    const container = daemonOf(pod.spec);
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
    await daemon.signal('SIGTERM');
    expect(await daemon.exit(), daemon.output()).toBe(0);
    expect(ofKind(pod.events(), 'timer-deleted')).toEqual([]);
    const renewed = new Set(ofKind(pod.events(), 'timer-updated').map(({ market }) => market));
    expect([...renewed].sort()).toEqual(own.sort());
  }
  const markets = ['ADA', 'BTC', 'DOGE', 'DOT', 'ETH', 'LTC', 'SOL', 'XRP'].map((base) => `${base}_USDT`);
  expect(armed.sort()).toEqual(markets);
});

it('trial: runs as it stands, and ends in the order of a pod: the bot, the daemon, the exchange', async (context) => {
  const pod = await stage(context, 'trial', 'sample-bot-5d4f-t0t0t');
  const sidecars = [];
  for (const container of pod.spec.initContainers ?? []) {
    if (container.restartPolicy === 'Always') sidecars.unshift(pod.start(container));
    else await armed(pod);
  }
  const [bot] = pod.spec.containers.map((container) => pod.start(container));
  await eventually('a beat', 20_000, () =>
    bot?.output().includes('armed: orders may go out') ? true : null,
  );
  const page = await pod.ask('/');
  expect(page.body).toContain('BTC_USDT');
  await bot?.signal('SIGTERM');
  expect(await bot?.exit()).toBe(0);
  const { body } = await pod.ask('/simulator/events', 17480);
  expect(ofKind(JSON.parse(body) as Events, 'timer-deleted')).toHaveLength(2);
  for (const container of sidecars) {
    await container.signal('SIGTERM');
    expect(await container.exit(), container.output()).toBe(0);
  }
});
