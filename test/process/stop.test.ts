import { chmodSync, copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startProcess } from '../liveness/started.ts';
import { send, signed } from '../simulator/raw-client.ts';
import { asker } from './control.ts';
import { begin } from './exec-play.ts';
import { beginGuard, guard, type Scope, stageFor } from './harness.ts';
import { serve } from './http-server.ts';
import { endBy, eventually, type Program, said, sleep } from './program.ts';
import { deletedIn, ofKind, renewalsOf, renewedAfterDelete } from './simulated-exchange.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT'];

/** A Node of the test's own, and the words before a command that have it run by that one. */
function ownNode(scope: Scope) {
  const node = join(stageFor(scope).directory, 'node');
  copyFileSync(process.execPath, node);
  return { node, prefix: ['sh', '-c', 'shift; exec "$0" "$@"', node] };
}

/** A daemon, all threads of which wait in the kernel. */
async function hung(scope: Scope, prefix: readonly string[] = []) {
  const played = await guard(scope, { markets: ['AAA_USDT'], canSabotage: true, prefix });
  played.daemon.sabotage({ kind: 'hang-threads', pipe: join(played.stage.directory, 'pipe') });
  await sleep(500);
  return played;
}

/** Sends the signal every few milliseconds until the process has ended. */
async function storm(program: Program, signal: NodeJS.Signals): Promise<void> {
  while (!program.hasExited()) {
    program.signal(signal);
    await sleep(3);
  }
}

