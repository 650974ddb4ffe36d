import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { asker, controlsOf } from './control.ts';
import { beginGuard, guard, type Scope, scopeOfBlock, stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { deletedIn, ofKind, type RunningExchange } from './simulated-exchange.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT'];
const UNCHANGED = { result: 'unchanged' };

/** A daemon that nobody has to keep alive, with a control socket and whatever `config` adds. */
async function play(scope: Scope, config: Readonly<Record<string, unknown>> = {}) {
  const guarded = await guard(scope, { markets: MARKETS, timeoutSeconds: 60, control: true, config });
  const ask = asker(scope, (await controlsOf(guarded.daemon))[0] ?? '', 2);
  const reload = async (body?: object) => (await ask('/v1/reload', body && { body })).body;
  /** Asks for a reload that must be refused: the problems. */
  const rejected = async () =>
    ((await ask('/v1/reload')).body as { error: { problems: string[] } }).error.problems;
  return { ...guarded, reload, rejected };
}

const armed = (exchange: RunningExchange, wanted: string) =>
  exchange.event('timer-armed', 15_000, ({ market }) => market === wanted);

/** One daemon, whose files nobody looks at by themselves: its tests follow each other. */
const IN_TURN = { concurrent: false };

describe.concurrent('a reload', { timeout: 60_000 }, () => {
  const scope = scopeOfBlock();
  const { directory } = stageFor(scope);
  const tokens = ['the-first-token-of-the-test', 'the-second-token-of-the-test'] as const;
  const tokenFile = join(directory, 'token');
  const control = { listen: [`unix:${join(directory, 'control.sock')}`, '127.0.0.1:0'], tokenFile };
  let playing: ReturnType<typeof play>;

  /** What the tokens are answered with, each in its turn. */
  const tried = async () => {
    const [, tcp = ''] = await controlsOf((await playing).daemon, 2);
    const overLoopback = asker(scope, tcp);
    const answers = tokens.map((token) =>
      overLoopback('/v1/health', { method: 'GET', headers: { authorization: `Bearer ${token}` } }),
    );
    return (await Promise.all(answers)).map(({ status }) => status);
  };

  test('waits for the rest of a configuration, a token, a key or a URL', IN_TURN, async () => {
    writeFileSync(tokenFile, tokens[0], { mode: 0o600 });
    playing = play(scope, { control, reload: { pollSeconds: 0 } });
    const { exchange, daemon, reload } = await playing;
    writeFileSync(daemon.configFile, JSON.stringify({ ...daemon.content, markets: ['AAA_USDT'] }));
    const reply = reload();
    await sleep(50);
    writeFileSync(daemon.configFile, JSON.stringify(daemon.content));
    expect(await reply).toEqual(UNCHANGED);
    expect(await deletedIn(exchange)).toEqual([]);

    /** Files that are whole only in the middle of a reload: what came of it. */
    const reloadWith = async (files: Readonly<Record<string, string>>) => {
      for (const [file, text] of Object.entries(files))
        writeFileSync(file, text.slice(0, -4), { mode: 0o600 });
      const began = reload();
      await sleep(700);
      for (const [file, text] of Object.entries(files)) writeFileSync(file, text);
      expect(await tried()).toEqual([200, 401]);
      return began;
    };
    const key = join(dirname(daemon.secretFile), 'api-key');
    expect(await reloadWith({ [key]: 'demo-key', [daemon.secretFile]: 'demo-secret' })).toEqual(UNCHANGED);
    const url = join(directory, 'url');
    daemon.configure({ notify: { urlFile: url } });
    const applied = { result: 'applied' };
    expect(await reloadWith({ [url]: 'https://notify.example/path' })).toMatchObject(applied);
    expect(ofKind(await exchange.events(), 'request-refused')).toEqual([]);
    daemon.configure({});
    expect(await reload()).toMatchObject(applied);
    expect(await reloadWith({ [tokenFile]: tokens[1] })).toMatchObject(applied);
    expect(await tried()).toEqual([401, 200]);
  });

  test('gives up on a file that somebody writes again and again, and changes nothing', IN_TURN, async () => {
    const { rejected } = await playing;
    let round = 0;
    const writing = setInterval(() => writeFileSync(tokenFile, `${tokens[0]}${(round += 1)}`), 50);
    const problems = await rejected().finally(() => clearInterval(writing));
    const says = 'or that of a secret or of a token, is being written';
    expect(problems).toEqual([expect.stringContaining(says)]);
    writeFileSync(tokenFile, tokens[1]);
    expect(await tried()).toEqual([401, 200]);
  });

  test('that waits for an exchange which does not answer holds up no other', IN_TURN, async () => {
    const { exchange, daemon, reload } = await playing;
    const before = daemon.logged('reload-applied').length;
    await exchange.addFaults({ kind: 'hang', mode: 'hold', match: { market: 'CCC_USDT' } });
    daemon.configure({ markets: [...MARKETS, 'CCC_USDT'] });
    const waits = reload({ waitSeconds: 20 });
    await eventually('the first in force', 5000, () => daemon.logged('reload-applied')[before]);
    daemon.configure({ markets: [...MARKETS, 'DDD_USDT'] });
    const last = { result: 'applied', added: ['DDD_USDT'], removed: ['CCC_USDT'] };
    expect(await reload({ waitSeconds: 0 })).toMatchObject(last);
    await armed(exchange, 'DDD_USDT');
    // It is told what became of its market.
    const gone = { market: 'CCC_USDT', state: 'impossible', says: 'CCC_USDT is no longer configured.' };
    expect(await waits).toMatchObject({ result: 'applied', done: false, markets: [gone] });
    await exchange.clearFaults();
    daemon.configure({});
    expect(await reload()).toMatchObject({ removed: ['DDD_USDT'] });
  });

  test('that would take most markets out is refused, and says what to write else', IN_TURN, async () => {
    const { daemon, reload, rejected } = await playing;
    daemon.configure({ markets: ['CCC_USDT'] });
    expect(await rejected()).toEqual([
      'markets: 2 of 2 markets would be taken out: AAA_USDT, BBB_USDT; allowed: at most half of them at once; write reload: { allowRemoval: true } if that is meant',
    ]);
    await daemon.ready();
    expect(daemon.marketsLogged('deleted').filter((market) => MARKETS.includes(market))).toEqual([]);
    daemon.configure({ markets: ['CCC_USDT'], reload: { pollSeconds: 0, allowRemoval: true } });
    expect(await reload()).toMatchObject({ result: 'applied', removed: MARKETS });
    // The last one may always go.
    daemon.configure({ markets: ['DDD_USDT'] });
    expect(await reload()).toMatchObject({ result: 'applied', removed: ['CCC_USDT'] });
  });
});

