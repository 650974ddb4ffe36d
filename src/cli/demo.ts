import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { toCoreSettings } from '../config/config.ts';
import { boundsOf } from '../core/promise.ts';
import { startDaemon } from '../daemon/daemon.ts';
import type { ExchangeEvent } from '../simulator/event-log.ts';
import { startSimulatedServer } from '../simulator/server.ts';
import { DEMO_KEY } from '../simulator/state.ts';
import { PACKAGE } from '../version.ts';
import { exitCodeOf } from './bot-process.ts';
import { loadFor } from './config-flags.ts';
import { type Edge, EXIT, messageOf, onStopSignal, waitUntil } from './edge.ts';
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

/** `demo`: a story of less than a minute with a real bot process. Ends with 130 after Ctrl-C and 143 after SIGTERM. */
export function register(program: Command, edge: Edge): void {
  program
    .command('demo')
    .description(
      'see in a minute what it is for: a bot trades, hangs, comes back and ends; nothing leaves this machine',
    )
    .action(() => demonstrate(edge));
}

async function demonstrate(edge: Edge): Promise<void> {
  let interruptedBy: 'SIGINT' | 'SIGTERM' | null = null;
  let stage: DemoStage | null = null;
  const fail = (error: unknown) => {
    edge.err(`killswitchd demo: ${messageOf(error)}`);
    const exit = () => edge.exitNow(EXIT.internal);
    Promise.resolve(stage?.end()).then(exit, exit);
  };
  edge.onCrash(fail);
  onStopSignal(edge, (signal) => void (interruptedBy ??= signal));
  const timeline = createTimeline(edge);
  timeline.title(
    'killswitchd demo: what a kill switch does for the orders of a trading bot, in about 45 s. All of it happens on this machine: no account, no key, no money. Ctrl-C ends it.',
  );
  try {
    stage = await setStage(edge, timeline, () => interruptedBy !== null || edge.readerGone());
    await tellStory(stage);
    await stage.end();
    timeline.title(
      'That was all. Next, your own bot: the clients for Python, Node and shell are in clients and config/clients; start it with',
      'killswitchd exec --embedded-exchange --markets BTC_USDT --liveness-mode beat --control-listen 127.0.0.1:0 -- python3 YOUR-BOT.py',
    );
    edge.exitNow(EXIT.ok);
  } catch (error) {
    if (error !== INTERRUPTED) return fail(error);
    timeline.demo('Interrupted: ends the bot, the daemon and the exchange.');
    await stage?.end();
    edge.exitNow(exitCodeOf({ code: null, signal: interruptedBy ?? 'SIGPIPE' }, edge));
  }
}

const INTERRUPTED = new Error('interrupted');

const seconds = (ms: number): string => `${Number((ms / 1000).toFixed(1))} s`;

