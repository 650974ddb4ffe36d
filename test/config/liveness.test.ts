import { describe, expect, it, test } from 'vitest';
import { placesOfBots } from '../../src/config/config.ts';
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

describe('what the command decides about the mode', () => {
  it('exec watches its child where no mode is written, and run does not guess', () => {
    const exec = loadConfig({ env: WITHOUT_MODE, flags: {}, command: 'exec' });
    expect(exec).toMatchObject({ kind: 'ok', config: { liveness: { mode: 'process' } } });
    const run = loadConfig({ env: WITHOUT_MODE, flags: {}, command: 'run' });
    expect(problemsOf(run)).toContain('liveness.mode: missing');
  });

  it.each([
    ['exec', 'file', 'found "file"; allowed with exec: process, beat; leave it out for process'],
    ['exec', 'beet', 'found "beet"; allowed: beat, file, http, process, none; did you mean beat?'],
    ['exec', 'beat', null],
    ['run', 'process', 'found "process", for which the daemon must start the bot itself'],
  ] as const)('%s with mode %s', (command, livenessMode, refused) => {
    const env = { ...WITHOUT_MODE, KILLSWITCHD_CONTROL_LISTEN: '127.0.0.1:1' };
    const loaded = loadConfig({ env, flags: { livenessMode }, command });
    expect(problemsOf(loaded)).toContain(refused === null ? '' : `--liveness-mode: ${refused}`);
    expect(loaded.kind).toBe(refused === null ? 'ok' : 'invalid');
  });

  it('check-config, which is for both, says whom mode process is for', () => {
    expect(loadWell(null, WITHOUT_MODE, { livenessMode: 'process' }).warnings).toEqual([
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
    const wrong = { ...liveness, ttlSeconds: 6000, probeEverySeconds: 100 };
    expect(problemsOf(load(withLiveness(wrong))).split('\n')).toHaveLength(1);
  });
});

it('a file or an address of several bots holds the name of the bot in the place of {bot}', () => {
  const http = loadWell(withLiveness({ mode: 'http', url: 'http://{bot}.internal/{bot}?$&' }, TWO_BOTS));
  expect(placesOfBots(http.config, 'url')).toEqual([
    { bot: 'default', at: 'http://default.internal/default?$&' },
    { bot: 'maker', at: 'http://maker.internal/maker?$&' },
  ]);
  const file = loadWell(withLiveness({ mode: 'file', file: '/run/{bot}', url: 'http://{bot}/' }, TWO_BOTS));
  expect(placesOfBots(file.config, 'file')).toEqual([
    { bot: 'default', at: '/run/default' },
    { bot: 'maker', at: '/run/maker' },
  ]);
});

test.each([
  [
    'http://localhost/alive https://127.0.0.1:8443/alive?deep=1 http://172.31.0.1/ http://169.254.0.7/ http://[fd00::7]:8080/ http://[::ffff:10.0.0.1]/ http://bot:8080/ http://bot.trading.svc.cluster.local/ https://bot.internal/',
    true,
  ],
  [
    'http://8.8.8.8/ http://172.32.0.1/ http://[2001:db8::1]/ http://[::ffff:8.8.8.8]/ http://localhost.example/ http://10.0.0.1.example.com/ http://134744072/ http://[::]:8080/ file:///run/bot http://',
    false,
  ],
])('the address of a bot is of a private network: %s are: %s', (urls, isPrivate) => {
  for (const url of urls.split(' ')) {
    const problems = problemsOf(load(withLiveness({ mode: 'http', url })));
    expect(problems.includes('liveness.url: found '), url).toBe(!isPrivate);
    expect(problems === '', url).toBe(isPrivate);
  }
});

describe('a warning', () => {
  const idle = (keys: string, mode: string) => [`${keys}: of no meaning with liveness.mode: ${mode}`];
  const open =
    'control.listen: every user and program of this host may send beats and commands to 127.0.0.1:17478; set control.tokenFile, or listen at a unix: socket only';
  const unwatched =
    'liveness.mode: none: nobody watches the bot; timers are renewed for as long as this daemon runs, even when the bot is dead';
  it.each<[object, object, string[]]>([
    [
      { mode: 'beat', file: '/run/bot', probeEverySeconds: 9 },
      CONTROL,
      idle('liveness.file, liveness.probeEverySeconds', 'beat'),
    ],
    [{ mode: 'file', file: '/run/bot', url: 'http://bot/' }, {}, idle('liveness.url', 'file')],
    [{ mode: 'http', file: '/run/bot', url: 'http://bot/' }, {}, idle('liveness.file', 'http')],
    [{ mode: 'none', onStale: 'trip' }, {}, [...idle('liveness.onStale', 'none'), unwatched]],
    [{ mode: 'beat' }, { control: { listen: ['127.0.0.1:17478'] } }, [open]],
    [{ mode: 'beat', ttlSeconds: 10, onStale: 'trip' }, CONTROL, []],
    [{ mode: 'file', file: '/run/bot', probeEverySeconds: 2, startupGraceSeconds: 0 }, {}, []],
    [{ mode: 'http', url: 'http://bot/', probeEverySeconds: 2 }, CONTROL, []],
  ])('about %j', (liveness, more, warnings) => {
    const loaded = loadWell(withLiveness(liveness, more));
    expect(loaded.warnings).toEqual(warnings);
    // What --print shows of it means the same, without what is of no meaning.
    const again = loadWell(printConfig(loaded.config, loaded.sources).join('\n'));
    const told = warnings.filter((text) => !text.includes('of no meaning'));
    expect(again.warnings).toEqual(told);
    if (told.length === warnings.length) expect(again.config.liveness).toEqual(loaded.config.liveness);
  });
});
