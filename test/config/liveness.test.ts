import { expect, it, test } from 'vitest';
import { placesOfBots } from '../../src/config/config.ts';
import { printConfig } from '../../src/config/print.ts';
import { ENVIRONMENT, load, loadWell, problemsOf } from './fixture.ts';

const { KILLSWITCHD_LIVENESS_MODE: _none, ...WITHOUT_MODE } = ENVIRONMENT;

function withLiveness(liveness: object, more: object = {}): string {
  const exchange = { baseUrls: ['https://exchange.example'] };
  return JSON.stringify({ exchange, markets: ['BTC_USDT'], liveness, ...more });
}

const CONTROL = { control: { listen: ['unix:/run/killswitchd/control.sock'] } };

test('exec watches its child where no other mode is written, run does not guess, and check-config says whom it is for', () => {
  const exec = load(null, WITHOUT_MODE, {}, 'exec');
  expect(exec).toMatchObject({ kind: 'ok', config: { liveness: { mode: 'process' } } });
  expect(problemsOf(load(null, WITHOUT_MODE, {}, 'run'))).toContain('liveness.mode: missing');
  const env = { ...WITHOUT_MODE, KILLSWITCHD_CONTROL_LISTEN: '127.0.0.1:1' };
  const withMode = (livenessMode: string) => problemsOf(load(null, env, { livenessMode }, 'exec'));
  expect(withMode('beat')).toBe('');
  const modes = 'allowed: beat, file, http, process, none; did you mean beat?';
  expect(withMode('beet')).toBe(`--liveness-mode: found "beet"; ${modes}`);
  expect(loadWell(null, WITHOUT_MODE, { livenessMode: 'process' }).warnings).toEqual([
    'liveness.mode: process: only for killswitchd exec -- BOT, which starts the bot; run refuses it',
  ]);
});

test.each([
  ['file', 15, 1],
  ['http', 15, 3.75],
  ['http', 60, 5],
  ['file', 1, 0.25],
])('with mode %s and a lifetime of %d s the bot is looked at every %d s', (mode, ttlSeconds, expected) => {
  const liveness = { mode, ttlSeconds, file: '/run/bot', url: 'http://bot/' };
  expect(loadWell(withLiveness(liveness)).config.liveness.probeEverySeconds).toBe(expected);
});

test('a file or an address of several bots holds the name of the bot in the place of {bot}', () => {
  const bots = { markets: ['BTC_USDT', { market: 'ETH_USDT', bot: 'maker' }] };
  const placesOf = (mode: 'url' | 'file', liveness: object) =>
    placesOfBots(loadWell(withLiveness(liveness, bots)).config, mode).map(({ bot, at }) => `${bot} ${at}`);
  expect(placesOf('url', { mode: 'http', url: 'http://{bot}.internal/{bot}?$&' })).toEqual([
    'default http://default.internal/default?$&',
    'maker http://maker.internal/maker?$&',
  ]);
  const file = { mode: 'file', file: '/run/{bot}', url: 'http://{bot}/' };
  expect(placesOf('file', file)).toEqual(['default /run/default', 'maker /run/maker']);
});

test.each([
  [
    true,
    'localhost/alive 127.0.0.1:8443/alive?deep=1 172.31.0.1/ 169.254.0.7/ [fd00::7]:8080/ [::ffff:10.0.0.1]/ bot:8080/ bot.trading.svc.cluster.local/ bot.internal/',
  ],
  [
    false,
    '8.8.8.8/ 172.32.0.1/ [2001:db8::1]/ [::ffff:8.8.8.8]/ localhost.example/ 10.0.0.1.example.com/ 134744072/ [::]:8080/ ',
  ],
])('the address of a bot is of a private network: %s for %s', (isPrivate, hosts) => {
  for (const host of hosts.split(' ')) {
    const problems = problemsOf(load(withLiveness({ mode: 'http', url: `http://${host}` })));
    expect(problems.includes('liveness.url: found '), host).toBe(!isPrivate);
    expect(problems === '', host).toBe(isPrivate);
  }
});

const idle = (keys: string, mode: string) => [`${keys}: of no meaning with liveness.mode: ${mode}`];
const open =
  'control.listen: every user and program of this host may send beats and commands to 127.0.0.1:17478; set control.tokenFile, or listen at a unix: socket only';
const unwatched =
  'liveness.mode: none: nobody watches the bot; timers are renewed for as long as this daemon runs, even when the bot is dead';
const deaf =
  'shutdown.budgetSeconds: a stop hears a beat that is 0.5 s newer than itself, and 1.5 s leave no time for one: the timers of bots without a goodbye are left to fire; take 2 or more';
const FILE = { mode: 'file', file: '/run/bot' };
const idleOfBeat = idle('liveness.file, liveness.probeEverySeconds', 'beat');
it.each<[object, object, string[]]>([
  [{ ...FILE, mode: 'beat', probeEverySeconds: 9 }, CONTROL, idleOfBeat],
  [{ ...FILE, url: 'http://bot/' }, {}, idle('liveness.url', 'file')],
  [{ ...FILE, mode: 'http', url: 'http://bot/' }, {}, idle('liveness.file', 'http')],
  [{ mode: 'none', onStale: 'trip' }, {}, [...idle('liveness.onStale', 'none'), unwatched]],
  [{ mode: 'beat' }, { control: { listen: ['127.0.0.1:17478'] } }, [open]],
  [{ mode: 'beat', ttlSeconds: 10, onStale: 'trip' }, CONTROL, []],
  [{ mode: 'beat' }, { ...CONTROL, shutdown: { budgetSeconds: 1.5 } }, [deaf]],
  [{ mode: 'beat' }, { ...CONTROL, shutdown: { budgetSeconds: 1.5, policy: 'keep' } }, []],
  [{ mode: 'beat' }, { ...CONTROL, shutdown: { budgetSeconds: 2 } }, []],
  [{ ...FILE, probeEverySeconds: 2, startupGraceSeconds: 0 }, {}, []],
  [{ mode: 'http', url: 'http://bot/', probeEverySeconds: 2 }, CONTROL, []],
])('a warning about %j', (liveness, more, warnings) => {
  const loaded = loadWell(withLiveness(liveness, more));
  expect(loaded.warnings).toEqual(warnings);
  // What --print shows of it means the same, without what is of no meaning.
  const again = loadWell(printConfig(loaded.config, loaded.sources).join('\n'));
  const told = warnings.filter((text) => !text.includes('of no meaning'));
  expect(again.warnings).toEqual(told);
  if (told.length === warnings.length) expect(again.config.liveness).toEqual(loaded.config.liveness);
});
