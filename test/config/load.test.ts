import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it, test } from 'vitest';
import { toCoreSettings } from '../../src/config/config.ts';
import type { Loaded } from '../../src/config/load.ts';
import type { Command } from '../../src/config/meaning.ts';
import { printConfig } from '../../src/config/print.ts';
import { FileSchema, type SchemaNode } from '../../src/config/schema.ts';
import { ENVIRONMENT, FILE, fileOf, load, loadWell, problemsOf, SECRETS } from './fixture.ts';

it('a configuration lets flags win over the environment, that over the file, and that over the defaults', () => {
  const env = { KILLSWITCHD_LOG_LEVEL: 'error', KILLSWITCHD_SHUTDOWN_POLICY: 'keep' };
  const { config, sources } = loadWell(FILE, env, { logLevel: 'debug' });
  expect([config.log.level, sources.get('log.level')]).toEqual(['debug', 'flag']);
  expect([config.shutdown.policy, sources.get('shutdown.policy')]).toEqual(['keep', 'environment']);
  expect([config.defaults.timeoutSeconds, sources.get('defaults.timeoutSeconds')]).toEqual([40, 'file']);
  expect([config.ping.everySeconds, sources.get('ping.everySeconds')]).toEqual([5, 'default']);
});

it('a configuration gives a market its own settings, and what it does not say from the defaults', () => {
  const { config, sources } = loadWell(FILE, { KILLSWITCHD_TIMEOUT_SECONDS: '20' });
  const plain = { types: null, renewEverySeconds: null, bot: 'default' };
  expect(config.markets).toEqual([
    { ...plain, market: 'BTC_USDT', timeoutSeconds: 20 },
    { ...plain, market: 'ETH_USDT', timeoutSeconds: 30, types: ['spot', 'margin'], bot: 'maker' },
  ]);
  const of = ['[0].market', '[0].timeoutSeconds', '[1].timeoutSeconds', '[0].types'];
  const found = of.map((path) => sources.get(`markets${path}`));
  expect(found).toEqual(['file', 'environment', 'file', 'default']);
});

it('a configuration replaces all markets of the file by those of the environment', () => {
  const { config, sources } = loadWell(FILE, { KILLSWITCHD_MARKETS: ' SOL_USDT , LTC_USDT::futures' });
  expect(config.markets).toMatchObject([
    { market: 'SOL_USDT', timeoutSeconds: 40, types: null },
    { market: 'LTC_USDT', timeoutSeconds: 40, types: ['futures'] },
  ]);
  expect(sources.get('markets[1].types')).toBe('environment');
});

it('a configuration needs no file where the environment says enough, and tells the core in milliseconds, with every default', () => {
  const env = { ...ENVIRONMENT, KILLSWITCHD_MARKETS: 'BTC_USDT:30:spot,ETH_USDT' };
  const { config } = loadWell(null, env);
  expect(config.file).toBeNull();
  const bases = ['https://exchange.example'];
  expect(config.exchange.baseUrls).toEqual(bases);
  expect(toCoreSettings(config, bases)).toEqual({
    markets: [
      { market: 'BTC_USDT', timeoutMs: 30_000, types: ['spot'], renewEveryMs: null, bot: 'default' },
      { market: 'ETH_USDT', timeoutMs: 60_000, types: null, renewEveryMs: null, bot: 'default' },
    ],
    nonce: 'increasing',
    bases,
    sameAccount: false,
    budget: { requests: 5000, windowMs: 10_000 },
    connections: 64,
    liveness: { mode: 'none', ttlMs: 15_000, startupGraceMs: 60_000, onStale: 'expire' },
    onLapse: 'rearm',
    shutdown: { policy: 'delete', budgetMs: 8000 },
    ping: { everyMs: 5000, timeoutMs: 3000 },
    cancellationDelayMs: 0,
    requestLifetimeMs: 10_000,
    elsewhere: [],
  });
});

it.each(['', '# markets: [BTC_USDT]\n', '{}'])(
  'a configuration file that is empty is named, unless the environment is enough: %j',
  (text) => {
    expect(problemsOf(load(text))).toMatch(
      /^\S+killswitchd\.yaml:1:1: the configuration file is empty, but for comments$/m,
    );
    expect(problemsOf(load(text, ENVIRONMENT))).toBe('');
  },
);

