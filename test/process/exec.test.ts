import { execFileSync, spawn } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, type TestContext, test } from 'vitest';
import type { BotLine } from './bot.ts';
import type { DaemonProcess } from './daemon.ts';
import { type Stage, stageFor } from './harness.ts';
import { eventually, type Program, ROOT, said, sleep } from './program.ts';
import { type ExchangeProcess, longestGapMs, ofKind, renewalsOf } from './simulated-exchange.ts';

const BOT = [process.execPath, 'test/process/bot.ts', 'quietly'];
const MARKET = 'AAA_USDT';
/** Short timers, so that firing can be waited for. */
const T_SECONDS = 5;
const PROCESS = { mode: 'process', ttlSeconds: 2 };

interface Play {
  readonly stage: Stage;
  readonly exchange: ExchangeProcess;
  readonly daemon: DaemonProcess;
}

interface PlayOptions {
  readonly bot?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly timeoutSeconds?: number;
  readonly secret?: string;
  readonly canSabotage?: boolean;
}

/** An exchange with an order in its books, and `exec` with a bot. */
async function play(context: TestContext, options: PlayOptions = {}): Promise<Play> {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  await exchange.placeOrders({ market: MARKET, type: 'spot' });
  const { bot = BOT, timeoutSeconds = T_SECONDS, config = {}, ...others } = options;
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: [{ market: MARKET, timeoutSeconds }],
    bot,
    config: { liveness: PROCESS, ...config },
    ...others,
  });
  return { stage, exchange, daemon };
}

/** What the bot printed: whole lines, and nothing but its own. */
function botLines(program: Program): BotLine[] {
  return program
    .stdout()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as BotLine);
}

function botSays(program: Program, what: BotLine['bot']): Promise<BotLine> {
  return eventually(`the bot's ${what}`, 15_000, () => {
    if (program.hasExited()) throw new Error(`exec ended:\n${said(program)}`);
    return botLines(program).find(({ bot }) => bot === what) ?? null;
  });
}

const timersDeleted = async ({ exchange }: Play) => ofKind(await exchange.events(), 'timer-deleted').length;

