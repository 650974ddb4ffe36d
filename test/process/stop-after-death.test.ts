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
  test.for([
    ['beat', ['gone', 'killed', 'lives']],
    ['file', ['killed', 'lives']],
  ] as const)(
    '1 s after a bot was killed deletes nothing of it and ends with 75; the timers of bots that live, or have said goodbye, are deleted (%s)',
    async ([mode, names], context) => {
      const stage = stageFor(context);
      const exchange = await stage.exchange();
      await exchange.placeOrders(...names.map((bot) => ({ market: marketOf(bot), type: 'spot' as const })));
      const fileOf = (bot: string) => join(stage.directory, `${bot}.alive`);
      const daemon = await stage.daemon({
        exchange: exchange.url,
        markets: names.map((bot) => ({ market: marketOf(bot), timeoutSeconds: 6, bot })),
        control: true,
        config: {
          liveness: { mode, ttlSeconds: TTL_SECONDS, ...(mode === 'file' ? { file: fileOf('{bot}') } : {}) },
        },
      });
      const bots = Object.fromEntries(
        names.map((bot) => {
          const env = { KILLSWITCHD_CONTROL: daemon.socket, KILLSWITCHD_BOT: bot };
          const touches = ['test/process/bot.ts', 'file', fileOf(bot)];
          const args = mode === 'file' ? touches : ['config/clients/bot.js'];
          return [bot, startProcess(context, process.execPath, args, mode === 'file' ? {} : env)];
        }),
      );
      await eventually('signs of life', 20_000, () =>
        daemon.logged('bot-alive').length < names.length ? null : true,
      );
      await daemon.ready();
      bots['gone']?.signal('SIGTERM');
      await eventually('the goodbye', 10_000, () =>
        mode === 'file' || daemon.logged('bot-goodbye').length > 0 ? true : null,
      );
      bots['killed']?.signal('SIGKILL');
      await sleep(1000);
      daemon.signal('SIGTERM');
      expect(await daemon.exit(), said(daemon)).toMatchObject({ code: 75 });
      expect(daemon.stderr()).toMatch(/^KILLED_USDT: .*cancelled at the latest at \S+Z$/m);
      await exchange.event('order-cancelled', 15_000, ({ market }) => market === 'KILLED_USDT');
      const others = names.filter((bot) => bot !== 'killed').map(marketOf);
      expect(await deletedIn(exchange)).toEqual(others);
      expect(ofKind(await exchange.events(), 'order-cancelled')).toHaveLength(1);
      for (const market of others) expect(daemon.stderr()).not.toContain(market);
    },
  );

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

  test.for([
    ['that outlasts it', null, 'the delete was not confirmed'],
    ['that outlasts the timers', 6500, 'the timer may have fired before it was deleted'],
  ] as const)(
    'during a maintenance %s names every timer of 5 s, and ends with 75',
    async ([, forMs, words], context) => {
      const config = { shutdown: { budgetSeconds: 10 } };
      const { exchange, daemon } = await guard(context, { timeoutSeconds: 5, config });
      await exchange.addFaults({ kind: 'maintenance', ...(forMs === null ? {} : { forMs }) });
      daemon.signal('SIGTERM');
      expect(await daemon.exit(), said(daemon)).toMatchObject({ code: 75 });
      const [stopped] = daemon.logged('stopped');
      expect(stopped?.level).toBe('error');
      for (const market of ['AAA_USDT', 'BBB_USDT']) {
        expect(daemon.stderr()).toContain(`${market}: ${words}`);
        expect(stopped?.msg).toContain(market);
      }
      expect(ofKind(await exchange.events(), 'order-cancelled')).toHaveLength(2);
    },
  );
});
