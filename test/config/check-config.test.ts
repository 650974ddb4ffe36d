import { once } from 'node:events';
import { type AddressInfo, createServer, type ListenOptions } from 'node:net';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { EXIT } from '../../src/cli/edge.ts';
import { createSystemClock } from '../../src/clock.ts';
import { toCoreSettings } from '../../src/config/config.ts';
import { createState } from '../../src/core/commands.ts';
import { describe as describeState } from '../../src/core/view.ts';
import { type SimulatedServer, startSimulatedServer } from '../../src/simulator/server.ts';
import { ask } from '../docs/program.ts';
import { checkConfig } from '../docs/promise-table.ts';
import { start as startWeb } from '../operator/web-fixture.ts';
import { send, signed } from '../simulator/raw-client.ts';
import { ENVIRONMENT, fileOf, loadWell, SECRETS } from './fixture.ts';

const EXAMPLE = 'config/killswitchd.example.yaml';
const START = { monoMs: 0, bootMs: 0, wallMs: 1_700_000_000_000 };

async function listenAt(where: ListenOptions) {
  const server = createServer();
  onTestFinished(() => void server.close());
  await once(server.listen(where), 'listening');
  return server.address() as AddressInfo;
}

/** `check-config` of the example, with more flags. */
const example = (flags = '', env: Record<string, string> = {}) =>
  ask(`check-config --config ${EXAMPLE} ${flags}`.trimEnd().split(' '), { ...SECRETS, ...env });

/** `check-config` of an environment that is enough by itself. */
const bare = (flags = '', env: Record<string, string> = {}) => {
  const words = `check-config ${flags}`.trimEnd().split(' ');
  return ask(words, { ...ENVIRONMENT, KILLSWITCHD_WEB_LISTEN: '127.0.0.1:0', ...env });
};

it('check-config says in plain words what a configuration means, per market and with numbers', async () => {
  const { out, err, exitCode } = await example();
  expect({ err, exitCode }).toEqual({ err: '', exitCode: EXIT.ok });
  for (const sentence of [
    'A deliberate stop deletes the timers, within 8 s.',
    'BTC_USDT (bot default): cancels orders of all types, also those placed by hand',
    'ETH_USDT (bot maker): cancels spot and margin orders',
    'ETH_USDT: renewed every 3 s, timer of 30 s.',
    'Bot: liveness mode beat: it beats at unix:/run/killswitchd/control.sock; a sign of life counts for 15 s, the first may take 60 s.',
    'Control: unix:/run/killswitchd/control.sock.',
  ])
    expect(out).toContain(sentence);
  // Another test, or whoever develops here, may run a daemon at the usual port.
  const warnings = out.split('\n').filter((line) => line.startsWith('Warning'));
  expect(warnings.filter((line) => !line.includes('a killswitchd runs there'))).toEqual([]);
});

it('check-config promises the cadence that the daemon begins with, also where the limit is what decides it', async () => {
  const exchange = { baseUrls: ['https://exchange.example'], budgetShare: 0.01, nonce: 'window' };
  const textOf = (count: number) => {
    const markets = Array.from({ length: count }, (_, index) => `M${index}_USDT`);
    return JSON.stringify({ exchange, markets, liveness: { mode: 'none' } });
  };
  const { report } = await checkConfig(textOf(150));
  const { markets } = JSON.parse(report) as { markets: { renewEverySeconds: number }[] };
  const settings = toCoreSettings(loadWell(textOf(150)).config, exchange.baseUrls);
  const [market] = describeState(createState(settings, START), START).markets;
  expect(market?.periodMs).toBeGreaterThan(16_000);
  expect(markets[0]?.renewEverySeconds).toBe((market?.periodMs ?? 0) / 1000);
  expect((await checkConfig(textOf(182))).exitCode).toBe(EXIT.config);
});

it.each([
  ['file', { FILE: '/run/{bot}' }, ': it touches /run/{bot}, looked at every 1 s;'],
  ['http', { URL: 'http://b/{bot}' }, ': it answers at http://b/{bot}, asked every 3.75 s;'],
  ['process', {}, ': it runs as a child of killswitchd exec, looked at every 1 s;'],
  ['none', {}, '.\n'],
])('check-config says how mode %s watches the bot', async (mode, given, says) => {
  const env = Object.entries(given).map(([name, value]) => [`KILLSWITCHD_LIVENESS_${name}`, value]);
  const { out, exitCode } = await example(`--liveness-mode ${mode}`, Object.fromEntries(env));
  expect(exitCode).toBe(EXIT.ok);
  expect(out).toContain(`Bot: liveness mode ${mode}${says}`);
  expect(out.includes('Warning: liveness.mode: none: nobody watches the bot')).toBe(mode === 'none');
});

