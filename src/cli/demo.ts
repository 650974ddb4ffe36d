import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { createSystemClock } from '../clock.ts';
import { toCoreSettings } from '../config/config.ts';
import { createLoad } from '../config/load.ts';
import { boundsOf } from '../core/promise.ts';
import { startDaemon } from '../daemon/daemon.ts';
import { lookAtProc } from '../liveness/process.ts';
import type { Clock } from '../ports.ts';
import type { ExchangeEvent } from '../simulator/event-log.ts';
import { startSimulatedServer } from '../simulator/server.ts';
import { DEMO_KEY } from '../simulator/simulated-exchange.ts';
import { PACKAGE } from '../version.ts';
import { exitCodeOf } from './bot-process.ts';
import { type Edge, EXIT, messageOf, pause } from './edge.ts';
import { barFor, createTimeline, type Timeline } from './terminal.ts';

/** The example that is there to be copied, and the configuration of the demonstration, as they are shipped. */
const BOT_SOURCE = fileURLToPath(new URL('config/clients/bot.js', PACKAGE));
const CONFIG = fileURLToPath(new URL('config/demo.yaml', PACKAGE));

/** How long each part is left to be read and watched, milliseconds. */
const TRADE_MS = 9000;
const READ_MS = 6000;
/** Nothing on one machine takes so long. */
const PATIENCE_MS = 10_000;
const LOOK_MS = 50;
/** With two markets the line then fits into 80 columns, but for its end. */
const BAR_WIDTH = 5;

/**
 * `demo`: tells in less than a minute what the daemon is for, with a real bot process, at an exchange in this process.
 * Ends with 0, with 130 after Ctrl-C (143 after SIGTERM), and with 70 where something went another way than it should.
 */
export function registerDemo(program: Command, edge: Edge): void {
  program
    .command('demo')
    .description(
      'see in a minute what it is for: a bot trades, hangs, comes back and ends; nothing leaves this machine',
    )
    .action(() => demonstrate(edge, createSystemClock()));
}

async function demonstrate(edge: Edge, clock: Clock): Promise<void> {
  let interruptedBy: 'SIGINT' | 'SIGTERM' | null = null;
  let stage: DemoStage | null = null;
  const fail = (error: unknown) => {
    edge.err(`killswitchd demo: ${messageOf(error)}`);
    const exit = () => edge.exitNow(EXIT.internal);
    if (stage === null) exit();
    else stage.end().then(exit, exit);
  };
  edge.onCrash(fail);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    edge.onSignal(signal, () => {
      interruptedBy ??= signal;
    });
  }
  const timeline = createTimeline(edge, clock);
  timeline.title(
    'killswitchd demo: what a kill switch does for the orders of a trading bot, in about 45 s. All of it happens on this machine: no account, no key, no money. Ctrl-C ends it.',
  );
  try {
    stage = await setStage(edge, clock);
    await tellStory({
      stage,
      timeline,
      clock,
      bar: edge.screen === undefined ? null : barFor(edge.env),
      isInterrupted: () => interruptedBy !== null || edge.readerGone?.() === true,
    });
    await stage.end();
    timeline.title(
      'That was all. Next, your own bot: the clients for Python, Node and shell are in clients and config/clients; start it with',
      'killswitchd exec --embedded-exchange --markets BTC_USDT --liveness-mode beat --control-listen 127.0.0.1:0 -- python3 YOUR-BOT.py',
    );
    edge.exitNow(EXIT.ok);
  } catch (error) {
    if (!(error instanceof Interrupted)) {
      fail(error);
      return;
    }
    timeline.say('Demo', 'Interrupted: ends the bot, deletes the timers.');
    await stage?.end();
    edge.exitNow(exitCodeOf({ code: null, signal: interruptedBy ?? 'SIGPIPE' }, edge));
  }
}

/** Somebody has pressed Ctrl-C. */
class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

