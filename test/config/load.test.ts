import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toCoreSettings } from '../../src/config/config.ts';
import { FileSchema, type SchemaNode } from '../../src/config/schema.ts';
import { ENVIRONMENT, FILE, fileOf, load, loadWell, problemsOf, SECRETS } from './fixture.ts';

describe('where a value comes from', () => {
  it('lets flags win over the environment, that over the file, and that over the defaults', () => {
    const env = { KILLSWITCHD_LOG_LEVEL: 'error', KILLSWITCHD_SHUTDOWN_POLICY: 'keep' };
    const { config, sources } = loadWell(FILE, env, { logLevel: 'debug' });
    expect([config.log.level, sources.get('log.level')]).toEqual(['debug', 'flag']);
    expect([config.shutdown.policy, sources.get('shutdown.policy')]).toEqual(['keep', 'environment']);
    expect([config.defaults.timeoutSeconds, sources.get('defaults.timeoutSeconds')]).toEqual([40, 'file']);
    expect([config.ping.everySeconds, sources.get('ping.everySeconds')]).toEqual([5, 'default']);
  });

  it('gives a market its own settings, and what it does not say from the defaults', () => {
    const { config, sources } = loadWell(FILE, { KILLSWITCHD_TIMEOUT_SECONDS: '20' });
    expect(config.markets).toEqual([
      { market: 'BTC_USDT', timeoutSeconds: 20, types: null, renewEverySeconds: null, bot: 'default' },
      {
        market: 'ETH_USDT',
        timeoutSeconds: 30,
        types: ['spot', 'margin'],
        renewEverySeconds: null,
        bot: 'maker',
      },
    ]);
    expect(sources.get('markets[0].market')).toBe('file');
    expect(sources.get('markets[0].timeoutSeconds')).toBe('environment');
    expect(sources.get('markets[1].timeoutSeconds')).toBe('file');
    expect(sources.get('markets[0].types')).toBe('default');
  });

  it('replaces all markets of the file by those of the environment', () => {
    const { config, sources } = loadWell(FILE, { KILLSWITCHD_MARKETS: ' SOL_USDT , LTC_USDT::futures' });
    expect(config.markets).toMatchObject([
      { market: 'SOL_USDT', timeoutSeconds: 40, types: null },
      { market: 'LTC_USDT', timeoutSeconds: 40, types: ['futures'] },
    ]);
    expect(sources.get('markets[1].types')).toBe('environment');
  });

  it('needs no file where the environment says enough, and tells the core in milliseconds, with every default', () => {
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
      movedAway: [],
    });
  });

  it('prefers the file that a flag names to that of the environment', () => {
    const { config } = loadWell(FILE, { KILLSWITCHD_CONFIG: 'there-is-no-such-file.yaml' });
    expect(config.file).toMatch(/killswitchd\.yaml$/);
  });

  it('reads JSON as well as YAML', () => {
    const values = {
      $schema: './killswitchd.schema.json',
      exchange: { baseUrls: ['http://[::1]:8080/'] },
      markets: ['BTC_USDT'],
      liveness: { mode: 'none' },
    };
    expect(loadWell(JSON.stringify(values)).config.exchange.baseUrls).toEqual(['http://[::1]:8080']);
  });
});