describe.concurrent('a stop', { timeout: 60_000 }, () => {
  test('deletes exactly the timers that the daemon armed; keep leaves them alone, handoff renews them once more', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    await exchange.placeOrders(...MARKETS.map((market) => ({ market, type: 'spot' as const })));
    // As another program of the same account does.
    const other = signed({ market: 'OTHER_USDT', timeout: '600', types: null });
    expect(await send(exchange.url, other)).toMatchObject({ status: 200 });
    for (const [policy, renewedBy] of [
      ['keep', 0],
      ['handoff', 1],
      ['delete', null],
    ] as const) {
      const config = { shutdown: { policy } };
      const daemon = await stage.daemon({ exchange: exchange.url, markets: MARKETS, config });
      await daemon.ready();
      const before = renewalsOf(await exchange.events(), 'AAA_USDT').length;
      expect(await endBy(daemon)).toBe(0);
      expect(daemon.stderr()).toBe('');
      expect(await deletedIn(exchange)).toEqual(policy === 'delete' ? MARKETS : []);
      const renewed = renewalsOf(await exchange.events(), 'AAA_USDT').length - before;
      if (renewedBy !== null) expect(renewed, policy).toBe(renewedBy);
    }
    const events = await exchange.events();
    const ofOther = events.filter((event) => 'market' in event && event.market === 'OTHER_USDT');
    expect(ofOther).toMatchObject([{ kind: 'timer-armed' }]);
    expect(ofKind(events, 'order-cancelled')).toEqual([]);
    expect(MARKETS.filter((market) => renewedAfterDelete(events, market))).toEqual([]);
  });

  test.for([
    ['silent', { kind: 'hang', mode: 'drop' }, 3, / NOT CONFIRMED DELETED, fires by (\S+Z)\. /],
    [
      'away until the timers are over',
      { kind: 'maintenance', forMs: 6500 },
      10,
      / MAY HAVE FIRED before the delete/,
    ],
  ] as const)(
    'while the exchange is %s ends within the budget with 75, whatever signal comes late, and says of each timer what became of it',
    async ([, fault, budgetSeconds, words], context) => {
      const config = { shutdown: { budgetSeconds } };
      const { exchange, daemon } = await guard(context, { timeoutSeconds: 5, config });
      await exchange.addFaults(fault);
      daemon.signal('SIGTERM');
      const askedMs = performance.now();
      while (!daemon.hasExited() && daemon.logged('stopped').length === 0) await sleep(1);
      await storm(daemon, 'SIGINT');
      expect(await daemon.exit(), said(daemon)).toMatchObject({ code: 75 });
      // 3 s for everything else, and what a busy machine adds.
      expect(performance.now() - askedMs).toBeLessThan((budgetSeconds + 5) * 1000);
      const [stopped] = daemon.logged('stopped');
      expect(stopped?.level).toBe('error');
      for (const market of MARKETS) {
        const cancelled = await exchange.event('order-cancelled', 10_000, (event) => event.market === market);
        const line = new RegExp(`^${market}:.*$`, 'm').exec(daemon.stderr())?.[0] ?? '';
        expect(line).toMatch(words);
        const [, latest] = words.exec(line) ?? [];
        if (latest !== undefined) expect(cancelled.atMs).toBeLessThanOrEqual(Date.parse(latest));
        expect(stopped?.msg).toContain(market);
      }
    },
  );

  test.for([
    [300, 'SIGTERM', 0],
    [1500, 'SIGTERM', 75],
    [300, 'SIGINT', 75],
  ] as const)(
    'to which %i ms later a %s comes, while every thread hangs and the exchange as well, ends with %i',
    async ([afterMs, signal, code], context) => {
      const { exchange, daemon } = await hung(context);
      await exchange.addFaults({ kind: 'hang', mode: 'hold', forMs: 4000 });
      daemon.signal('SIGTERM');
      await sleep(afterMs);
      expect(daemon.hasExited()).toBe(false);
      const secondMs = performance.now();
      daemon.signal(signal);
      expect(await daemon.exit()).toMatchObject({ code });
      if (code === 0) expect(await deletedIn(exchange)).toEqual(['AAA_USDT']);
      else {
        expect(performance.now() - secondMs).toBeLessThan(2000);
        expect(daemon.stderr()).toContain('timers may still be armed');
      }
    },
  );

  test.for([
    ['beat', ['gone', 'killed', 'lives']],
    ['file', ['killed', 'lives']],
  ] as const)(
    '1 s after a bot was killed deletes nothing of it and ends with 75; the timers of bots that live, or have said goodbye, are deleted (%s)',
    async ([mode, names], context) => {
      const { directory } = stageFor(context);
      const marketOf = (bot: string) => `${bot.toUpperCase()}_USDT`;
      const fileOf = (bot: string) => join(directory, `${bot}.alive`);
      const ofMode = mode === 'file' ? { file: fileOf('{bot}') } : {};
      const { exchange, daemon } = await beginGuard(context, {
        markets: names.map((bot) => ({ market: marketOf(bot), bot })),
        timeoutSeconds: 6,
        control: true,
        config: { liveness: { mode, ttlSeconds: 15, ...ofMode } },
      });
      const bots = new Map(
        names.map((bot) => {
          const env = { KILLSWITCHD_CONTROL: daemon.socket, KILLSWITCHD_BOT: bot };
          const touches = ['test/process/bot.ts', 'file', fileOf(bot)];
          const args = mode === 'file' ? touches : ['config/clients/bot.js'];
          return [String(bot), startProcess(context, process.execPath, args, env)];
        }),
      );
      await eventually('signs of life', 20_000, () => daemon.logged('bot-alive')[names.length - 1]);
      await daemon.ready();
      bots.get('gone')?.signal('SIGTERM');
      if (mode === 'beat') await eventually('the goodbye', 10_000, () => daemon.logged('bot-goodbye')[0]);
      bots.get('killed')?.signal('SIGKILL');
      await sleep(1000);
      daemon.signal('SIGTERM');
      expect(await daemon.exit(), said(daemon)).toMatchObject({ code: 75 });
      expect(daemon.stderr()).toMatch(/^KILLED_USDT: .*NOT DELETED.*, fires by \S+Z\. /m);
      await exchange.event('order-cancelled', 15_000, ({ market }) => market === 'KILLED_USDT');
      const others = names.filter((bot) => bot !== 'killed').map(marketOf);
      expect(await deletedIn(exchange)).toEqual(others);
      expect(ofKind(await exchange.events(), 'order-cancelled')).toHaveLength(1);
      for (const market of others) expect(daemon.stderr()).not.toContain(market);
    },
  );

  test('answers a goodbye when the exchange has deleted the timers of its bot', async (context) => {
    const config = { liveness: { mode: 'beat', ttlSeconds: 60 } };
    const { exchange, daemon } = await beginGuard(context, { control: true, config });
    const ask = asker(context, daemon.socket);
    await eventually('a beat', 15_000, async () => (await ask('/v1/beat').catch(() => null))?.status === 200);
    await daemon.ready();
    await exchange.addFaults({ kind: 'latency', ms: 300 });
    daemon.signal('SIGTERM');
    await eventually('the stop', 10_000, () => daemon.logged('stopping')[0]);
    expect(await ask('/v1/goodbye')).toMatchObject({ status: 200, body: { done: true } });
    expect(await deletedIn(exchange)).toEqual(MARKETS);
    expect(await daemon.exit(), said(daemon)).toMatchObject({ code: 0 });
  });

  test('asks the URL of a bot anew, however rarely it was asked before, and deletes its timers', async (context) => {
    const url = await serve(context, (_heard, response) => response.end());
    const liveness = { mode: 'http', url, ttlSeconds: 120, probeEverySeconds: 30 };
    const { exchange, daemon } = await guard(context, { config: { liveness } });
    daemon.signal('SIGTERM');
    expect(await daemon.exit(), said(daemon)).toMatchObject({ code: 0 });
    expect(await deletedIn(exchange)).toEqual(MARKETS);
  });
});