it('a configuration prefers the file that a flag names to that of the environment, and reads JSON as well as YAML', () => {
  const exchange = { baseUrls: ['http://[::1]:8080/'] };
  const more = { $schema: './killswitchd.schema.json', markets: ['BTC_USDT'], liveness: { mode: 'none' } };
  const text = JSON.stringify({ exchange, ...more });
  const { config } = loadWell(text, { KILLSWITCHD_CONFIG: 'no-such-file.yaml' });
  expect(config.file).toMatch(/killswitchd\.yaml$/);
  expect(config.exchange.baseUrls).toEqual(['http://[::1]:8080']);
});

it('a configuration leaves the variables of clients, commands and Kubernetes to them', () => {
  const others = {
    KILLSWITCHD_CONTROL: 'no address',
    KILLSWITCHD_BOT: 'no such bot',
    // Kubernetes makes them out of a service called killswitchd.
    KILLSWITCHD_SERVICE_HOST: '10.0.0.7',
    KILLSWITCHD_SERVICE_PORT_WEB: '17477',
    KILLSWITCHD_PORT: 'tcp://10.0.0.7:17477',
    KILLSWITCHD_PORT_17477_TCP_ADDR: '10.0.0.7',
  };
  const ofService = {
    KILLSWITCHD_SERVICE_SERVICE_HOST: '10.0.0.8',
    KILLSWITCHD_SERVICE_SERVICE_PORT: '17477',
    KILLSWITCHD_SERVICE_PORT: 'tcp://10.0.0.8:17477',
    KILLSWITCHD_SERVICE_PORT_17477_TCP_ADDR: '10.0.0.8',
  };
  const shown = (env: Record<string, string>) => JSON.stringify(loadWell(null, env).config);
  expect(shown({ ...ENVIRONMENT, ...others })).toBe(shown(ENVIRONMENT));
  expect(shown({ ...ENVIRONMENT, ...ofService })).toBe(shown(ENVIRONMENT));
  const problems = problemsOf(load(null, { ...ENVIRONMENT, KILLSWITCHD_PORT: '17477' }));
  expect(problems).toContain('KILLSWITCHD_PORT: unknown variable');
});

it('a configuration warns about what is allowed and yet worth a thought', () => {
  const two = '[https://exchange.example, https://eu.exchange.example]';
  expect(loadWell(FILE.replace('[https://exchange.example]', two)).warnings).toEqual([
    'exchange.baseUrls: only https://exchange.example is used for renewals, the others only with exchange.sameAccount: true',
    'liveness.mode: none: nobody watches the bot; timers are renewed for as long as this daemon runs, even when the bot is dead',
  ]);
});

it.each([
  ['notify: { format: slack, name: main }', 'notify.format, notify.name', 'notify.urlFile'],
  ['notify: { pingEverySeconds: 300 }', 'notify.pingEverySeconds', 'notify.pingUrlFile'],
  [
    'control: { access: group, listen: ["127.0.0.1:1"] }',
    'control.access',
    'a unix: socket in control.listen',
  ],
  // What the example says of every key: the default.
  ['notify: { format: json, name: killswitchd, pingEverySeconds: 60 }\ncontrol: { access: owner }'],
  ['control: { access: group, listen: ["unix:/run/control.sock"] }'],
])(
  'a configuration warns about what does nothing without another key: %s',
  (text, keys = '', needed = '') => {
    const idle = loadWell(`${FILE}${text}\n`).warnings.filter((line) => line.includes('of no meaning'));
    expect(idle).toEqual(keys === '' ? [] : [`${keys}: of no meaning without ${needed}`]);
  },
);

it('a configuration takes plain http to another host, and a control address that others reach, only where asked to, and says so', () => {
  const plain = FILE.replace('[https://exchange.example]', '[http://exchange:17480], allowPlainHttp: true');
  const readable = /^exchange.allowPlainHttp: .*http:\/\/exchange:17480 can read the API key/m;
  expect(loadWell(plain).warnings.join('\n')).toMatch(readable);
  expect(problemsOf(load(plain.replace('true', 'false')))).toContain('which is not encrypted');

  const control = { KILLSWITCHD_CONTROL_LISTEN: '0.0.0.0:17478' };
  const file = { KILLSWITCHD_CONTROL_TOKEN_FILE: fileOf('a-token-of-some-length') };
  const reachable = /^control.listen: other hosts can reach 0\.0\.0\.0:17478/m;
  expect(loadWell(FILE, { ...control, ...file }).warnings.join('\n')).toMatch(reachable);
});

