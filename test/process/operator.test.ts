import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { run } from '../cli/stage.ts';
import { asker, controlsOf } from './control.ts';
import { type Scope, scopeOfBlock, stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { writeConfig } from './reloading.ts';
import { type EventKind, ofKind, renewalsOf } from './simulated-exchange.ts';

type Content = Readonly<Record<string, unknown>>;

const T_SECONDS = 10;
const timed = (...markets: readonly string[]) =>
  markets.map((market) => ({ market, timeoutSeconds: T_SECONDS }));

/** What a command ends with and says. */
async function type(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { code, out, err } = await run(args, { env });
  return { code, out: out.join('\n'), err: err.join('\n') };
}

/** A daemon, and the commands as its operator types them. */
async function play(scope: Scope, config: Content = {}) {
  const stage = stageFor(scope);
  const exchange = await stage.exchange();
  const markets = timed('AAA_USDT', 'BBB_USDT');
  const daemon = await stage.daemon({ exchange: exchange.url, markets, control: true, config });
  await controlsOf(daemon);
  /** How often it happened at the exchange until now. */
  const count = async (kind: EventKind, market: string) =>
    ofKind(await exchange.events(), kind, market).length;
  return {
    stage,
    exchange,
    daemon,
    count,
    operate: (...args: readonly string[]) => type(args, { KILLSWITCHD_CONTROL: daemon.socket }),
    content: JSON.parse(readFileSync(daemon.configFile, 'utf8')) as Content,
  };
}

/** Which keys a document has, all the way down; of a list the keys of its first entry. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? [] : [shapeOf(value[0])];
  if (typeof value !== 'object' || value === null) return '';
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, shapeOf(entry)]));
}

// One daemon is commanded by one test after the other.
describe('an operator command', { timeout: 60_000 }, () => {
  const scope = scopeOfBlock();
  let playing: ReturnType<typeof play>;

  test('to pause ends by itself or by resume', async () => {
    playing = play(scope);
    const { exchange, daemon, operate, count } = await playing;
    await daemon.ready();
    const happened = async () => [
      await count('timer-deleted', 'AAA_USDT'),
      await count('timer-armed', 'AAA_USDT'),
      await count('timer-deleted', 'BBB_USDT'),
      await count('timer-armed', 'BBB_USDT'),
    ];
    expect((await operate('pause', '--yes', '--for', '3s', 'AAA_USDT')).code).toBe(0);
    expect(await happened()).toEqual([1, 1, 0, 1]);
    await eventually('the end of the pause', 10_000, async () =>
      (await count('timer-armed', 'AAA_USDT')) === 2 ? true : null,
    );
    expect((await operate('pause', '--yes', '--for', '10m')).code).toBe(0);
    expect(await happened()).toEqual([2, 2, 1, 1]);
    const resumed = await operate('resume', '--json');
    expect([resumed.code, await happened()]).toEqual([0, [2, 3, 1, 2]]);
    expect(JSON.parse(resumed.out)).toMatchObject({
      done: true,
      markets: [
        { market: 'AAA_USDT', state: 'done' },
        { market: 'BBB_USDT', state: 'done' },
      ],
    });
    expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
  });

  test('trip has the orders of its market cancelled, and returns when that is sure', async () => {
    const { exchange, operate, count } = await playing;
    const armedBefore = await count('timer-armed', 'AAA_USDT');
    await exchange.placeOrders({ market: 'AAA_USDT', type: 'spot' }, { market: 'BBB_USDT', type: 'spot' });
    expect((await operate('trip', 'AAA_USDT')).code).toBe(64);
    const tripped = await operate('trip', 'AAA_USDT', '--yes');
    const short = ofKind(await exchange.events(), 'timer-updated', 'AAA_USDT').at(-1);
    expect(short?.timeoutSeconds).toBe(5);
    expect(tripped.code).toBe(0);
    expect(tripped.out).toMatch(/^AAA_USDT is cut short: its orders are cancelled within [\d.]+ s\.$/);
    const { atMs } = await exchange.event('timer-fired', 8000, ({ market }) => market === 'AAA_USDT');
    expect(atMs - (short?.atMs ?? 0)).toBeLessThan(6500);
    await exchange.event('order-cancelled', 1000, ({ market }) => market === 'AAA_USDT');
    await sleep(1500);
    const later = renewalsOf(await exchange.events(), 'AAA_USDT').filter((renewedMs) => renewedMs > atMs);
    expect(later).toEqual([]);
    expect(await count('order-cancelled', 'BBB_USDT')).toBe(0);
    expect((await operate('arm')).code).toBe(0);
    expect(await count('timer-armed', 'AAA_USDT')).toBe(armedBefore + 1);
  });

  test('returns when the timer is gone, or stands again, and touches no other market', async () => {
    const { stage, exchange, daemon, operate, count } = await playing;
    const fired = await count('timer-fired', 'AAA_USDT');
    const [deleted, armedBefore] = [
      await count('timer-deleted', 'AAA_USDT'),
      await count('timer-armed', 'AAA_USDT'),
    ];
    const asked = await operate('disarm', 'AAA_USDT');
    expect([asked.code, asked.out]).toEqual([64, '']);
    expect(asked.err).toContain(
      'nobody can be asked here whether it is meant: add --yes; nothing was changed',
    );
    expect(await count('timer-deleted', 'AAA_USDT')).toBe(deleted);

    const env = { KILLSWITCHD_CONTROL: daemon.socket };
    const disarm = await stage.run(['disarm', 'AAA_USDT', '--yes', '--reason', 'wallet moves'], { env });
    expect((await disarm.exit()).code).toBe(0);
    expect(await count('timer-deleted', 'AAA_USDT')).toBe(deleted + 1);
    expect([disarm.stdout(), disarm.stderr()]).toEqual([
      'AAA_USDT has no timer any more: its orders stay.\n',
      '',
    ]);
    const told = daemon.logged('operator-command').at(-1);
    expect(told).toMatchObject({ command: 'disarm', markets: ['AAA_USDT'], reason: 'wallet moves' });
    expect(told?.msg).toMatch(
      /^An operator's command: disarm AAA_USDT\. Reason: "wallet moves"\. Sender: "killswitchd \(uid \d+, pid \d+\)", as it says; over unix:.*, open to uid \d+\.$/,
    );
    const renewals = renewalsOf(await exchange.events(), 'AAA_USDT').length;
    const paused = await operate('pause', 'AAA_USDT', '--yes', '--for', '10m');
    expect([paused.code, paused.out]).toEqual([69, '']);
    expect(paused.err).toContain(
      'AAA_USDT is disarmed and cannot be paused: the end of the pause would arm it.',
    );
    expect((await operate('resume', 'AAA_USDT')).code).toBe(69);
    expect(renewalsOf(await exchange.events(), 'AAA_USDT')).toHaveLength(renewals);

    const armed = await operate('arm', 'AAA_USDT');
    expect(await count('timer-armed', 'AAA_USDT')).toBe(armedBefore + 1);
    expect(armed.code).toBe(0);
    expect(armed.out).toMatch(/^AAA_USDT is armed and renewed: [\d.]+ s left now\.$/);
    expect(await count('timer-fired', 'AAA_USDT')).toBe(fired);
  });

  test('reload returns when new markets are armed and old ones have no timer, and status shows them', async () => {
    const { daemon, operate, count, content } = await playing;
    const [deletedA, deletedB] = [
      await count('timer-deleted', 'AAA_USDT'),
      await count('timer-deleted', 'BBB_USDT'),
    ];
    writeConfig(daemon, JSON.stringify({ ...content, markets: timed('BBB_USDT', 'CCC_USDT') }));
    const reload = await type(['reload', '--config', daemon.configFile]);
    expect(await count('timer-armed', 'CCC_USDT')).toBe(1);
    expect(await count('timer-deleted', 'AAA_USDT')).toBe(deletedA + 1);
    expect(reload).toMatchObject({ code: 0, err: '' });
    expect(reload.out).toMatch(
      /^The new configuration is in force\.\nAdded: CCC_USDT\.\nRemoved: AAA_USDT\.\nCCC_USDT is armed and renewed: [\d.]+ s left now\.$/,
    );
    expect(await type(['reload'], { KILLSWITCHD_CONFIG: daemon.configFile })).toEqual({
      code: 0,
      out: 'Nothing has changed: the configuration in force stays.',
      err: '',
    });
    expect(await count('timer-deleted', 'BBB_USDT')).toBe(deletedB);

    await sleep(1100);
    const shown = await operate('status');
    expect(shown).toMatchObject({ code: 0, err: '' });
    expect(shown.out).not.toContain('\u001b[');
    for (const market of ['BBB_USDT', 'CCC_USDT'])
      expect(shown.out).toMatch(new RegExp(`^${market} +armed +`, 'm'));
    const json = await operate('status', '--json');
    const overWeb = JSON.parse((await daemon.get('/api/v1/status')).body) as unknown;
    expect(shapeOf(JSON.parse(json.out))).toEqual(shapeOf(overWeb));
    expect((await operate('healthcheck', '--ready')).out).toBe('The daemon is ready.');
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    const gone = await operate('status');
    expect([gone.code, gone.out]).toEqual([69, '']);
    expect(gone.err).toContain('there is no such socket; is killswitchd running');
  });
});

test.concurrent('an operator command cannot arm a market whose bot is silent, and says so; healthcheck tells apart what is live and what is ready', {
  timeout: 60_000,
}, async (context) => {
  const liveness = { mode: 'beat', ttlSeconds: 300, startupGraceSeconds: 0 };
  const { exchange, daemon, operate } = await play(context, { liveness });
  const armed = await operate('arm', 'AAA_USDT');
  expect(armed).toMatchObject({ code: 69, out: '' });
  expect(armed.err).toContain("nothing is renewed before the bot's next beat");
  expect(renewalsOf(await exchange.events(), 'AAA_USDT')).toEqual([]);

  expect((await operate('healthcheck', '--ready')).err).toContain('the bot default is silent');
  // Whoever starts the bot waits for this.
  expect((await operate('healthcheck', '--ready', '--exclude', 'bots')).code).toBe(0);
  await exchange.addFaults({ kind: 'maintenance' });
  const beat = await asker(context, daemon.socket)('/v1/beat');
  expect(beat.body).toMatchObject({ armed: false, counted: true });
  const ready = await operate('healthcheck', '--ready');
  expect(ready).toMatchObject({ code: 69, out: '' });
  expect(ready.err).toMatch(/is not ready: AAA_USDT .*; BBB_USDT /);
  const live = { code: 0, out: 'The daemon is live.', err: '' };
  expect(await operate('healthcheck', '--live')).toEqual(live);
});

const OF_TWO_BOTS = [
  { market: 'AAA_USDT', bot: 'maker' },
  { market: 'GONE_USDT', bot: 'taker' },
];

test.concurrent('a market that the exchange refuses holds back the bot that trades it and no other, and makes a reload end as arm does', async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange({ markets: ['AAA_USDT', 'BBB_USDT'] });
  const config = { liveness: { mode: 'beat' } };
  const daemon = await stage.daemon({ exchange: exchange.url, markets: OF_TWO_BOTS, control: true, config });
  await eventually('the refusal', 15_000, () => daemon.logged('refused')[0] ?? null);
  const ask = (...args: readonly string[]) => type(args);

  const ready = ['healthcheck', '--ready', '--exclude', 'bots', '--control', daemon.socket];
  expect(await ask(...ready, '--bot', 'maker', '--wait', '5')).toMatchObject({
    code: 0,
    out: 'The daemon is ready for the bot maker.',
  });
  const taker = await ask(...ready, '--bot', 'taker', '--wait', '1');
  expect(taker).toMatchObject({ code: 69, out: '' });
  expect(taker.err).toMatch(/waits: .*\n.*is not ready for the bot taker: timer\/GONE_USDT: rejected/);
  expect(taker.err).not.toContain('AAA_USDT');
  expect((await ask(...ready)).code).toBe(69);
  const unknown = await ask(...ready, '--bot', 'makr');
  expect([unknown.code, unknown.err]).toEqual([64, expect.stringContaining('did you mean maker')]);
  const byWeb = ['healthcheck', '--ready', '--exclude', 'bots', '--web', new URL(await daemon.web()).host];
  for (const [bot, exitCode, status] of [
    ['maker', 0, 200],
    ['taker', 69, 503],
    ['makr', 64, 404],
  ] as const) {
    expect([bot, (await ask(...byWeb, '--bot', bot)).code]).toEqual([bot, exitCode]);
    expect((await daemon.get(`/readyz?exclude=bots&bot=${bot}`)).status).toBe(status);
  }
  expect((await daemon.get('/readyz?bot=maker')).status).toBe(200);
  expect((await daemon.get('/readyz?exclude=bots')).status).toBe(503);

  // Asked about no more than once a minute.
  expect(ofKind(await exchange.events(), 'request-refused')).toMatchObject([
    { market: 'GONE_USDT', code: 31 },
  ]);
  const { body } = await daemon.get('/readyz?verbose');
  expect(body).toContain('[+]timer/AAA_USDT ok');
  expect(body).toMatch(/\[-\]timer\/GONE_USDT failed: .*Market is not available/);

  const control = ['--control', daemon.socket];
  const content = JSON.parse(readFileSync(daemon.configFile, 'utf8')) as object;
  const reloadWith = (...markets: readonly object[]) => {
    writeConfig(daemon, JSON.stringify({ ...content, markets }));
    return ask('reload', ...control);
  };
  const reload = await reloadWith(...OF_TWO_BOTS, { market: 'LOST_USDT', bot: 'maker' });
  expect(reload.code).toBe((await ask('arm', 'LOST_USDT', ...control)).code);
  expect(reload.code).toBe(69);
  expect(reload.err).toMatch(/LOST_USDT is refused by the exchange.*\n.*the configuration is in force/);
  const still = await reloadWith(...OF_TWO_BOTS, { market: 'BBB_USDT', bot: 'maker' });
  expect([still.code, still.err]).toEqual([69, expect.stringContaining('refuses GONE_USDT')]);
  expect((await reloadWith(OF_TWO_BOTS[0] ?? {}, { market: 'BBB_USDT', bot: 'maker' })).code).toBe(0);
}, 60_000);