it('check-config gives programs JSON, whether the configuration is right or not', async () => {
  const right = await example('--format json --print');
  expect(JSON.parse(right.out)).toMatchObject({
    ok: true,
    file: EXAMPLE,
    markets: [{ market: 'BTC_USDT', timeoutSeconds: 60, renewEverySeconds: 6, types: null }, {}],
    config: { secrets: { apiKey: '[redacted, 17 chars, from environment]' } },
    sources: { 'markets[1].bot': 'file' },
  });
  const wrong = await example('--format json --log-level loud --timeout-seconds 4 --live');
  expect([wrong.exitCode, wrong.err.split('\n').length]).toEqual([EXIT.config, 2]);
  expect(JSON.parse(wrong.out)).toEqual({ ok: false, problems: wrong.err.split('\n') });
});

it('check-config says which round trip it assumes with rising nonces, and what that is too slow for', async () => {
  const markets = Array.from({ length: 100 }, (_, index) => `M${index}_USDT:5`).join();
  const { out, exitCode } = await bare(`--markets ${markets}`);
  expect(exitCode).toBe(EXIT.ok);
  for (const says of [
    'hold for a round trip of 100 ms, which is assumed; --live measures it',
    '100 markets need 60.0 renewals a second to fit 3 attempts into every timeout, 8.0 can be carried',
    'a stop writes 100 requests one after the other, which takes 10 s; 8 s leave timers armed',
  ])
    expect(out).toContain(says);
});

it('check-config joins flags that are given several times, and warns about a page that other hosts can read', async () => {
  const listen = '--web-listen 127.0.0.1:0 --web-listen [::1]:0,0.0.0.0:0';
  const { out } = await bare(`--markets A_B:10 --markets C_D,E_F ${listen}`);
  expect(out).toContain('Status page, health and metrics: 127.0.0.1:0, [::1]:0, 0.0.0.0:0.');
  const page =
    'Warning: web.listen: whoever reaches 0.0.0.0:0 can read markets, addresses and states, without';
  expect(out.split('Warning: web.listen')).toHaveLength(2);
  expect(out).toContain(page);
  expect(out).toMatch(/Markets: 3\n {2}A_B [^]*\n {2}C_D [^]*\n {2}E_F /);
});

it('check-config checks the file of npm start as run --embedded-exchange would', async () => {
  const flags = ['--config', 'config/local.yaml', '--embedded-exchange'];
  const { out, exitCode } = await ask(['check-config', ...flags]);
  expect(exitCode).toBe(EXIT.ok);
  expect(out).toContain('Exchange: the embedded one');
});