interface Telling {
  readonly stage: DemoStage;
  readonly timeline: Timeline;
  readonly clock: Clock;
  /** What bars are drawn with; null where none are. */
  readonly bar: ReturnType<typeof barFor> | null;
  readonly isInterrupted: () => boolean;
}

const seconds = (ms: number): string => `${Number((ms / 1000).toFixed(1))} s`;
const both = (markets: readonly string[]): string => markets.join(' and ');

/** Tells the whole story; throws `Interrupted`, or an error where something does not happen that should. */
async function tellStory(telling: Telling): Promise<void> {
  const { stage } = telling;
  const fired = new Set<string>();
  const forget = stage.exchange.exchange.log.subscribe((event) => narrate(event, telling, fired));
  try {
    const bot = await trade(telling);
    await hang(telling, bot);
    await cancel(telling, fired);
    await comeBack(telling, bot);
    await sayGoodbye(telling, bot);
  } finally {
    forget();
  }
}

async function trade(telling: Telling): Promise<DemoBot> {
  const { stage, timeline } = telling;
  const { markets, timeoutMs } = stage;
  timeline.title('1. The timers are armed, and the bot trades');
  timeline.say('Exchange', `A simulated exchange answers at ${stage.exchange.url}.`);
  timeline.say(
    'Daemon',
    `Guards ${both(markets)} with timers of ${seconds(timeoutMs)}, and shows it at ${stage.daemon.addresses[0]}.`,
  );
  await until(telling, 'armed timers', () => stage.daemon.keeper.snapshot().ready);
  timeline.say('Daemon', 'Confirmed. Now the bot may start.', 'ok');
  const bot = stage.startBot((line) => hearBot(telling, line));
  timeline.say(
    'Bot',
    `Process ${bot.child.pid} starts: config/clients/bot.js, which says at every round of its loop that it lives.`,
  );
  await until(telling, 'orders of the bot', () => ordersOf(stage).length > 0);
  await watch(telling, TRADE_MS);
  return bot;
}

async function hang(telling: Telling, { child }: DemoBot): Promise<void> {
  const { stage, timeline } = telling;
  timeline.title('2. The bot hangs');
  // Between two rounds: a beat that is cut off in the middle would be another story.
  await until(telling, 'a beat', () => silentMs(stage) > 200 && silentMs(stage) < 600);
  child.kill('SIGSTOP');
  timeline.say(
    'Demo',
    `Process ${child.pid} stands still (SIGSTOP). Its ${ordersOf(stage).length} orders still rest.`,
    'bad',
  );
  timeline.say(
    'Daemon',
    `Promised: they are cancelled at most ${seconds(stage.promisedMs)} after its last sign of life.`,
  );
  const botState = () => stage.daemon.keeper.snapshot().bots[0]?.state;
  await until(telling, 'evidence that ran out', () => botState() === 'stale', stage.ttlMs + PATIENCE_MS);
  timeline.say(
    'Daemon',
    `No sign of life for ${seconds(stage.ttlMs)}. Nothing is renewed any more: the timers run out.`,
    'warn',
  );
}

async function cancel(telling: Telling, fired: ReadonlySet<string>): Promise<void> {
  const { stage, timeline } = telling;
  const { markets, timeoutMs, promisedMs } = stage;
  timeline.title('3. The exchange cancels the orders by itself');
  await until(telling, 'cancelled orders', () => fired.size === markets.length, timeoutMs + PATIENCE_MS);
  timeline.say(
    'Demo',
    `Measured: ${seconds(silentMs(stage))} after the last sign of life; promised were at most ${seconds(promisedMs)}. The exchange did it alone: it cancels them as well when the daemon, the host or the network has died.`,
    'ok',
  );
  await watch(telling, READ_MS);
}

async function comeBack(telling: Telling, { child }: DemoBot): Promise<void> {
  const { stage, timeline } = telling;
  timeline.title('4. The bot comes back');
  child.kill('SIGCONT');
  timeline.say(
    'Demo',
    `Process ${child.pid} goes on (SIGCONT). Its next beat tells it that it is not protected.`,
  );
  await until(telling, 'timers armed again', () => statesOf(stage).every((state) => state === 'armed'));
  await until(telling, 'new orders', () => ordersOf(stage).length > 0);
  await watch(telling, TRADE_MS);
}