/** Throws INTERRUPTED, or an error where something does not happen that should. */
async function tellStory(stage: DemoStage): Promise<void> {
  const { timeline, exchange, daemon, markets, until, orders, states, silentMs } = stage;
  const promised = seconds(stage.promisedMs);

  timeline.title('1. The timers are armed, and the bot trades');
  timeline.exchange(`A simulated exchange answers at ${exchange.url}.`);
  const guards = `Guards ${markets.join(' and ')} with timers of ${seconds(stage.timeoutMs)}`;
  timeline.daemon(`${guards}, and shows it at ${daemon.addresses[0]}.`);
  await until('armed timers', () => daemon.keeper.snapshot().ready);
  timeline.daemon('Confirmed. Now the bot may start.', 'ok');
  const child = stage.startBot();
  const says = 'which says at every round of its loop that it lives';
  timeline.bot(`Process ${child.pid} starts: config/clients/bot.js, ${says}.`);
  await until('orders of the bot', () => orders().length > 0);
  await stage.watch(TRADE_MS);

  timeline.title('2. The bot hangs');
  // Between two rounds: a beat that is cut off in the middle would be another story.
  await until('a beat', () => silentMs() > 200 && silentMs() < 600);
  child.kill('SIGSTOP');
  timeline.demo(
    `Process ${child.pid} stands still (SIGSTOP). Its ${orders().length} orders still rest.`,
    'bad',
  );
  timeline.daemon(`Promised: they are cancelled at most ${promised} after its last sign of life.`);
  const isStale = () => daemon.keeper.snapshot().bots[0]?.state === 'stale';
  await until('evidence that ran out', isStale, stage.ttlMs + PATIENCE_MS);
  const ttl = seconds(stage.ttlMs);
  timeline.daemon(`No sign of life for ${ttl}. Nothing is renewed any more: the timers run out.`, 'warn');

  timeline.title('3. The exchange cancels the orders by itself');
  await until('cancelled orders', () => orders().length === 0, stage.timeoutMs + PATIENCE_MS);
  timeline.demo(
    `Measured: ${seconds(silentMs())} after the last sign of life; promised were at most ${promised}. The exchange did it alone: it cancels them as well when the daemon, the host or the network has died.`,
    'ok',
  );
  await stage.watch(READ_MS);

  timeline.title('4. The bot comes back');
  child.kill('SIGCONT');
  timeline.demo(`Process ${child.pid} goes on (SIGCONT). Its next beat tells it that it is not protected.`);
  await until('timers armed again', () => states().every((state) => state === 'armed'));
  await until('new orders', () => orders().length > 0);
  await stage.watch(TRADE_MS);

  timeline.title('5. The bot ends on purpose');
  timeline.demo(`Process ${child.pid} is asked to end (SIGTERM): it says goodbye to the daemon.`);
  child.kill('SIGTERM');
  await until('deleted timers', () => states().every((state) => state === 'deleted'));
  timeline.daemon('Confirmed: nothing is left that could cancel an order.', 'ok');
  await until('the end of the bot', () => child.exitCode !== null || child.signalCode !== null);
  timeline.bot(`Process ${child.pid} has ended with exit code ${child.exitCode}.`);
}

/** The example bot decides nothing: when it says that orders may go out, they are placed for it. */
function hearBot({ exchange: server, markets, orders, timeline }: DemoStage, line: string): void {
  const { exchange, nowMs } = server;
  timeline.bot(`"${line}"`);
  if (!line.startsWith('armed') || orders().length > 0) return;
  for (const market of markets) {
    const order = { market, type: 'spot', amount: '0.5' } as const;
    exchange.placeOrder({ ...order, side: 'buy', price: '90' }, nowMs());
    exchange.placeOrder({ ...order, side: 'sell', price: '110' }, nowMs());
  }
  timeline.exchange(`${orders().length} orders of the bot rest in the books of ${markets.join(' and ')}.`);
}

function narrate(event: ExchangeEvent, { orders, timeline }: DemoStage): void {
  if (event.kind === 'timer-armed') {
    const unless = `Unless it is renewed within ${event.timeoutSeconds} s, every order of the market is cancelled`;
    timeline.exchange(`${event.market}: timer armed. ${unless}.`);
  }
  if (event.kind === 'timer-fired') {
    const text = `${event.market}: THE TIMER RAN OUT, ${event.cancelledOrders} orders cancelled.`;
    timeline.exchange(text, 'bad');
  }
  if (event.kind === 'timer-deleted') {
    const left = orders().filter(({ market }) => market === event.market).length;
    timeline.exchange(`${event.market}: timer deleted, its ${left} orders stay.`);
  }
}

function describeNow({ markets, timeoutMs, bar, daemon, silentMs, exchange: server }: DemoStage): string {
  const { exchange, nowMs } = server;
  const timers = markets.map((market) => {
    const timer = exchange.timers().find((one) => one.market === market);
    if (timer === undefined) return `${market} no timer`;
    const leftMs = Math.max(0, timer.dueMs - nowMs());
    const full = Math.min(BAR_WIDTH, Math.ceil((leftMs / timeoutMs) * BAR_WIDTH));
    const drawn = bar === null ? '' : `${bar.full.repeat(full)}${bar.empty.repeat(BAR_WIDTH - full)} `;
    return `${market} ${drawn}${(leftMs / 1000).toFixed(1)} s`;
  });
  const renewals = daemon.keeper.snapshot().markets.reduce((sum, market) => sum + market.renewals, 0);
  return [...timers, `beat ${(silentMs() / 1000).toFixed(1)} s ago`, `renewals ${renewals}`].join('  ');
}