describe('check-config --live', () => {
  const kinds: string[] = [];
  const { KILLSWITCHD_API_KEY: key, KILLSWITCHD_API_SECRET: secret } = SECRETS;
  let exchange: SimulatedServer;
  beforeAll(async () => {
    exchange = await startSimulatedServer({
      clock: createSystemClock(),
      listen: { host: '127.0.0.1', port: 0 },
      exchange: { keys: [{ key, secret, account: 'main' }], markets: ['BTC_USDT', 'ETH_USDT'] },
    });
    exchange.exchange.log.subscribe(({ kind }) => kinds.push(kind));
  });
  afterAll(() => exchange.close());
  const live = (env: Record<string, string> = {}) =>
    bare('--live', { KILLSWITCHD_BASE_URL: exchange.url, ...env });

  it('pings, shows the key, and asks about every market without touching a timer', async () => {
    const { out, exitCode } = await live();
    expect(out).toMatch(
      /^Live: http:\S+ answers a ping in \d+ ms\.\nLive: the exchange accepts the key\.\nLive: the exchange knows all 2 markets\.\nThe environment alone: the configuration is right\.\n/,
    );
    expect(out).toMatch(/hold for a round trip of \d+ ms, as measured/);
    expect(exitCode).toBe(EXIT.ok);
    expect(new Set(kinds)).toEqual(new Set(['request-refused']));
  });

  it('measures an exchange that answers late', async () => {
    onTestFinished(() => void exchange.clearFaults());
    const late = { kind: 'latency', ms: 2600, when: 'after' } as const;
    exchange.addFaults([{ ...late, count: 2, match: { operation: 'ping' } }]);
    const { out, err, exitCode } = await live();
    expect([exitCode, err]).toEqual([EXIT.ok, '']);
    expect(out).toMatch(/answers a ping in \d+ ms/);
  });

  it('ends with 78 where the renewals of the list cannot all be carried, and counts with the periods that can', async () => {
    onTestFinished(() => void exchange.clearFaults());
    exchange.addFaults([{ kind: 'latency', ms: 900, when: 'after', match: { operation: 'ping' } }]);
    const markets = 'BTC_USDT,ETH_USDT,SOL_USDT,XRP_USDT';
    const { out, exitCode } = await live({ KILLSWITCHD_MARKETS: markets, KILLSWITCHD_TIMEOUT_SECONDS: '5' });
    expect(exitCode).toBe(EXIT.config);
    expect(out).toContain('FEWER THAN THREE RENEWALS FIT INTO EACH TIMEOUT');
    // At 0.5 s for each, of which a fifth is for retries, four are renewed every 2.5 s.
    expect(out).toContain('BTC_USDT: renewed every 2.5 s');
    expect(out).not.toContain('is right');
  });

  it.each([
    [
      'MARKETS',
      'BTC_USDT,BCT_USDT',
      EXIT.config,
      /^Live: markets\[1\]: the exchange does not know the market BCT_USDT\.$/,
    ],
    ['API_KEY', 'another-key-of-the-test', EXIT.refused, /^Live: the exchange refuses the key: HTTP 401/],
    ['BASE_URL', 'http://127.0.0.1:1', EXIT.unreachable, /^Live: http:\/\/127\.0\.0\.1:1: /],
  ])('tells what is wrong with %s %s: %i', async (name, value, code, says) => {
    const { out, err, exitCode } = await live({ [`KILLSWITCHD_${name}`]: value });
    expect(out).not.toContain('is right');
    expect(exitCode).toBe(code);
    expect(err).toMatch(says);
  });

  it('says that a server without TLS, or without the API, is another than the exchange', async () => {
    const tls = exchange.url.replace('http:', 'https:');
    const plain = await live({ KILLSWITCHD_BASE_URL: tls });
    expect([plain.exitCode, plain.err]).toEqual([
      EXIT.unreachable,
      `Live: ${tls}: it does not answer with TLS; did you mean ${exchange.url}?`,
    ]);
    const [other = ''] = (await startWeb()).addresses;
    const { err } = await live({ KILLSWITCHD_BASE_URL: other });
    expect(err).toMatch(/^Live: http:\S+: HTTP 404 .*; this server has no API of the exchange$/);
  });

  it('says in which line of the file an unknown market stands', async () => {
    const file = fileOf('markets:\n  - BTC_USDT\n  - BCT_USDT\n');
    const env = { ...ENVIRONMENT, KILLSWITCHD_BASE_URL: exchange.url, KILLSWITCHD_WEB_LISTEN: '127.0.0.1:0' };
    const { KILLSWITCHD_MARKETS: _, ...others } = env;
    const { err } = await ask(['check-config', '--live', '--config', file], others);
    expect(err).toBe(`Live: ${file}:3:5 markets[1]: the exchange does not know the market BCT_USDT.`);
  });

  it('accepts a key whose last nonce is 30 days ahead, and accepts it again within the same second', async () => {
    const nonce = String(Date.now() + 30 * 86_400_000);
    const request = { market: 'BTC_USDT', timeout: null, types: null, nonce };
    await send(exchange.url, signed(request, { key, secret }));
    for (let turn = 0; turn < 3; turn += 1) {
      const { err, exitCode } = await live();
      expect([exitCode, err]).toEqual([EXIT.ok, '']);
    }
  });

  it('ends with 78 where run would refuse an address of this host, and says why in the words of run', async () => {
    const web = `127.0.0.1:${(await listenAt({ port: 0, host: '127.0.0.1' })).port}`;
    const folder = dirname(fileOf(''));
    const taken = `unix:${folder}/taken.sock`;
    await listenAt({ path: `${folder}/taken.sock` });
    const missing = `unix:${folder}/missing/control.sock`;
    const controls = [taken, missing, `unix:${folder}/free.sock`].join();
    const env = { KILLSWITCHD_WEB_LISTEN: web, KILLSWITCHD_CONTROL_LISTEN: controls };
    const { out, exitCode } = await bare('', env);
    const says = 'On this host, run would refuse to start now: ';
    expect(out.split('\n').filter((line) => line.startsWith('On this host'))).toEqual([
      `${says}web listener ${web}: the address is in use by another process, perhaps another killswitchd; stop it, or set web.listen or KILLSWITCHD_WEB_LISTEN to another port`,
      expect.stringContaining(`${says}control listener ${taken}: another process listens there`),
      `${says}control listener ${missing}: the directory ${folder}/missing does not exist; make it, or set control.listen to another path`,
    ]);
    expect(exitCode).toBe(EXIT.ok);
    expect((await live(env)).exitCode).toBe(EXIT.config);
  });

  it('takes the address of a daemon that runs for that of the one that it will replace', async () => {
    const { host: web } = new URL((await startWeb()).addresses[0] ?? '');
    const { out, exitCode } = await live({ KILLSWITCHD_WEB_LISTEN: web });
    expect(exitCode).toBe(EXIT.ok);
    expect(out).toContain(`Warning: web listener ${web}: a killswitchd runs there; restart it`);
  });
});
