import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { checkLive, type LiveCheck, registerCheckConfig } from '../../src/cli/check-config.ts';
import { addConfigFlags, flagsFrom } from '../../src/cli/config-flags.ts';
import { type Edge, EXIT, type ExitCode } from '../../src/cli/edge.ts';
import { registerSchema } from '../../src/cli/manual.ts';
import { createSystemClock } from '../../src/clock.ts';
import { toCoreSettings } from '../../src/config/config.ts';
import { publishedEnvironmentSchema } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load.ts';
import { publishedSchema } from '../../src/config/schema.ts';
import { createState } from '../../src/core/create.ts';
import { describe as describeState } from '../../src/core/view.ts';
import { startSimulatedServer } from '../../src/simulator/server.ts';
import { start as startWeb } from '../operator/web-fixture.ts';
import { SECRETS } from './fixture.ts';

const EXAMPLE = 'config/killswitchd.example.yaml';
const START = { monoMs: 0, bootMs: 0, wallMs: 1_700_000_000_000 };
const neverLive: LiveCheck = () => Promise.reject(new Error('asked the exchange without --live'));

/** Runs the command line in this process and gives what a shell would see. */
async function run(args: string[], env: Record<string, string> = SECRETS, live = neverLive) {
  const out: string[] = [];
  const err: string[] = [];
  let code: ExitCode | null = null;
  const edge: Pick<Edge, 'env' | 'out' | 'err' | 'finish'> = {
    env,
    out: (line) => out.push(line),
    err: (line) => err.push(line),
    finish: (given) => {
      code = given;
    },
  };
  const program = new Command();
  registerCheckConfig(program, edge as Edge, live);
  registerSchema(program, edge as Edge);
  await program.parseAsync(args, { from: 'user' });
  return { out: out.join('\n'), err, code };
}