test('thousands of mistakes in one line hold up no renewal', { timeout: 90_000 }, async (context) => {
  const { exchange, daemon } = await guard(context, { timeoutSeconds: 10 });
  const wrong = Array.from({ length: 3000 }, (_, index) => ({ market: `M${index}_USDT`, timeoutSeconds: 4 }));
  daemon.configure({ markets: wrong });
  daemon.signal('SIGHUP');
  await eventually('the refusal', 60_000, () => daemon.logged('reload-rejected')[0]);
  expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
});

describe.concurrent('a file that is looked at every second', { timeout: 60_000 }, () => {
  test('is read again when the link of a ConfigMap leads to another one, and a wrong one is told of once', async (context) => {
    const { exchange, daemon, reload } = await play(context, { reload: { pollSeconds: 1 } });
    const folder = dirname(daemon.configFile);
    let version = 0;
    /** As the kubelet does it: a new folder, and the link `..data` turned to it in one step. */
    const publish = (markets: readonly unknown[]) => {
      version += 1;
      mkdirSync(join(folder, `..${version}`));
      const text = JSON.stringify({ ...daemon.content, markets });
      writeFileSync(join(folder, `..${version}`, 'killswitchd.json'), text);
      symlinkSync(`..${version}`, join(folder, '..data_tmp'));
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    };
    publish(daemon.content.markets);
    symlinkSync(join('..data', 'killswitchd.json'), join(folder, 'link'));
    renameSync(join(folder, 'link'), daemon.configFile);
    await sleep(2500);
    expect(await daemon.metric('killswitch_config_reloads_total')).toBe(0);

    publish(['AAA_USDT', 'BBB_USDT', 'CCC_USDT']);
    await armed(exchange, 'CCC_USDT');
    publish([{ market: 'AAA_USDT', timeoutSeconds: 4 }]);
    await eventually('the wrong one', 10_000, () => daemon.logged('reload-rejected')[0]);
    await sleep(2500);
    expect(daemon.logged('reload-rejected')).toHaveLength(1);
    expect(await deletedIn(exchange)).toEqual([]);
    publish(['AAA_USDT', 'CCC_USDT']);
    await exchange.event('timer-deleted', 10_000, ({ market }) => market === 'BBB_USDT');
    expect(await reload()).toEqual(UNCHANGED);
  });

  test('is taken over once a secret that was not there yet is, though it does not change any more, and may become a device without an end: that is said, everything goes on, and a stop is not held up', async (context) => {
    const { exchange, daemon } = await play(context, { reload: { pollSeconds: 1 } });
    await sleep(1200);
    renameSync(daemon.secretFile, `${daemon.secretFile}.away`);
    daemon.configure({ markets: [...MARKETS, 'CCC_USDT'] });
    await eventually('the rejection', 10_000, () => daemon.logged('reload-rejected')[0]);
    await sleep(2500);
    expect(await daemon.metric('killswitch_config_reloads_total')).toBeLessThanOrEqual(4);
    renameSync(`${daemon.secretFile}.away`, daemon.secretFile);
    await armed(exchange, 'CCC_USDT');
    expect(daemon.logged('reload-rejected')).toHaveLength(1);

    rmSync(daemon.configFile);
    symlinkSync('/dev/zero', daemon.configFile);
    const what = 'the configuration file is not a regular file';
    await eventually('the rejection', 10_000, () => daemon.logged('reload-rejected')[1]?.msg.includes(what));
    expect(await daemon.metric('process_resident_memory_bytes')).toBeLessThan(400 * 2 ** 20);
    daemon.signal('SIGTERM');
    expect((await daemon.exit(10_000)).code).toBe(0);
    expect(await deletedIn(exchange)).toHaveLength(3);
  });

  test('is read again although it was replaced while the daemon started', async (context) => {
    const config = { reload: { pollSeconds: 1 } };
    const { exchange, daemon } = await beginGuard(context, { markets: ['AAA_USDT'], config });
    await eventually('the start', 20_000, () => daemon.stdout() !== '');
    daemon.configure({ markets: ['AAA_USDT', 'CCC_USDT'] });
    await armed(exchange, 'CCC_USDT');
    expect(daemon.logged('reload-rejected')).toEqual([]);
  });

  test('is read again where it is put back right after a reload that somebody asked for', async (context) => {
    const { exchange, daemon } = await play(context, { reload: { pollSeconds: 1 } });
    daemon.configure({ markets: [...MARKETS, 'CCC_USDT'] });
    await daemon.reloadBySignal('reload-applied');
    daemon.configure({});
    await exchange.event('timer-deleted', 10_000, ({ market }) => market === 'CCC_USDT');
    expect(daemon.logged('reload-unchanged')).toEqual([]);
  });

  test('is read again although it changed right after the looking was switched on or made quicker, and not while somebody still writes it', async (context) => {
    const { exchange, daemon } = await play(context, { reload: { pollSeconds: 0 } });
    const lookEvery = async (pollSeconds: number, markets: readonly string[]) => {
      daemon.configure({ reload: { pollSeconds }, markets });
      await daemon.reloadBySignal('reload-applied');
    };
    await lookEvery(1, MARKETS);
    const reload = { pollSeconds: 1 };
    daemon.configure({ reload, markets: [...MARKETS, 'CCC_USDT'] });
    await armed(exchange, 'CCC_USDT');
    const rounds = daemon.logged('reload-unchanged').length;
    await sleep(2500);
    expect(daemon.logged('reload-unchanged').length).toBe(rounds);

    const three = [...MARKETS, 'CCC_USDT'];
    await lookEvery(3600, three);
    await lookEvery(1, three);
    // Each stage of the writing is a configuration in its own right, with two of the three markets.
    const part = JSON.stringify({ ...daemon.content, reload, markets: ['BBB_USDT', 'CCC_USDT'] });
    const applied = daemon.logged('reload-applied').length;
    for (let written = 0; written < 20; written += 1) {
      writeFileSync(daemon.configFile, `${part} # ${written}`);
      await sleep(200);
    }
    writeFileSync(
      daemon.configFile,
      JSON.stringify({ ...daemon.content, reload, markets: [...three, 'DDD_USDT'] }),
    );
    await armed(exchange, 'DDD_USDT');
    // The timer is armed before the line of the log is written.
    await eventually('the line of the reload', 10_000, () => daemon.logged('reload-applied')[applied]);
    expect(daemon.logged('reload-applied').length).toBe(applied + 1);
    expect(await deletedIn(exchange)).toEqual([]);
  });
});
