import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startProcess } from '../liveness/started.ts';
import { guard, stageFor } from './harness.ts';
import { eventually, said, sleep } from './program.ts';
import { ofKind, type RunningExchange } from './simulated-exchange.ts';

const TTL_SECONDS = 15;
const marketOf = (bot: string) => `${bot.toUpperCase()}_USDT`;

const deletedIn = async (exchange: RunningExchange) =>
  ofKind(await exchange.events(), 'timer-deleted')
    .map(({ market }) => market)
    .toSorted();

describe.concurrent('a stop of the daemon', { timeout: 60_000 }, () => {
  test('1 s after a bot was killed deletes nothing of it and ends with 75; the timers of bots that live, or have said goodbye, are deleted', async (context) => {
    const names = ['gone', 'killed', 'lives'] as const;
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    await exchange.placeOrders(...names.map((bot) => ({ market: marketOf(bot), type: 'spot' as const })));
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: names.map((bot) => ({ market: marketOf(bot), timeoutSeconds: 6, bot })),
      control: true,
      config: { liveness: { mode: 'beat', ttlSeconds: TTL_SECONDS } },
    });
    const [gone, killed] = names.map((bot) => {
      const env = { KILLSWITCHD_CONTROL: daemon.socket, KILLSWITCHD_BOT: bot };
      return startProcess(context, process.execPath, ['config/clients/bot.js'], env);
    });
    const logged = (event: string, count: number) =>
      eventually(event, 20_000, () => (daemon.logged(event).length < count ? null : true));
    await logged('bot-alive', names.length);
    await daemon.ready();
    gone?.signal('SIGTERM');
    await logged('bot-goodbye', 1);
    killed?.signal('SIGKILL');
    await sleep(1000);
    daemon.signal('SIGTERM');
    expect(await daemon.exit(), said(daemon)).toMatchObject({ code: 75 });
    expect(daemon.stderr()).toMatch(/^KILLED_USDT: .*cancelled at the latest at \S+Z$/m);
    await exchange.event('order-cancelled', 15_000, ({ market }) => market === 'KILLED_USDT');
    const others = ['GONE_USDT', 'LIVES_USDT'];
    expect(await deletedIn(exchange)).toEqual(others);
    expect(ofKind(await exchange.events(), 'order-cancelled')).toHaveLength(1);
    for (const market of others) expect(daemon.stderr()).not.toContain(market);
  });

  test('while its bot lives waits for a sign of it, deletes every timer, and ends with 0', async (context) => {
    const file = join(stageFor(context).directory, 'bot.alive');
    startProcess(context, process.execPath, ['test/process/bot.ts', 'file', file]);
    const liveness = { mode: 'file', file, ttlSeconds: TTL_SECONDS };
    const { exchange, daemon } = await guard(context, { timeoutSeconds: 6, config: { liveness } });
    daemon.signal('SIGTERM');
    expect(await daemon.exit(), said(daemon)).toMatchObject({ code: 0 });
    expect(await deletedIn(exchange)).toEqual(['AAA_USDT', 'BBB_USDT']);
    expect(ofKind(await exchange.events(), 'order-cancelled')).toEqual([]);
  });

  test('during a maintenance that outlasts the timers names each of them, and ends with 75', async (context) => {
    const config = { shutdown: { budgetSeconds: 10 } };
    const { exchange, daemon } = await guard(context, { timeoutSeconds: 5, config });
    await exchange.addFaults({ kind: 'maintenance', forMs: 6500 });
    daemon.signal('SIGTERM');
    expect(await daemon.exit(), said(daemon)).toMatchObject({ code: 75 });
    const [stopped] = daemon.logged('stopped');
    expect(stopped?.level).toBe('error');
    for (const market of ['AAA_USDT', 'BBB_USDT']) {
      expect(daemon.stderr()).toContain(`${market}: the timer may have fired before it was deleted`);
      expect(stopped?.msg).toContain(market);
    }
    expect(ofKind(await exchange.events(), 'order-cancelled')).toHaveLength(2);
  });
});
