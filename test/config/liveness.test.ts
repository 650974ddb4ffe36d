import { describe, expect, it } from 'vitest';
import { filesOfBots, urlsOfBots } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { printConfig } from '../../src/config/print.ts';
import { ENVIRONMENT, load, loadWell, problemsOf } from './fixture.ts';

const { KILLSWITCHD_LIVENESS_MODE: _none, ...WITHOUT_MODE } = ENVIRONMENT;

/** A configuration with this liveness section, and markets of two bots where asked for. */
function withLiveness(liveness: object, more: object = {}): string {
  const exchange = { baseUrls: ['https://exchange.example'] };
  return JSON.stringify({ exchange, markets: ['BTC_USDT'], liveness, ...more });
}

const CONTROL = { control: { listen: ['unix:/run/killswitchd/control.sock'] } };
const TWO_BOTS = { markets: ['BTC_USDT', { market: 'ETH_USDT', bot: 'maker' }] };

describe('the liveness modes', () => {
  it.each([
    ['beat', { mode: 'beat' }, CONTROL],
    ['file', { mode: 'file', file: 'bot.alive' }, {}],
    ['http', { mode: 'http', url: 'http://127.0.0.1:8080/alive' }, {}],
    ['none', { mode: 'none' }, {}],
  ])('%s is taken from a file by run', (mode, liveness, more) => {
    const { config } = loadWell(withLiveness(liveness, more));
    expect(config.liveness).toMatchObject({ file: null, url: null, ...liveness, mode });
  });

  it('are taken from the environment with what they need', () => {
    const { config, sources } = loadWell(null, {
      ...ENVIRONMENT,
      KILLSWITCHD_LIVENESS_MODE: 'http',
      KILLSWITCHD_LIVENESS_FILE: '/run/bot.alive',
      KILLSWITCHD_LIVENESS_URL: 'http://bot/alive',
    });
    expect(config.liveness).toMatchObject({ mode: 'http', file: '/run/bot.alive', url: 'http://bot/alive' });
    expect(sources.get('liveness.url')).toBe('environment');
  });
});

describe('what the command decides about the mode', () => {
  it('exec watches its child where no mode is written, and run does not guess', () => {
    const exec = loadConfig({ env: WITHOUT_MODE, flags: {}, command: 'exec' });
    if (exec.kind !== 'ok') throw new Error(exec.problems.join('\n'));
    expect(exec.config.liveness.mode).toBe('process');
    expect(exec.sources.get('liveness.mode')).toBe('default');
    const run = loadConfig({ env: WITHOUT_MODE, flags: {}, command: 'run' });
    expect(problemsOf(run)).toContain('liveness.mode: missing');
  });

  it('exec takes the beats of its child instead where that is written', () => {
    const env = {
      ...WITHOUT_MODE,
      KILLSWITCHD_LIVENESS_MODE: 'beat',
      KILLSWITCHD_CONTROL_LISTEN: '127.0.0.1:1',
    };
    expect(loadConfig({ env, flags: {}, command: 'exec' })).toMatchObject({
      kind: 'ok',
      config: { liveness: { mode: 'beat' } },
    });
  });

  it.each(['file', 'http', 'none'])(
    'exec refuses mode %s, in the place where it is written',
    (livenessMode) => {
      const problems = problemsOf(
        loadConfig({ env: WITHOUT_MODE, flags: { livenessMode }, command: 'exec' }),
      );
      expect(problems).toContain(
        `--liveness-mode: found "${livenessMode}"; allowed with exec: process, beat; leave it out for process`,
      );
    },
  );

  it('exec does not take its child for the answer to a mode that is misspelt', () => {
    const problems = problemsOf(
      loadConfig({ env: WITHOUT_MODE, flags: { livenessMode: 'beet' }, command: 'exec' }),
    );
    expect(problems).toBe(
      '--liveness-mode: found "beet"; allowed: beat, file, http, process, none; did you mean beat?',
    );
  });

  it('run refuses mode process, and check-config, which is for both, says whom it is for', () => {
    const flags = { livenessMode: 'process' };
    expect(problemsOf(loadConfig({ env: WITHOUT_MODE, flags, command: 'run' }))).toContain(
      '--liveness-mode: found "process", for which the daemon must start the bot itself',
    );
    expect(loadWell(null, WITHOUT_MODE, flags).warnings).toEqual([
      'liveness.mode: process: only for killswitchd exec -- BOT, which starts the bot; run refuses it',
    ]);
  });
});

describe('how often the daemon looks at the bot', () => {
  it.each([
    ['file', 15, 1],
    ['http', 15, 3.75],
    ['http', 60, 5],
    ['file', 1, 0.25],
  ])('with mode %s and a lifetime of %d s follows as %d s', (mode, ttlSeconds, expected) => {
    const liveness = { mode, ttlSeconds, file: '/run/bot', url: 'http://bot/' };
    expect(loadWell(withLiveness(liveness)).config.liveness.probeEverySeconds).toBe(expected);
  });

  it('may be anything below a third of the lifetime', () => {
    const liveness = { mode: 'file', file: '/run/bot', ttlSeconds: 10 };
    const at = (probeEverySeconds: number) => load(withLiveness({ ...liveness, probeEverySeconds }));
    expect(at(3.3).kind).toBe('ok');
    expect(problemsOf(at(3.34))).toContain('liveness.probeEverySeconds: found 3.34; allowed: less than 3.33');
  });

  it('is not complained about where the lifetime itself is wrong', () => {
    const liveness = { mode: 'file', file: '/run/bot', ttlSeconds: 6000, probeEverySeconds: 100 };
    expect(problemsOf(load(withLiveness(liveness))).split('\n')).toHaveLength(1);
  });
});