type DemoStage = Awaited<ReturnType<typeof setStage>>;

/** Listens at free ports of the loopback and looks at nothing of the environment: no exchange of the user's is touched. */
async function setStage(edge: Edge, timeline: Timeline, isInterrupted: () => boolean) {
  const { clock, nodeVersion } = edge;
  const exchange = await startSimulatedServer({ clock, listen: { host: '127.0.0.1', port: 0 } });
  const env = {
    KILLSWITCHD_BASE_URL: exchange.url,
    KILLSWITCHD_API_KEY: DEMO_KEY.key,
    KILLSWITCHD_API_SECRET: DEMO_KEY.secret,
  };
  const daemon = await startDaemon({
    ...loadFor({ ...edge, env }, { config: CONFIG }, 'run'),
    clock,
    nodeVersion,
    manager: null,
    // The timeline says what the log would.
    write: (bytes, done) => queueMicrotask(() => done(null, bytes.length)),
  });
  const config = daemon.config();
  let bot: ReturnType<typeof startDemoBot> | null = null;
  let ending: Promise<unknown> | null = null;
  const endAll = async () => {
    endNarration();
    bot?.child.kill('SIGKILL');
    await bot?.ended;
    // A timer of a bot that was just killed is not deleted, and the exchange ends with its timers.
    await daemon.stop('the demonstration ends', 'keep');
    await exchange.close();
  };
  const settings = toCoreSettings(config, [exchange.url]);
  const timeoutMs = config.defaults.timeoutSeconds * 1000;
  const stage = {
    timeline,
    exchange,
    daemon,
    markets: config.markets.map(({ market }) => market),
    timeoutMs,
    ttlMs: config.liveness.ttlSeconds * 1000,
    /** After the bot's last sign of life its orders are cancelled within this. */
    promisedMs: boundsOf(settings, timeoutMs, 0).botDeathMs ?? 0,
    orders: () => exchange.exchange.orders(),
    states: () => daemon.keeper.snapshot().markets.map(({ state }) => state),
    silentMs: () => daemon.keeper.snapshot().bots[0]?.evidenceAgeMs ?? 0,
    bar: edge.screen === undefined ? null : barFor(edge.env),
    until: async (what: string, hasHappened: () => boolean, withinMs = PATIENCE_MS): Promise<void> => {
      const isSo = await waitUntil({ clock, withinMs, everyMs: LOOK_MS }, () => {
        if (isInterrupted()) throw INTERRUPTED;
        timeline.meter('Timers', () => describeNow(stage));
        return hasHappened();
      });
      if (!isSo) throw new Error(`${what}: not within ${seconds(withinMs)}`);
    },
    watch(forMs: number): Promise<void> {
      const untilMs = clock.now().monoMs + forMs;
      return stage.until('the end of a pause', () => clock.now().monoMs >= untilMs, forMs + PATIENCE_MS);
    },
    startBot() {
      bot = startDemoBot(edge.nodePath, daemon.controls[0], (line) => hearBot(stage, line));
      return bot.child;
    },
    /** Ends the bot, whatever it does, and then everything else. Asking again joins the first end. */
    end: (): Promise<unknown> => (ending ??= endAll()),
  };
  const endNarration = exchange.exchange.log.subscribe((event) => narrate(event, stage));
  return stage;
}

function startDemoBot(nodePath: string, control: string | undefined, onLine: (line: string) => void) {
  const child = spawn(nodePath, ['--title=killswitchd-demo-bot', BOT_SOURCE], {
    env: { KILLSWITCHD_CONTROL: control?.replace('http://', '') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.once('error', ({ message }) => onLine(message));
  const ended = new Promise<void>((resolve) => void child.once('close', () => resolve()));
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', onLine);
  return { child, ended };
}
