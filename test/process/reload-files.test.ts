import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, type TestContext, test } from 'vitest';
import { asker, controlsOf } from './control.ts';
import { stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { linesOf, reloadBySignal, writeConfig } from './reloading.ts';
import { ofKind } from './simulated-exchange.ts';

type Content = Readonly<Record<string, unknown>>;

/** A daemon that nobody has to keep alive, with a control socket and whatever `config` adds. */
async function play(context: TestContext, config: Content = {}) {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  const socket = `unix:${join(stage.directory, 'control.sock')}`;
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: ['AAA_USDT', 'BBB_USDT'],
    config: { control: { listen: [socket] }, ...config },
  });
  const [address = ''] = await controlsOf(daemon);
  await daemon.ready();
  const content = JSON.parse(readFileSync(daemon.configFile, 'utf8')) as Content;
  return { stage, exchange, daemon, content, socket, ask: asker(context, address, 2) };
}

const PROBLEMS = (body: unknown) => (body as { error: { problems: string[] } }).error.problems;

describe.concurrent('a reload', { timeout: 60_000 }, () => {
  test('takes a key over that was replaced in its file, before the exchange refuses the old one', async (context) => {
    const { stage, exchange, daemon, ask } = await play(context);
    const next = 'the-secret-after-the-rotation';
    await exchange.end();
    writeFileSync(daemon.secretFile, `${next}\n`);
    const reply = await ask('/v1/reload');
    expect(reply).toMatchObject({
      status: 200,
      body: { result: 'applied', added: [], removed: [], changed: [] },
    });
    const changed = await stage.exchange({ listen: new URL(exchange.url).host, secret: next });
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
    await daemon.ready();
    expect(daemon.stdout()).not.toContain(next);
  });

  test('waits until the file is the same at two looks: what is half written deletes no timer', async (context) => {
    const { exchange, daemon, content, ask } = await play(context);
    writeFileSync(daemon.configFile, JSON.stringify({ ...content, markets: ['AAA_USDT'] }));
    const reply = ask('/v1/reload');
    await sleep(50);
    writeFileSync(daemon.configFile, JSON.stringify(content));
    expect((await reply).body).toEqual({ result: 'unchanged' });
    expect(ofKind(await exchange.events(), 'timer-deleted')).toEqual([]);
  });

  test('takes a token over that was replaced in its file', async (context) => {
    const tokens = ['the-first-token-of-the-test', 'the-second-token-of-the-test'] as const;
    const stage = stageFor(context);
    const tokenFile = join(stage.directory, 'token');
    writeFileSync(tokenFile, tokens[0], { mode: 0o600 });
    const { ask, daemon } = await play(context, {
      control: { listen: [`unix:${join(stage.directory, 's')}`, '127.0.0.1:0'], tokenFile },
    });
    const [, tcp = ''] = await controlsOf(daemon, 2);
    const overLoopback = asker(context, tcp);
    const tried = async () => {
      const statuses: number[] = [];
      for (const token of tokens) {
        const headers = { authorization: `Bearer ${token}` };
        statuses.push((await overLoopback('/v1/health', { method: 'GET', headers })).status);
      }
      return statuses;
    };
    expect(await tried()).toEqual([200, 401]);
    writeFileSync(tokenFile, tokens[1]);
    expect(await tried()).toEqual([200, 401]);
    expect((await ask('/v1/reload')).body).toMatchObject({ result: 'applied' });
    expect(await tried()).toEqual([401, 200]);
  });

  test('that waits for an exchange which does not answer holds up no other', async (context) => {
    const { exchange, daemon, content, ask } = await play(context);
    const withMarkets = (...markets: string[]) =>
      writeConfig(daemon, JSON.stringify({ ...content, markets: ['AAA_USDT', 'BBB_USDT', ...markets] }));
    await exchange.addFaults({ kind: 'hang', mode: 'hold', match: { market: 'CCC_USDT' } });
    withMarkets('CCC_USDT');
    const waits = ask('/v1/reload', { body: { waitSeconds: 20 } });
    await eventually('the first in force', 5000, () => daemon.logged('reload-applied')[0] ?? null);
    withMarkets('CCC_USDT', 'DDD_USDT');
    await reloadBySignal(daemon, 'reload-applied');
    await exchange.event('timer-armed', 10_000, ({ market }) => market === 'DDD_USDT');
    withMarkets('DDD_USDT', 'EEE_USDT');
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
  });
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
    await exchange.event('timer-armed', 10_000, ({ market }) => market === 'CCC_USDT');
    publish([{ market: 'AAA_USDT', timeoutSeconds: 4 }]);
    await eventually('the wrong one', 10_000, () => daemon.logged('reload-rejected')[0] ?? null);
    await sleep(2500);
    expect(daemon.logged('reload-rejected')).toHaveLength(1);
    expect(await daemon.metric('killswitch_config_last_reload_successful')).toBe(0);
    expect(ofKind(await exchange.events(), 'timer-deleted')).toEqual([]);
    publish(['AAA_USDT', 'CCC_USDT']);
    await exchange.event('timer-deleted', 10_000, ({ market }) => market === 'BBB_USDT');
    await sleep(1100);
    expect(await daemon.metric('killswitch_config_last_reload_successful')).toBe(1);
    expect((await ask('/v1/reload')).body).toEqual({ result: 'unchanged' });
  });

  test('is taken over once a secret that was not there yet is, though it does not change any more', async (context) => {
    const { exchange, daemon, content } = await play(context, { reload: { pollSeconds: 1 } });
    await sleep(1500);
    renameSync(daemon.secretFile, `${daemon.secretFile}.away`);
    const markets = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];
    writeConfig(daemon, JSON.stringify({ ...content, markets }));
    await eventually('the rejection', 10_000, () => daemon.logged('reload-rejected')[0] ?? null);
    await sleep(4000);
    expect(await daemon.metric('killswitch_config_reloads_total')).toBeLessThanOrEqual(4);
    renameSync(`${daemon.secretFile}.away`, daemon.secretFile);
    await exchange.event('timer-armed', 20_000, ({ market }) => market === 'CCC_USDT');
    expect(daemon.logged('reload-rejected')).toHaveLength(1);
    expect(await daemon.metric('killswitch_config_last_reload_successful')).toBe(1);
  });

  test('is read again although it changed right after the looking was switched on', async (context) => {
    const { exchange, daemon, content } = await play(context);
    writeConfig(daemon, JSON.stringify({ ...content, reload: { pollSeconds: 1 } }));
    await reloadBySignal(daemon, 'reload-applied');
    writeConfig(
      daemon,
      JSON.stringify({
        ...content,
        reload: { pollSeconds: 1 },
        markets: ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'],
      }),
    );
    await exchange.event('timer-armed', 15_000, ({ market }) => market === 'CCC_USDT');
    const rounds = linesOf(daemon, 'reload-unchanged');
    await sleep(2500);
    expect(linesOf(daemon, 'reload-unchanged')).toBe(rounds);
  });

  test('is read again although it was replaced while the daemon started', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const config = { reload: { pollSeconds: 1 } };
    const daemon = await stage.daemon({ exchange: exchange.url, markets: ['AAA_USDT'], config });
    const content = JSON.parse(readFileSync(daemon.configFile, 'utf8')) as Content;
    await eventually('the start', 20_000, () => (daemon.stdout() === '' ? null : true));
    writeConfig(daemon, JSON.stringify({ ...content, markets: ['AAA_USDT', 'CCC_USDT'] }));
    await exchange.event('timer-armed', 15_000, ({ market }) => market === 'CCC_USDT');
    expect(daemon.logged('reload-rejected')).toEqual([]);
  });

  test('is not taken over while somebody still writes it', async (context) => {
    const { exchange, daemon, content } = await play(context, { reload: { pollSeconds: 1 } });
    // Each stage of the writing is a configuration in its own right, with one of the two markets.
    for (let written = 0; written < 20; written += 1) {
      writeFileSync(
        daemon.configFile,
        `${JSON.stringify({ ...content, markets: ['BBB_USDT'] })} # ${written}`,
      );
      await sleep(200);
    }
    writeFileSync(
      daemon.configFile,
      JSON.stringify({ ...content, markets: ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'] }),
    );
    await exchange.event('timer-armed', 10_000, ({ market }) => market === 'CCC_USDT');
    // The timer is armed before the line of the log is written.
    await eventually('the line of the reload', 10_000, () => daemon.logged('reload-applied')[0] ?? null);
    expect(daemon.logged('reload-applied')).toHaveLength(1);
    expect(ofKind(await exchange.events(), 'timer-deleted')).toEqual([]);
  });

  test('may become a device without an end: that is said, everything goes on, and a stop is not held up', async (context) => {
    const { exchange, daemon, ask } = await play(context, { reload: { pollSeconds: 1 } });
    rmSync(daemon.configFile);
    symlinkSync('/dev/zero', daemon.configFile);
    const [told] = await eventually('the rejection', 10_000, () => {
      const lines = daemon.logged('reload-rejected');
      return lines.length > 0 ? lines : null;
    });
    expect(told?.msg).toContain('the configuration file is not a regular file');
    expect(PROBLEMS((await ask('/v1/reload')).body)).toEqual([
      expect.stringContaining('the configuration file is not a regular file'),
    ]);
    expect(await daemon.metric('process_resident_memory_bytes')).toBeLessThan(400 * 2 ** 20);
    daemon.signal('SIGTERM');
    expect((await daemon.exit(10_000)).code).toBe(0);
    expect(ofKind(await exchange.events(), 'timer-deleted')).toHaveLength(2);
  });
});

