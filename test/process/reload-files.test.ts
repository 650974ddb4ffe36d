import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { asker, controlsOf } from './control.ts';
import { guard, type Scope, scopeOfBlock, stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { linesOf, reloadBySignal, writeConfig } from './reloading.ts';
import { ofKind, type RunningExchange } from './simulated-exchange.ts';

type Content = Readonly<Record<string, unknown>>;

const MARKETS = ['AAA_USDT', 'BBB_USDT'];
const PROBLEMS = (body: unknown) => (body as { error: { problems: string[] } }).error.problems;

/** A daemon that nobody has to keep alive, with a control socket and whatever `config` adds. */
async function play(scope: Scope, config: Content = {}) {
  const guarded = await guard(scope, { markets: MARKETS, timeoutSeconds: 60, control: true, config });
  const { daemon } = guarded;
  const content = JSON.parse(readFileSync(daemon.configFile, 'utf8')) as Content;
  const write = (changes: Content) => writeConfig(daemon, JSON.stringify({ ...content, ...changes }));
  return { ...guarded, content, write, ask: asker(scope, daemon.socket, 2) };
}

const armed = (exchange: RunningExchange, wanted: string) =>
  exchange.event('timer-armed', 15_000, ({ market }) => market === wanted);

const deletedIn = async (exchange: RunningExchange) => ofKind(await exchange.events(), 'timer-deleted');

/** One daemon, whose files nobody looks at by themselves: its tests follow each other. */
const IN_TURN = { concurrent: false };

describe.concurrent('a reload', { timeout: 60_000 }, () => {
  const scope = scopeOfBlock();
  const stage = stageFor(scope);
  const tokens = ['the-first-token-of-the-test', 'the-second-token-of-the-test'] as const;
  const tokenFile = join(stage.directory, 'token');
  const socket = `unix:${join(stage.directory, 'control.sock')}`;
  const control = { listen: [socket, '127.0.0.1:0'], tokenFile };
  const ask = asker(scope, socket, 2);
  let playing: ReturnType<typeof play>;

  test(
    'waits until the file is the same at two looks: what is half written deletes no timer',
    IN_TURN,
    async () => {
      writeFileSync(tokenFile, tokens[0], { mode: 0o600 });
      playing = play(scope, { control, reload: { pollSeconds: 0 } });
      const { exchange, daemon, content } = await playing;
      writeFileSync(daemon.configFile, JSON.stringify({ ...content, markets: ['AAA_USDT'] }));
      const reply = ask('/v1/reload');
      await sleep(50);
      writeFileSync(daemon.configFile, JSON.stringify(content));
      expect((await reply).body).toEqual({ result: 'unchanged' });
      expect(await deletedIn(exchange)).toEqual([]);
    },
  );

  /** What the tokens are answered with, each in its turn. */
  const tried = async () => {
    const [, tcp = ''] = await controlsOf((await playing).daemon, 2);
    const overLoopback = asker(scope, tcp);
    const statuses: number[] = [];
    for (const token of tokens) {
      const headers = { authorization: `Bearer ${token}` };
      statuses.push((await overLoopback('/v1/health', { method: 'GET', headers })).status);
    }
    return statuses;
  };

  test('waits for the rest of a token that is half written', IN_TURN, async () => {
    writeFileSync(tokenFile, tokens[0].slice(0, 18));
    const reply = ask('/v1/reload');
    await sleep(300);
    writeFileSync(tokenFile, tokens[0]);
    expect((await reply).body).toEqual({ result: 'unchanged' });
    expect(await tried()).toEqual([200, 401]);
  });

  test('takes a token over that was replaced in its file', IN_TURN, async () => {
    expect(await tried()).toEqual([200, 401]);
    writeFileSync(tokenFile, tokens[1]);
    expect(await tried()).toEqual([200, 401]);
    expect((await ask('/v1/reload')).body).toMatchObject({ result: 'applied' });
    expect(await tried()).toEqual([401, 200]);
  });

  test('that waits for an exchange which does not answer holds up no other', IN_TURN, async () => {
    const { exchange, daemon, write } = await playing;
    const before = linesOf(daemon, 'reload-applied');
    await exchange.addFaults({ kind: 'hang', mode: 'hold', match: { market: 'CCC_USDT' } });
    write({ markets: [...MARKETS, 'CCC_USDT'] });
    const waits = ask('/v1/reload', { body: { waitSeconds: 20 } });
    await eventually('the first in force', 5000, () =>
      linesOf(daemon, 'reload-applied') > before ? true : null,
    );
    write({ markets: [...MARKETS, 'CCC_USDT', 'DDD_USDT'] });
    await reloadBySignal(daemon, 'reload-applied');
    await armed(exchange, 'DDD_USDT');
    write({ markets: [...MARKETS, 'DDD_USDT', 'EEE_USDT'] });
    expect((await ask('/v1/reload', { body: { waitSeconds: 0 } })).body).toMatchObject({
      result: 'applied',
      added: ['EEE_USDT'],
      removed: ['CCC_USDT'],
    });
    // It is told what became of its market.
    expect((await waits).body).toMatchObject({
      result: 'applied',
      done: false,
      markets: [{ market: 'CCC_USDT', state: 'impossible', says: 'CCC_USDT is no longer configured.' }],
    });
    await exchange.clearFaults();
    write({});
    expect((await ask('/v1/reload')).body).toMatchObject({ removed: ['DDD_USDT', 'EEE_USDT'] });
  });

  test(
    'takes a key over that was replaced in its file, before the exchange refuses the old one',
    IN_TURN,
    async () => {
      const { stage: own, exchange, daemon } = await playing;
      const next = 'the-secret-after-the-rotation';
      await exchange.end();
      writeFileSync(daemon.secretFile, `${next}\n`);
      const reply = await ask('/v1/reload');
      expect(reply).toMatchObject({
        status: 200,
        body: { result: 'applied', added: [], removed: [], changed: [] },
      });
      const changed = await own.exchange({ listen: new URL(exchange.url).host, secret: next });
      await eventually('both markets armed', 20_000, async () =>
        ofKind(await changed.events(), 'timer-armed').length < 2 ? null : true,
      );
      expect(ofKind(await changed.events(), 'request-refused')).toEqual([]);
      expect(daemon.logged('secrets-changed')).toHaveLength(1);
      expect((await ask('/v1/reload')).body).toEqual({ result: 'unchanged' });
      writeFileSync(daemon.secretFile, '');
      const spoilt = await ask('/v1/reload');
      expect([spoilt.status, PROBLEMS(spoilt.body)]).toEqual([
        422,
        [expect.stringMatching(/^KILLSWITCHD_API_SECRET_FILE: .*found an empty text/)],
      ]);
      writeFileSync(daemon.secretFile, `${next}\n`);
      await daemon.ready();
      expect(daemon.stdout()).not.toContain(next);
    },
  );

  test(
    'that would take most markets out is refused, and says what to write if it is meant',
    IN_TURN,
    async () => {
      const { daemon, write } = await playing;
      write({ markets: ['CCC_USDT'] });
      const reply = await ask('/v1/reload');
      expect([reply.status, PROBLEMS(reply.body)]).toEqual([
        422,
        [
          'markets: 2 of 2 markets would be taken out: AAA_USDT, BBB_USDT; allowed: at most half of them at once; write reload: { allowRemoval: true } if that is meant',
        ],
      ]);
      expect(await reloadBySignal(daemon, 'reload-rejected')).toContain('2 of 2 markets');
      await daemon.ready();
      expect(daemon.marketsLogged('deleted').filter((market) => MARKETS.includes(market))).toEqual([]);
      write({ markets: ['CCC_USDT'], reload: { pollSeconds: 0, allowRemoval: true } });
      expect((await ask('/v1/reload')).body).toMatchObject({ result: 'applied', removed: MARKETS });
      // The last one may always go.
      write({ markets: ['DDD_USDT'] });
      expect((await ask('/v1/reload')).body).toMatchObject({ result: 'applied', removed: ['CCC_USDT'] });
    },
  );
});

test('thousands of mistakes in one line hold up no renewal', { timeout: 90_000 }, async (context) => {
  const { exchange, daemon } = await guard(context, { timeoutSeconds: 10 });
  const wrong = Array.from({ length: 3000 }, (_, index) => ({ market: `M${index}_USDT`, timeoutSeconds: 4 }));
  const content = JSON.parse(readFileSync(daemon.configFile, 'utf8')) as Content;
  writeConfig(daemon, JSON.stringify({ ...content, markets: wrong }));
  daemon.signal('SIGHUP');
  await eventually('the refusal', 60_000, () => daemon.logged('reload-rejected')[0] ?? null);
  expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
});

describe.concurrent('a file that is looked at every second', { timeout: 60_000 }, () => {
  test('is read again when the link of a ConfigMap leads to another one, and a wrong one is told of once', async (context) => {
    const { exchange, daemon, content, ask } = await play(context, { reload: { pollSeconds: 1 } });
    const folder = dirname(daemon.configFile);
    let version = 0;
    /** As the kubelet does it: a new folder, and the link `..data` turned to it in one step. */
    const publish = (markets: readonly unknown[]) => {
      version += 1;
      mkdirSync(join(folder, `..${version}`));
      writeFileSync(
        join(folder, `..${version}`, 'killswitchd.json'),
        JSON.stringify({ ...content, markets }),
      );
      symlinkSync(`..${version}`, join(folder, '..data_tmp'));
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    };
    publish(content['markets'] as unknown[]);
    symlinkSync(join('..data', 'killswitchd.json'), join(folder, 'link'));
    renameSync(join(folder, 'link'), daemon.configFile);
    await sleep(2500);
    expect(await daemon.metric('killswitch_config_reloads_total')).toBe(0);

    publish(['AAA_USDT', 'BBB_USDT', 'CCC_USDT']);
    await armed(exchange, 'CCC_USDT');
    publish([{ market: 'AAA_USDT', timeoutSeconds: 4 }]);
    await eventually('the wrong one', 10_000, () => daemon.logged('reload-rejected')[0] ?? null);
    await sleep(2500);
    expect(daemon.logged('reload-rejected')).toHaveLength(1);
    expect(await daemon.metric('killswitch_config_last_reload_successful')).toBe(0);
    expect(await deletedIn(exchange)).toEqual([]);
    publish(['AAA_USDT', 'CCC_USDT']);
    await exchange.event('timer-deleted', 10_000, ({ market }) => market === 'BBB_USDT');
    await sleep(1100);
    expect(await daemon.metric('killswitch_config_last_reload_successful')).toBe(1);
    expect((await ask('/v1/reload')).body).toEqual({ result: 'unchanged' });
  });

  test('is taken over once a secret that was not there yet is, though it does not change any more, and may become a device without an end: that is said, everything goes on, and a stop is not held up', async (context) => {
    const { exchange, daemon, write, ask } = await play(context, { reload: { pollSeconds: 1 } });
    await sleep(1200);
    renameSync(daemon.secretFile, `${daemon.secretFile}.away`);
    write({ markets: [...MARKETS, 'CCC_USDT'] });
    await eventually('the rejection', 10_000, () => daemon.logged('reload-rejected')[0] ?? null);
    await sleep(2500);
    expect(await daemon.metric('killswitch_config_reloads_total')).toBeLessThanOrEqual(4);
    renameSync(`${daemon.secretFile}.away`, daemon.secretFile);
    await armed(exchange, 'CCC_USDT');
    expect(daemon.logged('reload-rejected')).toHaveLength(1);
    // The page may be a second old.
    await sleep(1100);
    expect(await daemon.metric('killswitch_config_last_reload_successful')).toBe(1);

    rmSync(daemon.configFile);
    symlinkSync('/dev/zero', daemon.configFile);
    const [told] = await eventually('the rejection', 10_000, () => {
      const lines = daemon.logged('reload-rejected').slice(1);
      return lines.length > 0 ? lines : null;
    });
    expect(told?.msg).toContain('the configuration file is not a regular file');
    expect(PROBLEMS((await ask('/v1/reload')).body)).toEqual([
      expect.stringContaining('the configuration file is not a regular file'),
    ]);
    expect(await daemon.metric('process_resident_memory_bytes')).toBeLessThan(400 * 2 ** 20);
    daemon.signal('SIGTERM');
    expect((await daemon.exit(10_000)).code).toBe(0);
    expect(await deletedIn(exchange)).toHaveLength(3);
  });

  test('is read again although it was replaced while the daemon started', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const config = { reload: { pollSeconds: 1 } };
    const daemon = await stage.daemon({ exchange: exchange.url, markets: ['AAA_USDT'], config });
    const content = JSON.parse(readFileSync(daemon.configFile, 'utf8')) as Content;
    await eventually('the start', 20_000, () => (daemon.stdout() === '' ? null : true));
    writeConfig(daemon, JSON.stringify({ ...content, markets: ['AAA_USDT', 'CCC_USDT'] }));
    await armed(exchange, 'CCC_USDT');
    expect(daemon.logged('reload-rejected')).toEqual([]);
  });

  test('is looked at as often as a reload says from that on, and not only after the wait of before', async (context) => {
    const { exchange, daemon, write } = await play(context, { reload: { pollSeconds: 3600 } });
    const reload = { pollSeconds: 1 };
    write({ reload });
    await reloadBySignal(daemon, 'reload-applied');
    write({ reload, markets: [...MARKETS, 'CCC_USDT'] });
    expect(await armed(exchange, 'CCC_USDT')).toMatchObject({ market: 'CCC_USDT' });
  });

  test('is read again although it changed right after the looking was switched on, and not while somebody still writes it', async (context) => {
    const { exchange, daemon, content, write } = await play(context, { reload: { pollSeconds: 0 } });
    const reload = { pollSeconds: 1 };
    write({ reload });
    await reloadBySignal(daemon, 'reload-applied');
    write({ reload, markets: [...MARKETS, 'CCC_USDT'] });
    await armed(exchange, 'CCC_USDT');
    const rounds = linesOf(daemon, 'reload-unchanged');
    await sleep(2500);
    expect(linesOf(daemon, 'reload-unchanged')).toBe(rounds);

    // Each stage of the writing is a configuration in its own right, with two of the three markets.
    const part = JSON.stringify({ ...content, reload, markets: ['BBB_USDT', 'CCC_USDT'] });
    const applied = linesOf(daemon, 'reload-applied');
    for (let written = 0; written < 20; written += 1) {
      writeFileSync(daemon.configFile, `${part} # ${written}`);
      await sleep(200);
    }
    const whole = { ...content, reload, markets: [...MARKETS, 'CCC_USDT', 'DDD_USDT'] };
    writeFileSync(daemon.configFile, JSON.stringify(whole));
    await armed(exchange, 'DDD_USDT');
    // The timer is armed before the line of the log is written.
    await eventually('the line of the reload', 10_000, () =>
      linesOf(daemon, 'reload-applied') > applied ? true : null,
    );
    expect(linesOf(daemon, 'reload-applied')).toBe(applied + 1);
    expect(await deletedIn(exchange)).toEqual([]);
  });
});