describe.concurrent('exec', { timeout: 60_000 }, () => {
  test('starts the bot once it is protected, tells it where the daemon is, and keeps the API key to itself', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const tokenFile = join(stage.directory, 'token');
    writeFileSync(tokenFile, 'a-token-of-the-test\n', { mode: 0o600 });
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: [
        { market: 'AAA_USDT', bot: 'maker' },
        { market: 'BBB_USDT', bot: 'maker' },
      ],
      bot: BOT,
      config: { liveness: { mode: 'beat' }, control: { listen: ['127.0.0.1:0'], tokenFile } },
      env: { KILLSWITCHD_CONTROL: 'unix:/another/daemon.sock', PATH: process.env['PATH'] ?? '' },
    });
    const { env, pid, atMs } = await botSays(daemon, 'started');
    const [listening] = daemon.logged('control-listening');
    expect(env).toEqual({
      KILLSWITCHD_CONTROL: /http:\/\/(\S+)/.exec(listening?.msg ?? '')?.[1],
      KILLSWITCHD_CONTROL_TOKEN_FILE: tokenFile,
      KILLSWITCHD_BOT: 'maker',
    });
    const armed = ofKind(await exchange.events(), 'timer-armed').map((event) => event.atMs);
    expect(armed).toHaveLength(2);
    expect(Math.max(...armed)).toBeLessThanOrEqual(atMs);
    expect(daemon.logged('process-started')).toMatchObject([{ level: 'info', pid }]);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    expect(ofKind(await exchange.events(), 'timer-deleted')).toHaveLength(2);
  });

  test('names no bot to a bot that trades for several, and no daemon where none can be asked', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: [
        { market: 'AAA_USDT', bot: 'maker' },
        { market: 'BBB_USDT', bot: 'taker' },
      ],
      bot: BOT,
      config: { liveness: PROCESS },
      env: { KILLSWITCHD_CONTROL: '127.0.0.1:1' },
    });
    expect((await botSays(daemon, 'started')).env).toEqual({});
  });

  test('sends the bot every signal, and writes nothing between its lines', async (context) => {
    const started = await play(context);
    const { daemon } = started;
    await botSays(daemon, 'started');
    for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGTERM'] as const) {
      daemon.signal(signal);
      if (signal !== 'SIGTERM') await botSays(daemon, signal);
    }
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    expect(botLines(daemon).map(({ bot }) => bot)).toEqual([
      'started',
      'SIGHUP',
      'SIGUSR1',
      'SIGUSR2',
      'SIGTERM',
    ]);
    expect(await timersDeleted(started)).toBe(1);
  });

  test('renews for as long as the bot takes to end, kills it at a second signal, and then lets the timers fire', async (context) => {
    const started = await play(context, { env: { BOT_STUBBORN: '1' } });
    const { daemon, exchange } = started;
    await botSays(daemon, 'started');
    daemon.signal('SIGINT');
    await botSays(daemon, 'SIGINT');
    const fromMs = await exchange.nowMs();
    await sleep(4000);
    const toMs = await exchange.nowMs();
    expect(longestGapMs(await exchange.events(), MARKET, fromMs, toMs)).toBeLessThan(2000);
    expect(daemon.hasExited()).toBe(false);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 137 });
    expect(botLines(daemon).map(({ bot }) => bot)).toEqual(['started', 'SIGINT']);
    await exchange.event('order-cancelled', 8000);
    expect(await timersDeleted(started)).toBe(0);
  });

  test('passes the exit code of the bot on and leaves its timers to fire', async (context) => {
    const started = await play(context, { env: { BOT_EXIT_CODE: '3' } });
    const { daemon, exchange } = started;
    await botSays(daemon, 'started');
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 3 });
    const { atMs } = await exchange.event('order-cancelled', 8000);
    const events = await exchange.events();
    expect(atMs - (renewalsOf(events, MARKET).at(-1) ?? 0)).toBeLessThanOrEqual((T_SECONDS + 1) * 1000);
    expect(await timersDeleted(started)).toBe(0);
    expect(daemon.logged('process-ended')).toMatchObject([{ level: 'error', code: 3 }]);
  });

  test('has the orders cancelled before it ends where a failed bot trips', async (context) => {
    const { daemon, exchange } = await play(context, {
      timeoutSeconds: 60,
      env: { BOT_EXIT_CODE: '3' },
      config: { liveness: { ...PROCESS, onStale: 'trip' } },
    });
    await botSays(daemon, 'started');
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 3 });
    const cut = ofKind(await exchange.events(), 'timer-updated', MARKET).at(-1);
    expect(cut?.timeoutSeconds).toBe(5);
    await exchange.event('order-cancelled', 8000);
  });

  test('ends with 75 where a bot has ended well and the exchange confirms no delete', async (context) => {
    const { daemon, exchange } = await play(context, { config: { shutdown: { budgetSeconds: 2 } } });
    await botSays(daemon, 'started');
    await exchange.addFaults({ kind: 'hang', mode: 'drop' });
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 75 });
    expect(daemon.logged('stopped')).toMatchObject([{ level: 'error' }]);
  });

  test('has one clear sentence, the exit codes of shells and no armed timer for a bot that is not there', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const plain = join(stage.directory, 'plain');
    writeFileSync(plain, 'no program', { mode: 0o644 });
    const wrong: readonly (readonly [string, number, string])[] = [
      ['no-such-bot', 127, 'there is no no-such-bot in PATH'],
      ['./no-such-bot', 127, 'there is no file ./no-such-bot'],
      [plain, 126, `${plain} may not be executed`],
      [stage.directory, 126, `${stage.directory} is not a file`],
    ];
    for (const [program, code, why] of wrong) {
      const daemon = await stage.daemon({
        exchange: exchange.url,
        markets: [MARKET],
        bot: [program],
        config: { liveness: PROCESS },
      });
      expect(await daemon.exit()).toMatchObject({ code });
      expect(daemon.stderr()).toMatch(/^killswitchd exec: cannot start the bot: [^\n]+\n$/);
      expect(daemon.stderr()).toContain(why);
    }
    expect(await exchange.events()).toEqual([]);
  });

  test('leaves the timers to fire where the bot turns out to be no program when it is started', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const script = join(stage.directory, 'script');
    writeFileSync(script, '#!/no/such/interpreter\n', { mode: 0o755 });
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: [MARKET],
      bot: [script],
      config: { liveness: PROCESS },
    });
    expect(await daemon.exit()).toMatchObject({ code: 127 });
    expect(daemon.logged('process-not-started')).toMatchObject([{ level: 'error' }]);
    expect(daemon.stderr()).toContain('the program that its first line names is missing');
    const events = await exchange.events();
    expect(ofKind(events, 'timer-armed')).toHaveLength(1);
    expect(ofKind(events, 'timer-deleted')).toEqual([]);
  });

  test('never starts a bot that cannot be protected within the grace, and says which market is missing', async (context) => {
    const { daemon } = await play(context, {
      secret: 'not-the-secret',
      config: { liveness: { ...PROCESS, startupGraceSeconds: 3 } },
    });
    const { code, afterMs } = await daemon.exit();
    expect(code).toBe(69);
    expect(afterMs).toBeGreaterThan(3000);
    expect(daemon.stdout()).toBe('');
    const [line] = daemon.logged('process-not-started');
    expect(line?.msg).toMatch(
      /^THE BOT WAS NOT STARTED: 1 of 1 markets not armed within 3 s \(liveness\.startupGraceSeconds\): AAA_USDT \(.+\); the exchange refuses the API key\.$/,
    );
  });

  test('starts no bot any more when it is asked to end while it waits', async (context) => {
    const { daemon } = await play(context, { secret: 'not-the-secret' });
    await eventually('a refused key', 15_000, () => daemon.logged('unauthorised')[0] ?? null);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    expect(daemon.stdout()).toBe('');
  });

  test('leaves the bot running, says so, and deletes nothing when it fails itself', async (context) => {
    const started = await play(context, { canSabotage: true, env: { BOT_OUTLIVES: '1' } });
    const { daemon, exchange } = started;
    const { pid } = await botSays(daemon, 'started');
    context.onTestFinished(() => void execFileSync('kill', ['-9', `${pid}`], { stdio: 'ignore' }));
    daemon.sabotage({ kind: 'throw' });
    await eventually('the end of exec', 10_000, () => (daemon.hasExited() ? true : null));
    expect(process.kill(pid, 0)).toBe(true);
    const [crashed] = daemon.logged('crashed');
    expect(crashed?.msg).toContain(`The bot (process ${pid}) goes on without protection: stop it.`);
    await exchange.event('order-cancelled', 8000);
    expect(await timersDeleted(started)).toBe(0);
  });

  test('goes on renewing, and ends well, when nobody reads its log', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const pipe = join(stage.directory, 'unread');
    execFileSync('mkfifo', [pipe]);
    const stderr = openSync(pipe, 'r+');
    context.onTestFinished(() => closeSync(stderr));
    const markets = Array.from({ length: 60 }, (_, index) => `M${index}_USDT`);
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: markets.map((market) => ({ market, timeoutSeconds: T_SECONDS })),
      bot: BOT,
      config: { liveness: PROCESS, log: { level: 'debug' } },
      stderr,
    });
    await botSays(daemon, 'started');
    const fromMs = await exchange.nowMs();
    await sleep(5000);
    const events = await exchange.events();
    const toMs = await exchange.nowMs();
    const gapsMs = markets.map((market) => longestGapMs(events, market, fromMs, toMs));
    expect(gapsMs.filter((gapMs) => gapMs > 2000)).toEqual([]);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0 });
    expect(ofKind(await exchange.events(), 'timer-deleted')).toHaveLength(markets.length);
  });

  test('leaves the Ctrl-C of a terminal to the terminal: the bot gets it once', async () => {
    const args = [
      'exec',
      '--embedded-exchange',
      '--markets',
      MARKET,
      '--web-listen',
      '127.0.0.1:0',
      '--',
      ...BOT,
    ];
    const command = [process.execPath, 'src/main.ts', ...args];
    const python = `import os, pty, sys\nsys.exit(os.waitstatus_to_exitcode(pty.spawn(${JSON.stringify(command)})))`;
    const terminal = spawn('python3', ['-c', python], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'] },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let shown = '';
    terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
    });
    const ended = new Promise((resolve) => {
      terminal.once('close', resolve);
    });
    const count = (signal: BotLine['bot']) => shown.split(`{"bot":"${signal}"`).length - 1;
    const sees = (signal: BotLine['bot']) =>
      eventually(`the bot's ${signal}`, 15_000, () => (count(signal) > 0 ? true : null));
    await sees('started');
    terminal.stdin.write('\u0003');
    await sees('SIGINT');
    await sleep(500);
    expect(count('SIGINT')).toBe(1);
    terminal.stdin.write('\u0003');
    expect(await ended).toBe(137);
  });
});