describe.concurrent('the exit code of a stop is', { timeout: 60_000 }, () => {
  test('0 under a storm of the same signal until the end', async (context) => {
    const { daemon } = await guard(context, { markets: ['AAA_USDT'] });
    await storm(daemon, 'SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 0, signal: null });
  });

  test("the bot's with exec, under the same storm", async (context) => {
    const { daemon } = await begin(context, { env: { BOT_EXIT_CODE: '3' } });
    await storm(daemon, 'SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: 3, signal: null });
  });

  test('0 where the file of Node is gone and every thread hangs, and an earlier SIGUSR1 opens no debugger', async (context) => {
    const { node, prefix } = ownNode(context);
    const { daemon } = await hung(context, prefix);
    rmSync(node);
    daemon.signal('SIGUSR1');
    expect(await endBy(daemon)).toBe(0);
    expect(daemon.stderr()).toBe('');
  });

  test('that of SIGKILL where every thread hangs and Node may not be executed any more: no core is written', async (context) => {
    const { node, prefix } = ownNode(context);
    const { daemon, exchange } = await hung(context, prefix);
    chmodSync(node, 0o644);
    daemon.signal('SIGTERM');
    expect(await daemon.exit()).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect(await deletedIn(exchange)).toEqual(['AAA_USDT']);
  });
});

describe.concurrent('when the daemon dies', { timeout: 60_000 }, () => {
  test('by SIGKILL, the exchange cancels what the timers cover, and nothing else, within T + 1 s', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    for (const market of ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'])
      await exchange.placeOrders({ market, type: 'spot' }, { market, type: 'margin' });
    const spot = { market: 'AAA_USDT', timeoutSeconds: 5, types: ['spot'] };
    const markets = [spot, { market: 'BBB_USDT', timeoutSeconds: 6 }];
    const daemon = await stage.daemon({ exchange: exchange.url, markets });
    await daemon.ready();
    await sleep(1000);
    const killedAtMs = await exchange.nowMs();
    daemon.signal('SIGKILL');
    await exchange.event('timer-fired', 8000, ({ market }) => market === 'BBB_USDT');
    const cancelled = ofKind(await exchange.events(), 'order-cancelled');
    const covered = ['AAA_USDT spot', 'BBB_USDT margin', 'BBB_USDT spot'];
    expect(cancelled.map(({ market, type }) => `${market} ${type}`).sort()).toEqual(covered);
    for (const { market, atMs } of cancelled) {
      expect(atMs - killedAtMs).toBeGreaterThan(0);
      expect(atMs - killedAtMs).toBeLessThanOrEqual(market === 'AAA_USDT' ? 6000 : 7000);
    }
  });

  // That an error which nobody catches ends it so as well: `exec.test.ts`.
  test('of a promise that nobody handles, it exits 70 and leaves the timers to fire', async (context) => {
    const guarding = { markets: ['AAA_USDT'], timeoutSeconds: 5, canSabotage: true };
    const { exchange, daemon } = await guard(context, guarding);
    daemon.sabotage({ kind: 'reject' });
    expect(await daemon.exit()).toMatchObject({ code: 70 });
    expect(daemon.logged('crashed')).toMatchObject([{ level: 'fatal' }]);
    const { atMs } = await exchange.event('order-cancelled', 8000);
    const events = await exchange.events();
    expect(ofKind(events, 'timer-deleted')).toEqual([]);
    expect(atMs - (renewalsOf(events, 'AAA_USDT').at(-1) ?? 0)).toBeLessThanOrEqual(6000);
  });
});