describe('check-config', () => {
  it('says in plain words what a configuration means, per market and with numbers', async () => {
    const { out, err, code } = await run(['check-config', '--config', EXAMPLE]);
    expect(code).toBe(EXIT.ok);
    expect(err).toEqual([]);
    expect(out).toMatch(/: (the configuration is right|no mistake in the configuration itself)\.\n/);
    expect(out).toContain('A deliberate stop deletes the timers, within 8 s.');
    expect(out).toContain('BTC_USDT (bot default): cancels orders of all types, also those placed by hand');
    expect(out).toContain('ETH_USDT (bot maker): cancels spot and margin orders');
    expect(out).toContain('ETH_USDT: renewed every 3 s, timer of 30 s.');
    expect(out).toContain(
      'Bot: liveness mode beat: it beats at unix:/run/killswitchd/control.sock; a sign of life counts for 15 s, the first may take 60 s.',
    );
    expect(out).toContain('Control: unix:/run/killswitchd/control.sock.');
    // Another test, or whoever develops here, may run a daemon at the usual port.
    const warnings = out.split('\n').filter((line) => line.startsWith('Warning'));
    expect(warnings.filter((line) => !line.includes('a killswitchd runs there'))).toEqual([]);
  });

  it('promises the cadence that the daemon begins with, also where the limit is what decides it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'check-config-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'killswitchd.json');
    const write = (markets: number) =>
      writeFileSync(
        file,
        JSON.stringify({
          exchange: { baseUrls: ['https://exchange.example'], budgetShare: 0.01, nonce: 'window' },
          markets: Array.from({ length: markets }, (_, index) => `M${index}_USDT`),
          liveness: { mode: 'none' },
        }),
      );
    write(150);
    const args = ['check-config', '--config', file, '--format', 'json'];
    const { markets } = JSON.parse((await run(args)).out) as { markets: { renewEverySeconds: number }[] };
    const loaded = loadConfig({ env: { ...SECRETS, KILLSWITCHD_CONFIG: file }, flags: {} });
    if (loaded.kind !== 'ok') throw new Error('refused');
    const settings = toCoreSettings(loaded.config, loaded.config.exchange.baseUrls);
    const [market] = describeState(createState(settings, START), START).markets;
    expect(market?.periodMs).toBeGreaterThan(16_000);
    expect(markets[0]?.renewEverySeconds).toBe((market?.periodMs ?? 0) / 1000);
    write(182);
    expect((await run(args)).code).toBe(EXIT.config);
  });

  it.each([
    ['file', { KILLSWITCHD_LIVENESS_FILE: '/run/{bot}' }, 'it touches /run/{bot}, looked at every 1 s;'],
    [
      'http',
      { KILLSWITCHD_LIVENESS_URL: 'http://bot/{bot}' },
      'it answers at http://bot/{bot}, asked every 3.75 s;',
    ],
    ['process', {}, 'it runs as a child of killswitchd exec, looked at every 1 s;'],
  ])('says how mode %s watches the bot', async (mode, env, says) => {
    const args = ['check-config', '--config', EXAMPLE, '--liveness-mode', mode];
    const { out, code } = await run(args, { ...SECRETS, ...env });
    expect(code).toBe(EXIT.ok);
    expect(out).toContain(`Bot: liveness mode ${mode}: ${says}`);
  });

  it('warns about a bot that nobody watches', async () => {
    const { out } = await run(['check-config', '--config', EXAMPLE, '--liveness-mode', 'none']);
    expect(out).toContain('Bot: liveness mode none.');
    expect(out).toContain('Warning: liveness.mode: none: nobody watches the bot');
  });

  it('warns about a status page that other hosts can read, and not about one on loopback', async () => {
    const check = async (listen: string) =>
      (await run(['check-config', '--config', EXAMPLE, '--web-listen', listen])).out;
    expect(await check('0.0.0.0:17477')).toContain(
      'Warning: web.listen: whoever reaches 0.0.0.0:17477 can read markets, addresses and states, without password or encryption',
    );
    for (const listen of ['127.0.0.1:17477', '[::1]:17477'])
      expect(await check(listen)).not.toContain('web.listen: whoever');
  });

  it('tells all mistakes on standard error and exits 78', async () => {
    const { out, err, code } = await run(['check-config', '--timeout-seconds', '4'], {});
    expect(code).toBe(EXIT.config);
    expect(out).toBe('');
    expect(err.map((line) => line.split(':')[0])).toEqual([
      expect.stringMatching(/^No configuration file is named; write --config FILE/),
      '--timeout-seconds',
      'KILLSWITCHD_API_KEY',
      'KILLSWITCHD_API_SECRET',
      'exchange.baseUrls',
      'markets',
      'liveness.mode',
    ]);
  });

  it('prints the merged configuration with the source of every value, secrets redacted', async () => {
    const { out } = await run(['check-config', '--config', EXAMPLE, '--print', '--log-level', 'debug']);
    expect(out).toContain('# apiSecret: [redacted, 20 chars, from environment]');
    expect(out).toContain('  level: debug # flag');
    expect(out).not.toContain(SECRETS.KILLSWITCHD_API_KEY);
    expect(out).not.toContain(SECRETS.KILLSWITCHD_API_SECRET);
  });

  it('gives programs JSON, whether the configuration is right or not', async () => {
    const right = await run(['check-config', '--config', EXAMPLE, '--format', 'json', '--print']);
    expect(JSON.parse(right.out)).toMatchObject({
      ok: true,
      file: EXAMPLE,
      markets: [{ market: 'BTC_USDT', timeoutSeconds: 60, renewEverySeconds: 6, types: null }, {}],
      config: { secrets: { apiKey: '[redacted, 17 chars, from environment]' } },
      sources: { 'markets[1].bot': 'file' },
    });
    const wrong = await run(['check-config', '--format', 'json', '--config', EXAMPLE, '--log-level', 'loud']);
    expect(wrong.code).toBe(EXIT.config);
    expect(JSON.parse(wrong.out)).toEqual({ ok: false, problems: wrong.err });
  });

  it('asks the exchange only with --live, and exits with its answer', async () => {
    const { code } = await run(['check-config', '--config', EXAMPLE, '--live'], SECRETS, (config) => {
      expect(config.markets).toHaveLength(2);
      return Promise.resolve({ code: EXIT.refused, roundTripMs: 20 });
    });
    expect(code).toBe(EXIT.refused);
  });

  it('does not ask the exchange about a configuration with a mistake', async () => {
    const { code } = await run(['check-config', '--config', EXAMPLE, '--live', '--log-level', 'loud']);
    expect(code).toBe(EXIT.config);
  });

  describe('with rising nonces', () => {
    const markets = Array.from({ length: 100 }, (_, index) => `M${index}_USDT:5`).join();
    const args = ['check-config', '--markets', markets, '--liveness-mode', 'none', '--live'];
    const env = { ...SECRETS, KILLSWITCHD_BASE_URL: 'https://exchange.example' };
    const measured = (roundTripMs: number) =>
      run(args, env, () => Promise.resolve({ code: EXIT.ok, roundTripMs }));

    it('computes with the round trip that was measured', async () => {
      const { out } = await measured(5);
      expect(out).toContain('hold for a round trip of 5 ms, as measured');
      expect(out).toContain('M0_USDT: renewed every 1 s, timer of 5 s.');
      expect((await measured(10)).out).toContain('M0_USDT: renewed every 1.25 s, timer of 5 s.');
    });

    it('says which one it assumes, and what that is too slow for', async () => {
      const { out, code } = await run(args.slice(0, -1), env);
      expect(code).toBe(EXIT.ok);
      expect(out).toContain('hold for a round trip of 100 ms, which is assumed; --live measures it');
      expect(out).toContain(
        '100 markets need 60.0 renewals a second to fit 3 attempts into every timeout, 8.0 can be carried',
      );
      expect(out).toContain(
        'a stop writes 100 requests one after the other, which takes 10 s; 8 s leave timers armed',
      );
    });
  });

  describe('on a host', () => {
    const folder = mkdtempSync(join(tmpdir(), 'check-host-'));
    afterAll(() => rmSync(folder, { recursive: true }));
    const env = {
      ...SECRETS,
      KILLSWITCHD_BASE_URL: 'https://exchange.example',
      KILLSWITCHD_MARKETS: 'BTC_USDT',
      KILLSWITCHD_LIVENESS_MODE: 'none',
    };

    it('says what run would refuse there, and ends with 78 where --live asks about it', async () => {
      const taken = createServer();
      await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void taken.close());
      const web = `127.0.0.1:${(taken.address() as AddressInfo).port}`;
      const control = `unix:${folder}/missing/control.sock`;
      const args = ['check-config', '--web-listen', web];
      const found = await run(args, { ...env, KILLSWITCHD_CONTROL_LISTEN: control });
      expect(found.out.split('\n').filter((line) => line.startsWith('On this host'))).toEqual([
        `On this host, run would refuse to start now: web listener ${web}: the address is in use by another process, perhaps another killswitchd; stop it, or set web.listen or KILLSWITCHD_WEB_LISTEN to another port`,
        `On this host, run would refuse to start now: control listener ${control}: the directory ${folder}/missing does not exist; make it, or set control.listen to another path`,
      ]);
      expect(found.code).toBe(EXIT.ok);
      const live = () => Promise.resolve({ code: EXIT.ok, roundTripMs: 5 });
      expect((await run([...args, '--live'], env, live)).code).toBe(EXIT.config);
    });

    it('finds the socket of another daemon that runs', async () => {
      const taken = createServer();
      const path = `${folder}/taken.sock`;
      await new Promise<void>((resolve) => taken.listen(path, resolve));
      onTestFinished(() => void taken.close());
      const args = ['check-config', '--web-listen', '127.0.0.1:0', '--control-listen', `unix:${path}`];
      expect((await run(args, env)).out).toContain(
        `On this host, run would refuse to start now: control listener unix:${path}: another process listens there`,
      );
    });

    it('takes the address of a daemon that runs for that of the one that it will replace', async () => {
      const [taken = ''] = (await startWeb()).addresses;
      const { host: web } = new URL(taken);
      const live = () => Promise.resolve({ code: EXIT.ok, roundTripMs: 5 });
      const { code, out } = await run(['check-config', '--web-listen', web, '--live'], env, live);
      expect(code).toBe(EXIT.ok);
      expect(out).toContain(`Warning: web listener ${web}: a killswitchd runs there; restart it`);
    });

    it('says nothing where the ports are free and the directory is there', async () => {
      const { out } = await run(['check-config', '--web-listen', '127.0.0.1:0'], {
        ...env,
        KILLSWITCHD_CONTROL_LISTEN: `unix:${folder}/control.sock`,
      });
      expect(out).not.toContain('On this host');
    });
  });

  describe('--live', () => {
    const ask = async (markets: string, key: string = SECRETS.KILLSWITCHD_API_KEY) => {
      const exchange = await startSimulatedServer({
        clock: createSystemClock(),
        listen: { host: '127.0.0.1', port: 0 },
        exchange: {
          keys: [{ key, secret: SECRETS.KILLSWITCHD_API_SECRET, account: 'main' }],
          markets: ['BTC_USDT', 'ETH_USDT'],
        },
      });
      const kinds: string[] = [];
      exchange.exchange.log.subscribe(({ kind }) => kinds.push(kind));
      const env = { ...SECRETS, KILLSWITCHD_BASE_URL: exchange.url, KILLSWITCHD_LIVENESS_MODE: 'none' };
      const args = ['check-config', '--markets', markets, '--web-listen', '127.0.0.1:0', '--live'];
      const found = await run(args, env, checkLive);
      await exchange.close();
      return { ...found, events: kinds };
    };

    it('pings, shows the key, and asks about every market without touching a timer', async () => {
      const { out, code, events } = await ask('BTC_USDT,ETH_USDT');
      expect(out).toMatch(
        /^Live: http:\S+ answers a ping in \d+ ms\.\nLive: the exchange accepts the key\.\nLive: the exchange knows all 2 markets\.\nThe environment alone: the configuration is right\.\n/,
      );
      expect(code).toBe(EXIT.ok);
      expect(new Set(events)).toEqual(new Set(['request-refused']));
    });

    it('names the markets that the exchange does not know, and ends with 78', async () => {
      const { out, err, code } = await ask('BTC_USDT,BCT_USDT');
      expect(out).not.toContain('is right');
      expect([err, code]).toEqual([['Live: the exchange does not know the market BCT_USDT.'], EXIT.config]);
    });

    it('ends with 77 where the key is refused', async () => {
      const { out, err, code } = await ask('BTC_USDT', 'another-key-of-the-test');
      expect(out).not.toContain('is right');
      expect([code, err.join()]).toEqual([
        EXIT.refused,
        expect.stringMatching(/^Live: the exchange refuses the key: HTTP 401/),
      ]);
    });

    it('ends with 69 where nobody answers', async () => {
      const env = {
        ...SECRETS,
        KILLSWITCHD_BASE_URL: 'http://127.0.0.1:1',
        KILLSWITCHD_LIVENESS_MODE: 'none',
      };
      const { code } = await run(['check-config', '--markets', 'BTC_USDT', '--live'], env, checkLive);
      expect(code).toBe(EXIT.unreachable);
    });
  });

  it('checks the file of npm start as run --embedded-exchange would', async () => {
    const { out, code } = await run(
      ['check-config', '--config', 'config/local.yaml', '--embedded-exchange'],
      {},
    );
    expect(code).toBe(EXIT.ok);
    expect(out).toContain('Exchange: the embedded one');
  });
});

describe('schema', () => {
  it('prints the schema of the file, or of the environment', async () => {
    expect(JSON.parse((await run(['schema'])).out)).toEqual(JSON.parse(JSON.stringify(publishedSchema())));
    expect(JSON.parse((await run(['schema', 'env'])).out)).toEqual(
      JSON.parse(JSON.stringify(publishedEnvironmentSchema())),
    );
  });
});

describe('the flags that commands share', () => {
  it('are read as they were written; lists may be given several times', () => {
    const command = addConfigFlags(new Command());
    const args = '--config a.yaml --markets A_B --markets C_D,E_F --web-listen [::1]:1 --timeout-seconds 60s';
    command.parse(args.split(' '), { from: 'user' });
    expect(flagsFrom(command.opts())).toEqual({
      config: 'a.yaml',
      markets: ['A_B', 'C_D,E_F'],
      webListen: ['[::1]:1'],
      timeoutSeconds: '60s',
      embeddedExchange: false,
    });
  });
});
