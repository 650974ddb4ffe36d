import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startProcess } from '../liveness/started.ts';
import type { BotLine } from './bot.ts';
import type { DaemonProcess } from './daemon.ts';
import { BOT } from './exec-play.ts';
import { beginGuard, stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { longestGapMs, ofKind, type RunningExchange, renewalsOf } from './simulated-exchange.ts';

const T_SECONDS = 5;
/** Long enough for a bot to be starved by others for a while. */
const TTL_SECONDS = 4;
/** A renewal is written once a second, and a busy machine may be slow to write, carry and stamp it. */
const SLACK_MS = 1000;
const EXCHANGE = { requestLifetimeSeconds: 2, cancellationDelaySeconds: 1 };

/** How a bot's process ends, or stands still. `lives` is there to see that it does not suffer from the others. */
const FATES = { killed: 'SIGKILL', hung: 'SIGSTOP', ended: 'SIGTERM', lives: null } as const;
type Fate = keyof typeof FATES;
const ALL = Object.keys(FATES) as Fate[];
const marketOf = (fate: Fate) => `${fate.toUpperCase()}_USDT`;
/** What a death leaves to the exchange; a clean end is none where the bot can say so. */
const DEATHS: readonly Fate[] = ['killed', 'hung'];

interface Guarded {
  readonly fate: Fate;
  readonly daemon: DaemonProcess;
  readonly signal: (signal: NodeJS.Signals) => void;
}

type Scene = Awaited<ReturnType<typeof strike>>;

const started = (output: () => string) =>
  eventually('the start of a bot', 15_000, () => {
    const [line] = /^\{"bot":"started".*\}$/m.exec(output()) ?? [];
    return line === undefined ? null : (JSON.parse(line) as BotLine);
  });

/** Lets every bot live for a while, and then strikes all of them at once. */
async function strike(exchange: RunningExchange, guarded: readonly Guarded[]) {
  for (const daemon of new Set(guarded.map((one) => one.daemon))) {
    const bots = guarded.filter((one) => one.daemon === daemon).length;
    await eventually('signs of life', 20_000, () => daemon.logged('bot-alive').length >= bots);
    await daemon.ready();
  }
  await sleep(1500);
  /** Unix milliseconds, before the signals were sent. */
  const struckAtMs = await exchange.nowMs();
  for (const { fate, signal } of guarded) if (FATES[fate] !== null) signal(FATES[fate]);
  return { exchange, guarded, struckAtMs };
}

/** The orders are cancelled inside the bound that the daemon printed, and nothing was renewed for the dead. */
async function judgeDeath({ exchange, struckAtMs }: Scene, { fate, daemon }: Guarded): Promise<void> {
  const market = marketOf(fate);
  const promise = daemon.logged('promise').find((line) => line.market === market)?.msg ?? '';
  const boundSeconds = Number(/If the bot dies, [^.]* after at most ([\d.]+) s\./.exec(promise)?.[1]);
  expect(boundSeconds, promise).toBe(TTL_SECONDS + 2 + T_SECONDS + 1 + 1);
  const cancelled = await exchange.event('order-cancelled', 15_000, (event) => event.market === market);
  expect(cancelled.atMs, market).toBeGreaterThan(struckAtMs);
  expect(cancelled.atMs, market).toBeLessThanOrEqual(struckAtMs + boundSeconds * 1000);
  const events = await exchange.events();
  expect(ofKind(events, 'timer-deleted', market)).toEqual([]);
  const late = renewalsOf(events, market).filter(
    (atMs) => atMs > struckAtMs + TTL_SECONDS * 1000 + SLACK_MS && atMs <= cancelled.atMs,
  );
  expect(late, `${market}: renewals after the evidence ran out`).toEqual([]);
  expect(daemon.marketsLogged('suspended')).toContain(market);
}

/** A bot that ends on purpose and says so takes its timer along; its orders stay. */
async function judgeGoodbye({ exchange }: Scene, { fate }: Guarded): Promise<void> {
  const market = marketOf(fate);
  const deleted = await exchange.event('timer-deleted', 10_000, (event) => event.market === market);
  await sleep((T_SECONDS + 1) * 1000);
  const events = await exchange.events();
  expect(ofKind(events, 'order-cancelled', market)).toEqual([]);
  expect(renewalsOf(events, market).filter((atMs) => atMs > deleted.atMs)).toEqual([]);
}

/** Judges every market by what its bot's end must lead to, and tells which of them lost their orders. */
async function judge(scene: Scene, deaths: readonly Fate[]): Promise<string[]> {
  const ended = scene.guarded.filter(({ fate }) => fate !== 'lives');
  await Promise.all(
    ended.map((one) => (deaths.includes(one.fate) ? judgeDeath(scene, one) : judgeGoodbye(scene, one))),
  );
  const { exchange, guarded, struckAtMs } = scene;
  const before = await exchange.events();
  if (guarded.length > ended.length)
    expect(longestGapMs(before, marketOf('lives'), struckAtMs, await exchange.nowMs())).toBeLessThan(4000);
  // A bot that goes on is guarded again.
  const market = marketOf('hung');
  guarded.find(({ fate }) => fate === 'hung')?.signal('SIGCONT');
  const isNew = ({ seq }: { seq: number }) => seq > (before.at(-1)?.seq ?? 0);
  await exchange.event('timer-armed', 10_000, (event) => event.market === market && isNew(event));
  return ofKind(await exchange.events(), 'order-cancelled')
    .map(({ market }) => market)
    .sort();
}

describe.concurrent('a bot that is killed or hangs loses its orders in time, and one that ends well keeps them', {
  timeout: 90_000,
}, () => {
  // Where it touches a file or answers at a URL even a clean end is a silence.
  test.for([
    ['it beats: the example bot', 'beat', ['HUNG_USDT', 'KILLED_USDT']],
    ['it touches a file', 'file', ['ENDED_USDT', 'HUNG_USDT', 'KILLED_USDT']],
    ['it answers at a URL', 'http', ['ENDED_USDT', 'HUNG_USDT', 'KILLED_USDT']],
  ] as const)('where %s', async ([, mode, lost], context) => {
    const bot = (...args: readonly string[]) =>
      startProcess(context, process.execPath, ['test/process/bot.ts', ...args]);
    const { directory } = stageFor(context);
    const fileOf = (name: string) => join(directory, `${name}.alive`);
    const answering = await Promise.all(
      (mode === 'http' ? ALL : []).map(async (fate) => {
        const { signal, output } = bot('http');
        return { fate, signal, port: String((await started(output)).port) };
      }),
    );
    const config = {
      beat: { mode },
      file: { mode, file: fileOf('{bot}') },
      http: { mode, url: 'http://127.0.0.1:{bot}/alive' },
    };
    const nameOf = (fate: Fate) => answering.find((one) => one.fate === fate)?.port ?? fate;
    const { exchange, daemon } = await beginGuard(context, {
      markets: ALL.map((fate) => ({ market: marketOf(fate), bot: nameOf(fate) })),
      timeoutSeconds: T_SECONDS,
      control: true,
      config: { exchange: EXCHANGE, liveness: { ttlSeconds: TTL_SECONDS, ...config[mode] } },
    });
    const start = (fate: Fate) => {
      const env = { KILLSWITCHD_CONTROL: daemon.socket, KILLSWITCHD_BOT: fate };
      if (mode === 'file') return bot('file', fileOf(fate));
      return startProcess(context, process.execPath, ['config/clients/bot.js'], env);
    };
    const bots = mode === 'http' ? answering : ALL.map((fate) => ({ fate, signal: start(fate).signal }));
    const guarded = bots.map(({ fate, signal }) => ({ fate, daemon, signal }));
    const deaths = mode === 'beat' ? DEATHS : ([...DEATHS, 'ended'] as const);
    expect(await judge(await strike(exchange, guarded), deaths)).toEqual(lost);
  });

  test('where it is the child of exec, which passes its exit code on', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const orders = DEATHS.map((fate) => ({ market: marketOf(fate), type: 'spot' as const }));
    await exchange.placeOrders(...orders);
    const guarded = await Promise.all(
      DEATHS.map(async (fate) => {
        const daemon = await stage.daemon({
          exchange: exchange.url,
          markets: [{ market: marketOf(fate), timeoutSeconds: T_SECONDS }],
          bot: BOT,
          config: {
            // Two daemons share one key here: rising nonces of one would make those of the other stale.
            exchange: { ...EXCHANGE, nonce: 'window' },
            liveness: { mode: 'process', ttlSeconds: TTL_SECONDS },
          },
        });
        const { pid } = await started(daemon.stdout);
        return { fate, daemon, signal: (signal: NodeJS.Signals) => void process.kill(pid, signal) };
      }),
    );
    const lost = await judge(await strike(exchange, guarded), DEATHS);
    expect(lost).toEqual(['HUNG_USDT', 'KILLED_USDT']);
    expect(await guarded[0]?.daemon.exit()).toMatchObject({ code: 137 });
  });
});