it('a configuration needs neither address nor key with an embedded exchange, and uses no other address then', () => {
  const flags = { markets: ['BTC_USDT'], livenessMode: 'none', embeddedExchange: true };
  const { config } = loadWell(null, {}, flags);
  expect(config.exchange.baseUrls).toEqual([]);
  expect(config.secrets.apiKey.reveal()).toBe('demo-key');
  expect(config.secrets.apiSecret.reveal()).toBe('demo-secret');
  expect(load(null, { KILLSWITCHD_API_KEY: '' }, flags).kind).toBe('invalid');
  const given = loadWell(FILE, {}, { embeddedExchange: true });
  expect(given.config.exchange.baseUrls).toEqual([]);
  expect(given.config.secrets.apiKey.reveal()).toBe(SECRETS.KILLSWITCHD_API_KEY);
  expect(given.warnings.join('\n')).toContain('exchange.baseUrls: not used');
});

test('several mistakes are told at once, whichever source they stand in, also where the file is overruled', () => {
  const text = FILE.replace('timeoutSeconds: 40', 'timeoutSeconds: 4').replace('level: warn', 'levl: warn');
  const env = { KILLSWITCHD_LOG_FORMAT: 'xml', KILLSWITCHD_API_KEY: '', KILLSWITCHD_TIMEOUT_SECONDS: '20' };
  const problems = problemsOf(load(text, env, { shutdownPolicy: 'stay' })).split('\n');
  expect(problems.map((line) => line.replace(/^.*killswitchd\.yaml/, 'FILE').split(': ')[0])).toEqual([
    '--shutdown-policy',
    'KILLSWITCHD_API_KEY',
    'KILLSWITCHD_LOG_FORMAT',
    'FILE:3:13 defaults.timeoutSeconds',
    'FILE:8:8 log.levl',
  ]);
});

it('a file that is no configuration is refused with a message, whatever stands under the keys, and never crashes the daemon', () => {
  const sections: Readonly<Record<string, SchemaNode>> = FileSchema.properties;
  const keys = Object.values(sections).flatMap(({ properties }) => Object.keys(properties ?? {}));
  const any = fc.oneof(fc.constantFrom('market', ...keys), fc.string());
  const inner = fc.dictionary(any, fc.jsonValue(), { maxKeys: 4 });
  const value = fc.oneof(fc.jsonValue(), inner, fc.array(fc.oneof(inner, fc.string()), { maxLength: 4 }));
  const key = fc.oneof(fc.constantFrom(...Object.keys(sections)), fc.string());
  fc.assert(
    fc.property(fc.dictionary(key, value, { maxKeys: 6 }), (values) => {
      expect(problemsOf(load(JSON.stringify(values)))).toContain(': ');
    }),
    { numRuns: 100 },
  );
});

const anchors = Array.from({ length: 5000 }, (_, index) => `- &a${index} x\n- *a${index}`).join('\n');
const keys = Array.from({ length: 30_000 }, (_, index) => `  k${index}: 1`).join('\n');
const wrong = Array.from({ length: 3000 }, (_, index) => `{ market: M${index}_USDT, timeoutSeconds: 4 }`);
it.each<[string, string, string | Buffer]>([
  ['beyond 1 MiB', 'is bigger than 1 MiB', `${FILE}#${'x'.repeat(1024 * 1024)}`],
  ['in bounded time, with many anchors', 'anchors are repeated too often', anchors],
  ['in bounded time, with many keys', 'more mistakes', `exchange:\n${keys}`],
  ['with more mistakes than a call has arguments', 'more mistakes', `markets: [${'1,'.repeat(140_000)}]`],
  ['with more repeated keys than a call has arguments', 'more mistakes', 'a: 1\n'.repeat(140_000)],
  ['in bounded time, with a long line of keys', 'more mistakes', `{${'a,'.repeat(200_000)}}`],
  ['in bounded time, with many brackets', 'nested too deeply', `markets: ${'['.repeat(20_000)}`],
  [
    'in bounded time, with many mistakes by alias',
    '[98].timeoutSeconds: found 4',
    `x: &x [${wrong.join()}]\nmarkets: *x`,
  ],
  ['when it is not text', 'is not UTF-8 text', Buffer.from([0xff, 0xfe, 0x00])],
])('a file that is no configuration is refused %s: it %s', { timeout: 15_000 }, (_, says, text) => {
  expect(problemsOf(load(text))).toContain(says);
});