describe.concurrent('a reload that would take most markets out', { timeout: 60_000 }, () => {
  test('is refused, and says what to write if it is meant', async (context) => {
    // Else the poll may be faster than who asks.
    const reload = { pollSeconds: 0 };
    const { exchange, daemon, content, ask } = await play(context, { reload });
    writeConfig(daemon, JSON.stringify({ ...content, markets: ['CCC_USDT'] }));
    const reply = await ask('/v1/reload');
    expect([reply.status, PROBLEMS(reply.body)]).toEqual([
      422,
      [
        'markets: 2 of 2 markets would be taken out: AAA_USDT, BBB_USDT; allowed: at most half of them at once; write reload: { allowRemoval: true } if that is meant',
      ],
    ]);
    expect(await reloadBySignal(daemon, 'reload-rejected')).toContain('2 of 2 markets');
    await daemon.ready();
    expect(ofKind(await exchange.events(), 'timer-deleted')).toEqual([]);
    writeConfig(
      daemon,
      JSON.stringify({ ...content, markets: ['CCC_USDT'], reload: { ...reload, allowRemoval: true } }),
    );
    expect((await ask('/v1/reload')).body).toMatchObject({
      result: 'applied',
      removed: ['AAA_USDT', 'BBB_USDT'],
    });
    // The last one may always go.
    writeConfig(daemon, JSON.stringify({ ...content, markets: ['DDD_USDT'] }));
    expect((await ask('/v1/reload')).body).toMatchObject({ result: 'applied', removed: ['CCC_USDT'] });
  });
});