describe('what is not a mistake', () => {
  it.each([
    ['http://localhost:8080 http://127.0.0.1 http://127.8.8.8:1 http://[::1]:8080', 'ok'],
    [
      'http://127.0.0.1.example http://localhost.example http://0.0.0.0 http://10.0.0.1 ftp://localhost',
      'invalid',
    ],
  ])('lets only what never leaves this host be unencrypted: %s is %s', (urls, kind) => {
    for (const url of urls.split(' '))
      expect(load(null, { ...ENVIRONMENT, KILLSWITCHD_BASE_URL: url }).kind, url).toBe(kind);
  });

  it('leaves the variables of clients and commands to them', () => {
    const env = { KILLSWITCHD_CONTROL: 'no address', KILLSWITCHD_BOT: 'no such bot' };
    const { file: _file, ...config } = loadWell(FILE, env).config;
    const { file: _other, ...bare } = loadWell(FILE).config;
    expect(JSON.stringify(config)).toBe(JSON.stringify(bare));
  });

  it('ignores variables that Kubernetes makes out of a service called killswitchd', () => {
    const links = {
      KILLSWITCHD_SERVICE_HOST: '10.0.0.7',
      KILLSWITCHD_SERVICE_PORT: '17477',
      KILLSWITCHD_SERVICE_PORT_WEB: '17477',
      KILLSWITCHD_PORT: 'tcp://10.0.0.7:17477',
      KILLSWITCHD_PORT_17477_TCP: 'tcp://10.0.0.7:17477',
      KILLSWITCHD_PORT_17477_TCP_ADDR: '10.0.0.7',
    };
    expect(load(null, { ...ENVIRONMENT, ...links }).kind).toBe('ok');
    expect(problemsOf(load(null, { ...ENVIRONMENT, KILLSWITCHD_PORT: '17477' }))).toContain(
      'KILLSWITCHD_PORT: unknown variable',
    );
  });

  it('warns about what is allowed and yet worth a thought', () => {
    const two = FILE.replace(
      '[https://exchange.example]',
      '[https://exchange.example, https://eu.exchange.example]',
    );
    expect(loadWell(two).warnings).toEqual([
      'exchange.baseUrls: only https://exchange.example is used for renewals, the others only with exchange.sameAccount: true',
      'liveness.mode: none: nobody watches the bot; timers are renewed for as long as this daemon runs, even when the bot is dead',
    ]);
  });

  it('takes plain http to another host, and a control address that others reach, only where asked to, and says so', () => {
    const plain = FILE.replace('[https://exchange.example]', '[http://exchange:17480], allowPlainHttp: true');
    expect(loadWell(plain).warnings).toContainEqual(
      expect.stringMatching(/^exchange.allowPlainHttp: .*http:\/\/exchange:17480 can read the API key/),
    );
    expect(problemsOf(load(plain.replace('true', 'false')))).toContain('which is not encrypted');

    const control = { KILLSWITCHD_CONTROL_LISTEN: '0.0.0.0:17478' };
    expect(problemsOf(load(FILE, { ...SECRETS, ...control }))).toContain(
      'or any other with control.tokenFile',
    );
    const token = { ...control, KILLSWITCHD_CONTROL_TOKEN_FILE: fileOf('a-token-of-some-length') };
    expect(loadWell(FILE, { ...SECRETS, ...token }).warnings).toContainEqual(
      expect.stringMatching(/^control.listen: other hosts can reach 0\.0\.0\.0:17478/),
    );
  });

  it('needs neither address nor key with an embedded exchange, and uses no other address then', () => {
    const flags = { markets: ['BTC_USDT'], livenessMode: 'none', embeddedExchange: true };
    const { config } = loadWell(null, {}, flags);
    expect(config.exchange.baseUrls).toEqual([]);
    expect(config.secrets.apiKey.reveal()).toBe('demo-key');
    expect(config.secrets.apiSecret.reveal()).toBe('demo-secret');
    const given = loadWell(FILE, {}, { embeddedExchange: true });
    expect(given.config.exchange.baseUrls).toEqual([]);
    expect(given.config.secrets.apiKey.reveal()).toBe(SECRETS.KILLSWITCHD_API_KEY);
    expect(given.warnings.join('\n')).toContain('exchange.baseUrls: not used');
  });
});

describe('several mistakes', () => {
  it('are told at once, whichever source they stand in', () => {
    const text = FILE.replace('timeoutSeconds: 40', 'timeoutSeconds: 4').replace('level: warn', 'levl: warn');
    const problems = problemsOf(
      load(text, { KILLSWITCHD_LOG_FORMAT: 'xml', KILLSWITCHD_API_KEY: '' }, { shutdownPolicy: 'stay' }),
    );
    expect(
      problems.split('\n').map((line) => line.replace(/^.*killswitchd\.yaml/, 'FILE').split(': ')[0]),
    ).toEqual([
      '--shutdown-policy',
      'KILLSWITCHD_API_KEY',
      'KILLSWITCHD_LOG_FORMAT',
      'FILE:3:13 defaults.timeoutSeconds',
      'FILE:8:8 log.levl',
    ]);
  });

  it('do not hide those of a file that is overruled', () => {
    const text = FILE.replace('timeoutSeconds: 40', 'timeoutSeconds: 4');
    expect(problemsOf(load(text, { KILLSWITCHD_TIMEOUT_SECONDS: '20' }))).toContain('found 4');
  });
});

describe('a file that is no configuration', () => {
  it('is refused with a message, whatever stands under the keys, and never crashes the daemon', () => {
    const sections: Readonly<Record<string, SchemaNode>> = FileSchema.properties;
    const keys = [
      'market',
      ...Object.values(sections).flatMap(({ properties }) => Object.keys(properties ?? {})),
    ];
    const inner = fc.dictionary(fc.oneof(fc.constantFrom(...keys), fc.string()), fc.jsonValue(), {
      maxKeys: 4,
    });
    const value = fc.oneof(fc.jsonValue(), inner, fc.array(fc.oneof(inner, fc.string()), { maxLength: 4 }));
    const key = fc.oneof(fc.constantFrom(...Object.keys(sections)), fc.string());
    fc.assert(
      fc.property(fc.dictionary(key, value, { maxKeys: 6 }), (values) => {
        expect(problemsOf(load(JSON.stringify(values)))).toContain(': ');
      }),
      { numRuns: 100 },
    );
  });

  it('is refused beyond 1 MiB', () => {
    expect(problemsOf(load(`${FILE}#${'x'.repeat(1024 * 1024)}`))).toContain('is bigger than 1024 KiB');
  });

  it('is refused in bounded time when it is made to blow up', () => {
    const anchors = Array.from({ length: 5000 }, (_, index) => `- &a${index} x\n- *a${index}`).join('\n');
    expect(problemsOf(load(anchors))).toContain('anchors are repeated too often');
    expect(problemsOf(load(`markets: ${'['.repeat(20_000)}`))).toContain('nested too deeply');
  });

  it('is refused when it is not text', () => {
    expect(problemsOf(load(Buffer.from([0xff, 0xfe, 0x00])))).toContain('is not UTF-8 text');
  });
});