// To read them to the end takes three times the limit.
test('a file of 1 MB is read no further than its first mistake', { timeout: 15_000 }, () => {
  for (const part of ['}', '] ', '{"a":1}\n', '- a\nb: c\n']) {
    expect(problemsOf(load(part.repeat(1e6 / part.length)))).toContain('not valid YAML: Unexpected ');
  }
});

test('what is printed is itself a configuration that means the same, with the source of every value and no secret', () => {
  const env = {
    KILLSWITCHD_WEB_LISTEN: '[::1]:17477,0.0.0.0:17477',
    KILLSWITCHD_CONTROL_LISTEN: 'unix:/run/killswitchd/control.sock',
    KILLSWITCHD_LOG_FORMAT: 'text',
  };
  const text = `${FILE}notify: { name: "two\\nlines" }\n`;
  const { config, sources } = loadWell(text, env, { logLevel: 'debug' });
  const lines = printConfig(config, sources);
  const again = loadWell(lines.join('\n'));
  expect({ ...again.config, file: null, secrets: null }).toEqual({ ...config, file: null, secrets: null });
  expect(lines).toContain('# apiKey: [redacted, 17 chars, from environment]');
  expect(lines).toContain('  level: debug # flag');
  expect(lines).toContain('  format: text # environment');
  expect(lines).toContain('  mode: none # file');
  expect(lines).toContain('onLapse: rearm # default');
  for (const line of lines.slice(2)) expect(line).toMatch(/:$|(# |\()(flag|environment|file|default)\)?$/);
  for (const secret of Object.values(SECRETS)) expect(lines.join('\n')).not.toContain(secret);
});

/** `# TITLE`, `! MESSAGE` each, `> LINE` each that a terminal is shown, and what is loaded; else that is the title. */
const casesOf = (name: string) =>
  readFileSync(join(import.meta.dirname, name), 'utf8')
    .trimEnd()
    .split('\n\n# ')
    .map((text) => {
      const [title = '', ...lines] = text.replace(/^# /, '').split('\n');
      const marked = (mark: string) =>
        lines.filter((line) => line.startsWith(mark)).map((line) => line.slice(mark.length));
      const rest = lines.filter((line) => !/^[!>] /.test(line));
      const content = rest.length === 0 ? [title] : rest;
      return { title, messages: marked('! '), shown: marked('> '), rest: content };
    });
type Case = ReturnType<typeof casesOf>[number];

/** What is told, which lines a terminal is not shown, and a password that is. */
function toldOf(loaded: Loaded, { shown }: Case) {
  if (loaded.kind === 'ok') throw new Error('it was taken');
  const problems = loaded.problems.map((line) =>
    line.replaceAll(/\S+\/killswitchd\.yaml:/g, 'FILE:').replaceAll(process.cwd(), 'CWD'),
  );
  const onTerminal = loaded.shown().join('\n');
  const password = /must.never.be.shown/.exec(JSON.stringify(loaded) + onTerminal);
  return { problems, missing: shown.filter((line) => !onTerminal.includes(line)), password };
}
const expectedOf = ({ messages }: Case) => ({ problems: messages, missing: [], password: null });

const WITHOUT_LIVENESS = 'exchange: { baseUrls: [https://exchange.example] }\nmarkets: [BTC_USDT]';
const WELL = `${WITHOUT_LIVENESS}\nliveness: { mode: none }`;

test.each(casesOf('mistakes-in-files.txt'))('a mistake in the file is told: $title', (one) => {
  const command = /\((run|exec)\)/.exec(one.title)?.[1] as Command | undefined;
  const content = one.rest.join('\n');
  const isAlone = content === one.title;
  const before = content.startsWith('liveness:') ? '(well but for liveness)' : '(well)';
  const text = (isAlone ? `${before}\n${content}` : content)
    .replace('(well)', WELL)
    .replace('(well but for liveness)', WITHOUT_LIVENESS);
  expect(toldOf(load(`${text}\n`, {}, {}, command), one)).toEqual(expectedOf(one));
});

test.each(casesOf('mistakes-in-variables.txt'))('a mistake in the environment is told: $title', (one) => {
  const env: Record<string, string> = { ...ENVIRONMENT, KILLSWITCHD_MARKETS: 'BTC_USDT' };
  for (const line of one.rest) {
    const [, without, name, value = ''] = /^(-?)(\w+)=?(.*)$/.exec(line) ?? [];
    if (without === '-') delete env[`KILLSWITCHD_${name}`];
    else env[`KILLSWITCHD_${name}`] = value.replace('\\n', '\n');
  }
  expect(toldOf(load(null, env), one)).toEqual(expectedOf(one));
});
