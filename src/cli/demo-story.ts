import type { Clock } from '../ports.ts';
import type { ExchangeEvent } from '../simulator/event-log.ts';
import type { DemoBot, DemoStage } from './demo-stage.ts';
import type { barFor } from './table.ts';
import type { Timeline } from './timeline.ts';

/** How long each part is left to be read and watched, milliseconds. */
const TRADE_MS = 9000;
const READ_MS = 6000;
/** Nothing on one machine takes so long. */
const PATIENCE_MS = 10_000;
const LOOK_MS = 50;
/** With two markets the line then fits into 80 columns, but for its end. */
const BAR_WIDTH = 5;

/** Somebody has pressed Ctrl-C. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

export interface Telling {
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
export async function tellStory(telling: Telling): Promise<void> {
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
    `Process ${bot.pid} starts: config/clients/bot.js, which says at every round of its loop that it lives.`,
  );
  await until(telling, 'orders of the bot', () => ordersOf(stage).length > 0);
  await watch(telling, TRADE_MS);
  return bot;
}

async function hang(telling: Telling, bot: DemoBot): Promise<void> {
  const { stage, timeline } = telling;
  timeline.title('2. The bot hangs');
  // Between two rounds: a beat that is cut off in the middle would be another story.
  await until(telling, 'a beat', () => silentMs(stage) > 200 && silentMs(stage) < 600);
  bot.signal('SIGSTOP');
  timeline.say(
    'Demo',
    `Process ${bot.pid} stands still (SIGSTOP). Its ${ordersOf(stage).length} orders still rest.`,
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

async function comeBack(telling: Telling, bot: DemoBot): Promise<void> {
  const { stage, timeline } = telling;
  timeline.title('4. The bot comes back');
  bot.signal('SIGCONT');
  timeline.say(
    'Demo',
    `Process ${bot.pid} goes on (SIGCONT). Its next beat tells it that it is not protected.`,
  );
  await until(telling, 'timers armed again', () => statesOf(stage).every((state) => state === 'armed'));
  await until(telling, 'new orders', () => ordersOf(stage).length > 0);
  await watch(telling, TRADE_MS);
}

async function sayGoodbye(telling: Telling, bot: DemoBot): Promise<void> {
  const { stage, timeline } = telling;
  timeline.title('5. The bot ends on purpose');
  timeline.say('Demo', `Process ${bot.pid} is asked to end (SIGTERM): it says goodbye to the daemon.`);
  bot.signal('SIGTERM');
  await until(telling, 'deleted timers', () => statesOf(stage).every((state) => state === 'deleted'));
  timeline.say('Daemon', 'Confirmed: nothing is left that could cancel an order.', 'ok');
  await until(telling, 'the end of the bot', () => bot.end() !== null);
  timeline.say('Bot', `Process ${bot.pid} has ended with exit code ${bot.end()?.code}.`);
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
    await new Promise<void>((resolve) => {
      clock.after(LOOK_MS, resolve);
    });
  }
  if (isInterrupted()) throw new Interrupted();
}
