import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startProcess } from '../liveness/started.ts';
import { botLines } from './exec-play.ts';
import { beginGuard, stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { ofKind, renewalsOf } from './simulated-exchange.ts';

const T_SECONDS = 5;
/** Long enough for a bot to be starved by others for a while. */
const TTL_SECONDS = 4;
/** A renewal is written once a second, and a busy machine may be slow to write, carry and stamp it. */
const SLACK_MS = 1000;
const EXCHANGE = { requestLifetimeSeconds: 2, cancellationDelaySeconds: 1 };

/** How a bot's process ends, or stands still. A clean end is a silence as well: these bots cannot say goodbye. */
const FATES = { killed: 'SIGKILL', hung: 'SIGSTOP', ended: 'SIGTERM' } as const;

type Scene = Awaited<ReturnType<typeof beginGuard>>;

/** The orders are cancelled inside the bound that the daemon printed, and nothing was renewed for the dead. */
async function judgeDeath({ exchange, daemon }: Scene, market: string, struckAtMs: number) {
  const promise = daemon.logged('promise').find((line) => line.market === market)?.msg ?? '';
  const boundSeconds = Number(/If the bot dies, [^.]* after at most ([\d.]+) s;/.exec(promise)?.[1]);
  expect(boundSeconds, promise).toBe(TTL_SECONDS + 2 + T_SECONDS + 1 + 1);
  const cancelled = await exchange.event('order-cancelled', 15_000, (event) => event.market === market);
  expect(cancelled.atMs, market).toBeGreaterThan(struckAtMs);
  expect(cancelled.atMs, market).toBeLessThanOrEqual(struckAtMs + boundSeconds * 1000);
  const events = await exchange.events();
  expect(ofKind(events, 'timer-deleted', market)).toEqual([]);
  const evidenceUntilMs = struckAtMs + TTL_SECONDS * 1000 + SLACK_MS;
  const late = renewalsOf(events, market).filter((atMs) => atMs > evidenceUntilMs && atMs <= cancelled.atMs);
  expect(late, `${market}: renewals after the evidence ran out`).toEqual([]);
  expect(daemon.marketsLogged('suspended')).toContain(market);
}

// That a bot which beats loses its orders as well: `first-steps.test.ts`; the child of exec: `exec.test.ts`.
describe.concurrent('a bot that is killed or hangs loses its orders in time', { timeout: 90_000 }, () => {
  test.for(['file', 'http'] as const)('where its liveness is shown by %s', async (mode, context) => {
    const file = join(stageFor(context).directory, '{bot}.alive');
    const bots = await Promise.all(
      Object.entries(FATES).map(async ([fate, end]) => {
        const how = mode === 'http' ? ['http'] : ['file', file.replace('{bot}', fate)];
        const args = ['test/process/bot.ts', ...how];
        const { signal, output } = startProcess(context, process.execPath, args);
        const begun = () => botLines({ stdout: output })[0];
        const { port } = await eventually('the start of a bot', 15_000, begun);
        const bot = mode === 'http' ? String(port) : fate;
        return { market: `${fate.toUpperCase()}_USDT`, bot, signal, end };
      }),
    );
    const shown = mode === 'http' ? { url: 'http://127.0.0.1:{bot}/alive' } : { file };
    const scene = await beginGuard(context, {
      markets: bots.map(({ market, bot }) => ({ market, bot })),
      timeoutSeconds: T_SECONDS,
      config: { exchange: EXCHANGE, liveness: { mode, ttlSeconds: TTL_SECONDS, ...shown } },
    });
    const { exchange, daemon } = scene;
    await eventually('signs of life', 20_000, () => daemon.logged('bot-alive')[bots.length - 1]);
    await daemon.ready();
    await sleep(1500);
    const struckAtMs = await exchange.nowMs();
    for (const { signal, end } of bots) signal(end);
    await Promise.all(bots.map(({ market }) => judgeDeath(scene, market, struckAtMs)));
    const seq = (await exchange.events()).at(-1)?.seq ?? 0;
    // One that goes on is guarded again.
    bots.find(({ end }) => end === 'SIGSTOP')?.signal('SIGCONT');
    const isNew = (event: { market: string; seq: number }) => event.seq > seq && event.market === 'HUNG_USDT';
    await exchange.event('timer-armed', 10_000, isNew);
    const cancelled = ofKind(await exchange.events(), 'order-cancelled').map(({ market }) => market);
    expect(cancelled.toSorted()).toEqual(['ENDED_USDT', 'HUNG_USDT', 'KILLED_USDT']);
  });
});