async function sayGoodbye(telling: Telling, { child }: DemoBot): Promise<void> {
  const { stage, timeline } = telling;
  timeline.title('5. The bot ends on purpose');
  timeline.say('Demo', `Process ${child.pid} is asked to end (SIGTERM): it says goodbye to the daemon.`);
  child.kill('SIGTERM');
  await until(telling, 'deleted timers', () => statesOf(stage).every((state) => state === 'deleted'));
  timeline.say('Daemon', 'Confirmed: nothing is left that could cancel an order.', 'ok');
  await until(telling, 'the end of the bot', () => child.exitCode !== null || child.signalCode !== null);
  timeline.say('Bot', `Process ${child.pid} has ended with exit code ${child.exitCode}.`);
}

/** The example bot decides nothing: when it says that orders may go out, they are placed for it. */
function hearBot({ stage, timeline }: Telling, line: string): void {
  timeline.say('Bot', `"${line}"`);
  if (!line.startsWith('armed') || ordersOf(stage).length > 0) return;
  const { exchange, nowMs } = stage.exchange;
  for (const market of stage.markets) {
    const order = { market, type: 'spot', amount: '0.5' } as const;
    exchange.placeOrder({ ...order, side: 'buy', price: '90' }, nowMs());
    exchange.placeOrder({ ...order, side: 'sell', price: '110' }, nowMs());
  }
  timeline.say(
    'Exchange',
    `${ordersOf(stage).length} orders of the bot rest in the books of ${both(stage.markets)}.`,
  );
}

function narrate(event: ExchangeEvent, { stage, timeline }: Telling, fired: Set<string>): void {
  switch (event.kind) {
    case 'timer-armed':
      timeline.say(
        'Exchange',
        `${event.market}: timer armed. Unless it is renewed within ${event.timeoutSeconds} s, every order of the market is cancelled.`,
      );
      break;
    case 'timer-fired':
      fired.add(event.market);
      timeline.say(
        'Exchange',
        `${event.market}: THE TIMER RAN OUT, ${event.cancelledOrders} orders cancelled.`,
        'bad',
      );
      break;
    case 'timer-deleted': {
      const left = ordersOf(stage).filter(({ market }) => market === event.market).length;
      timeline.say('Exchange', `${event.market}: timer deleted, its ${left} orders stay.`);
      break;
    }
    default:
      break;
  }
}

function ordersOf({ exchange }: DemoStage) {
  return exchange.exchange.orders();
}

function statesOf({ daemon }: DemoStage): string[] {
  return daemon.keeper.snapshot().markets.map(({ state }) => state);
}

function silentMs({ daemon }: DemoStage): number {
  return daemon.keeper.snapshot().bots[0]?.evidenceAgeMs ?? 0;
}

/** How the timers stand at the exchange, and how the bot stands. */
function describeNow({ stage, bar }: Telling): string {
  const { exchange, nowMs } = stage.exchange;
  const timers = stage.markets.map((market) => {
    const timer = exchange.timers().find((one) => one.market === market);
    if (timer === undefined) return `${market} no timer`;
    const leftMs = Math.max(0, timer.dueMs - nowMs());
    const full = Math.min(BAR_WIDTH, Math.ceil((leftMs / stage.timeoutMs) * BAR_WIDTH));
    const drawn = bar === null ? '' : `${bar.full.repeat(full)}${bar.empty.repeat(BAR_WIDTH - full)} `;
    return `${market} ${drawn}${(leftMs / 1000).toFixed(1)} s`;
  });
  const { markets } = stage.daemon.keeper.snapshot();
  const renewals = markets.reduce((sum, market) => sum + market.renewals, 0);
  const beat = `beat ${(silentMs(stage) / 1000).toFixed(1)} s ago`;
  return [...timers, beat, `renewals ${renewals}`].join('  ');
}