describe('a file or an address of several bots', () => {
  it('holds the name of the bot in the place of {bot}', () => {
    const http = loadWell(withLiveness({ mode: 'http', url: 'http://{bot}.internal/{bot}?$&' }, TWO_BOTS));
    expect(urlsOfBots(http.config)).toEqual([
      { bot: 'default', url: 'http://default.internal/default?$&' },
      { bot: 'maker', url: 'http://maker.internal/maker?$&' },
    ]);
    expect(filesOfBots(http.config)).toEqual([]);
    const file = loadWell(withLiveness({ mode: 'file', file: '/run/{bot}', url: 'http://{bot}/' }, TWO_BOTS));
    expect(filesOfBots(file.config)).toEqual([
      { bot: 'default', path: '/run/default' },
      { bot: 'maker', path: '/run/maker' },
    ]);
    expect(urlsOfBots(file.config)).toEqual([]);
  });

  it('is not needed by a single bot, whatever it is called', () => {
    const markets = [
      { market: 'BTC_USDT', bot: 'maker' },
      { market: 'ETH_USDT', bot: 'maker' },
    ];
    expect(load(withLiveness({ mode: 'file', file: '/run/bot' }, { markets })).kind).toBe('ok');
  });
});

describe('the address of a bot', () => {
  const at = (url: string) => load(withLiveness({ mode: 'http', url }));

  it.each([
    'http://localhost/alive',
    'https://127.0.0.1:8443/alive?deep=1',
    'http://[::1]:8080/',
    'http://10.1.2.3/',
    'http://172.31.0.1/',
    'http://192.168.1.1/',
    'http://169.254.0.7/',
    'http://[fd00::7]:8080/',
    'http://[fe80::7]/',
    'http://[::ffff:10.0.0.1]/',
    'http://bot:8080/',
    'http://bot.trading.svc:8080/',
    'http://bot.trading.svc.cluster.local/',
    'https://bot.internal/',
    'http://bot.home.arpa/',
  ])('may be %s', (url) => {
    expect(problemsOf(at(url))).toBe('');
  });

  it.each([
    'http://8.8.8.8/',
    'http://172.32.0.1/',
    'http://192.169.0.1/',
    'http://[2001:db8::1]/',
    'http://[::ffff:8.8.8.8]/',
    'http://localhost.example/',
    'http://10.0.0.1.example.com/',
    'http://internal.example.com/',
    'http://134744072/',
    'http://[::]:8080/',
    'ftp://localhost/',
    'file:///run/bot',
    'http://',
  ])('may not be %s', (url) => {
    expect(problemsOf(at(url))).toContain('liveness.url: found ');
  });
});

describe('a warning', () => {
  it.each([
    [
      { mode: 'beat', file: '/run/bot', probeEverySeconds: 9 },
      CONTROL,
      'liveness.file, liveness.probeEverySeconds: of no meaning with liveness.mode: beat',
    ],
    [
      { mode: 'file', file: '/run/bot', url: 'http://bot/' },
      {},
      'liveness.url: of no meaning with liveness.mode: file',
    ],
    [
      { mode: 'http', file: '/run/bot', url: 'http://bot/' },
      {},
      'liveness.file: of no meaning with liveness.mode: http',
    ],
    [
      { mode: 'none', ttlSeconds: 15, startupGraceSeconds: 60, onStale: 'trip' },
      {},
      'liveness.ttlSeconds, liveness.startupGraceSeconds, liveness.onStale: of no meaning with liveness.mode: none',
    ],
    [
      { mode: 'beat' },
      { control: { listen: ['127.0.0.1:17478'] } },
      'control.listen: every user and program of this host may send beats and commands to 127.0.0.1:17478; set control.tokenFile, or listen at a unix: socket only',
    ],
  ])('tells of %j', (liveness, more, warning) => {
    expect(loadWell(withLiveness(liveness, more)).warnings).toContain(warning);
  });

  it.each([
    [{ mode: 'beat', ttlSeconds: 10, onStale: 'trip' }, CONTROL],
    [{ mode: 'file', file: '/run/bot', probeEverySeconds: 2, startupGraceSeconds: 0 }, {}],
    [{ mode: 'http', url: 'http://bot/', probeEverySeconds: 2 }, CONTROL],
  ])('is not given about %j', (liveness, more) => {
    expect(loadWell(withLiveness(liveness, more)).warnings).toEqual([]);
  });

  it('does not come back from what --print shows', () => {
    for (const [liveness, more] of [
      [{ mode: 'beat' }, CONTROL],
      [{ mode: 'file', file: '/run/bot' }, {}],
      [{ mode: 'http', url: 'http://bot/' }, {}],
      [{ mode: 'none' }, {}],
    ] as const) {
      const { config, sources, warnings } = loadWell(withLiveness(liveness, more));
      const again = loadWell(printConfig(config, sources).join('\n'));
      expect(again.config.liveness).toEqual(config.liveness);
      expect(again.warnings).toEqual(warnings);
    }
  });
});
