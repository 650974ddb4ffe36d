import { describe, expect, test } from 'vitest';
import { run } from '../cli/stage.ts';
import { controlsOf } from './control.ts';
import { beginGuard, type Scope, scopeOfBlock, stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { ofKind, renewalsOf } from './simulated-exchange.ts';

/** What a command ends with and says. */
async function type(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { code, out, err } = await run(args, { env });
  return { code, out: out.join('\n'), err: err.join('\n') };
}

/** A daemon, and the commands as its operator types them. */
async function play(scope: Scope) {
  const { stage, exchange, daemon } = await beginGuard(scope, { control: true });
  await controlsOf(daemon);
  /** How often its timer was deleted, armed, and fired until now. */
  const count = async (market: string) => {
    const events = await exchange.events();
    const kinds = ['timer-deleted', 'timer-armed', 'timer-fired'] as const;
    return kinds.map((kind) => ofKind(events, kind, market).length);
  };
  return {
    stage,
    exchange,
    daemon,
    count,
    operate: (...args: readonly string[]) => type(args, { KILLSWITCHD_CONTROL: daemon.socket }),
  };
}

// One daemon is commanded by one test after the other.
describe('an operator command', { timeout: 60_000 }, () => {
  const scope = scopeOfBlock();
  let playing: ReturnType<typeof play>;

  test('trip has the orders of its market cancelled, and returns when that is sure', async () => {
    playing = play(scope);
    const { exchange, daemon, operate, count } = await playing;
    await daemon.ready();
    const tripped = await operate('trip', 'AAA_USDT', '--yes');
    const short = ofKind(await exchange.events(), 'timer-updated', 'AAA_USDT').at(-1);
    expect(short?.timeoutSeconds).toBe(5);
    expect(tripped.code).toBe(0);
    expect(tripped.out).toMatch(/^AAA_USDT is cut short: its orders are cancelled within [\d.]+ s\.$/);
    const { atMs } = await exchange.event('timer-fired', 8000, ({ market }) => market === 'AAA_USDT');
    expect(atMs - (short?.atMs ?? 0)).toBeLessThan(6500);
    await sleep(1500);
    const events = await exchange.events();
    expect(ofKind(events, 'order-cancelled').map(({ market }) => market)).toEqual(['AAA_USDT']);
    expect(renewalsOf(events, 'AAA_USDT').filter((renewedMs) => renewedMs > atMs)).toEqual([]);
    expect((await operate('arm')).code).toBe(0);
    expect(await count('AAA_USDT')).toEqual([0, 2, 1]);
  });

  test('returns when the timer is gone, or stands again, and touches no other market', async () => {
    const { stage, exchange, daemon, operate, count } = await playing;
    const env = { KILLSWITCHD_CONTROL: daemon.socket };
    const disarm = await stage.run(['disarm', 'AAA_USDT', '--yes', '--reason', 'wallet moves'], { env });
    expect((await disarm.exit()).code).toBe(0);
    expect(await count('AAA_USDT')).toEqual([1, 2, 1]);
    expect(disarm.stderr()).toBe('');
    expect(disarm.stdout()).toBe('AAA_USDT has no timer any more: its orders stay.\n');
    const told = daemon.logged('operator-command').at(-1);
    expect(told).toMatchObject({ command: 'disarm', markets: ['AAA_USDT'], reason: 'wallet moves' });
    expect(told?.msg).toMatch(
      /^An operator's command: disarm AAA_USDT\. Reason: "wallet moves"\. Sender: "killswitchd \(uid \d+, pid \d+\)", as it says; over unix:.*, open to uid \d+\.$/,
    );
    expect((await operate('resume', 'AAA_USDT')).code).toBe(69);
    expect(await count('AAA_USDT')).toEqual([1, 2, 1]);
    const armed = await operate('arm', 'AAA_USDT');
    expect(await count('AAA_USDT')).toEqual([1, 3, 1]);
    expect(armed.code).toBe(0);
    expect(armed.out).toMatch(/^AAA_USDT is armed and renewed: [\d.]+ s left now\.$/);
    expect((await count('BBB_USDT'))[0]).toBe(0);
    expect(ofKind(await exchange.events(), 'timer-fired', 'BBB_USDT')).toEqual([]);
  });

  test('reload returns when new markets are armed and old ones have no timer, and status shows them', async () => {
    const { daemon, operate, count } = await playing;
    const markets = ['BBB_USDT', 'CCC_USDT'].map((market) => ({ market, timeoutSeconds: 10 }));
    daemon.configure({ markets });
    const reload = await type(['reload', '--config', daemon.configFile]);
    expect(await count('CCC_USDT')).toEqual([0, 1, 0]);
    expect([(await count('AAA_USDT'))[0], (await count('BBB_USDT'))[0]]).toEqual([2, 0]);
    expect(reload.out).toMatch(/^Added: CCC_USDT\.\nRemoved: AAA_USDT\.\nCCC_USDT is armed and renewed: /m);
    await sleep(1100);
    expect((await operate('status')).out).toMatch(/^BBB_USDT +armed +[^]*^CCC_USDT +armed +/m);
    expect((await operate('healthcheck', '--ready')).out).toBe('The daemon is ready.');
  });

  test('reload and the log say by when the orders of a market are cancelled that leaves with its timer', async () => {
    const { daemon } = await playing;
    daemon.configure({
      markets: [{ market: 'BBB_USDT', timeoutSeconds: 10 }],
      shutdown: { policy: 'keep' },
    });
    const { out } = await type(['reload', '--config', daemon.configFile]);
    const keeps =
      /^Removed: CCC_USDT\.\nCCC_USDT keeps its timer: its orders are cancelled within [\d.]+ s unless /m;
    expect(out).toMatch(keeps);
    const line = await eventually('its end', 5000, () => daemon.logged('removed')[1]);
    expect(line.msg).toMatch(/is left armed\. Its orders are cancelled by .* unless somebody renews it\.$/);
  });
});

test.concurrent('a market that the exchange refuses holds back the bot that trades it and no other, and makes a reload end as arm does', {
  timeout: 60_000,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange({ markets: ['AAA_USDT'] });
  const markets = [
    { market: 'AAA_USDT', bot: 'maker' },
    { market: 'GONE_USDT', bot: 'taker' },
  ];
  const config = { liveness: { mode: 'beat' } };
  const daemon = await stage.daemon({ exchange: exchange.url, markets, control: true, config });
  await eventually('the refusal', 15_000, () => daemon.logged('refused')[0]);
  const control = ['--control', daemon.socket];
  const ready = (...args: readonly string[]) =>
    type(['healthcheck', '--ready', '--exclude', 'bots', ...args]);
  const forTaker = await ready(...control, '--bot', 'taker', '--wait', '1');
  expect(forTaker.code).toBe(69);
  expect(forTaker.err).toMatch(/waits: .*\n.*is not ready for the bot taker: timer\/GONE_USDT: rejected/);
  expect(forTaker.err).not.toContain('AAA_USDT');
  for (const way of [control, ['--web', new URL(await daemon.web()).host]]) {
    expect((await ready(...way)).code).toBe(69);
    expect((await ready(...way, '--bot', 'maker')).out).toBe('The daemon is ready for the bot maker.');
  }
  daemon.configure({ markets: [...markets, { market: 'LOST_USDT', bot: 'maker' }] });
  const reload = await type(['reload', ...control]);
  expect([reload.code, (await type(['arm', 'LOST_USDT', ...control])).code]).toEqual([69, 69]);
  expect(reload.err).toMatch(/LOST_USDT is refused by the exchange.*\n.*the configuration is in force/);
});