/** Shows how things stand for a while. */
async function watch(telling: Telling, forMs: number): Promise<void> {
  const untilMs = telling.clock.now().monoMs + forMs;
  await until(
    telling,
    'the end of a pause',
    () => telling.clock.now().monoMs >= untilMs,
    forMs + PATIENCE_MS,
  );
}

/** Waits for something to happen, and shows how things stand meanwhile. */
async function until(
  telling: Telling,
  what: string,
  hasHappened: () => boolean,
  withinMs = PATIENCE_MS,
): Promise<void> {
  const { clock, timeline, isInterrupted } = telling;
  const untilMs = clock.now().monoMs + withinMs;
  while (!hasHappened()) {
    if (isInterrupted()) throw new Interrupted();
    if (clock.now().monoMs > untilMs) throw new Error(`${what}: not within ${seconds(withinMs)}`);
    timeline.meter('Timers', () => describeNow(telling));
    await pause(clock, LOOK_MS);
  }
  if (isInterrupted()) throw new Interrupted();
}

/** The exchange and the daemon of the demonstration, in this process. */
type DemoStage = Awaited<ReturnType<typeof setStage>>;
type DemoBot = ReturnType<typeof startDemoBot>;

/** Listens at free ports of the loopback and looks at nothing of the environment: no exchange of the user's is touched. */
async function setStage(edge: Edge, clock: Clock) {
  const exchange = await startSimulatedServer({ clock, listen: { host: '127.0.0.1', port: 0 } });
  const env = {
    KILLSWITCHD_BASE_URL: exchange.url,
    KILLSWITCHD_API_KEY: DEMO_KEY.key,
    KILLSWITCHD_API_SECRET: DEMO_KEY.secret,
  };
  const load = createLoad({ env, flags: { config: CONFIG }, command: 'run' });
  const loaded = load();
  if (loaded.kind === 'invalid') throw new Error(loaded.problems.join('\n'));
  const { config } = loaded;
  const daemon = await startDaemon({
    loaded,
    load,
    env,
    clock,
    nodeVersion: edge.nodeVersion,
    manager: null,
    lookAtProcess: lookAtProc,
    // The timeline says it in its own words.
    write: (bytes, done) => queueMicrotask(() => done(null, bytes.length)),
  });
  let bot: DemoBot | null = null;
  let ending: Promise<unknown> | null = null;
  const endAll = async () => {
    bot?.child.kill('SIGKILL');
    await bot?.ended;
    await daemon.stop('the demonstration ends');
    await exchange.close();
  };
  const settings = toCoreSettings(config, [exchange.url]);
  const timeoutMs = config.defaults.timeoutSeconds * 1000;
  return {
    exchange,
    daemon,
    markets: config.markets.map(({ market }) => market),
    timeoutMs,
    ttlMs: config.liveness.ttlSeconds * 1000,
    /** After the bot's last sign of life its orders are cancelled within this. */
    promisedMs: boundsOf(settings, timeoutMs, 0).botDeathMs ?? 0,
    /** Starts the example bot in a process of its own; `onLine` is told what it prints. */
    startBot(onLine: (line: string) => void): DemoBot {
      const [control = ''] = daemon.controls;
      bot = startDemoBot(edge.nodePath ?? 'node', control.replace('http://', ''), onLine);
      return bot;
    },
    /** Ends the bot, whatever it does, and then everything else. Asking again joins the first end. */
    end(): Promise<unknown> {
      ending ??= endAll();
      return ending;
    },
  };
}

function startDemoBot(nodePath: string, control: string, onLine: (line: string) => void) {
  const child = spawn(nodePath, ['--title=killswitchd-demo-bot', BOT_SOURCE], {
    env: { KILLSWITCHD_CONTROL: control },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.once('error', ({ message }) => onLine(message));
  const ended = new Promise<void>((resolve) => void child.once('close', () => resolve()));
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', onLine);
  return { child, ended };
}
