import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { writeFiles } from './daemon.ts';
import { PROCESS, runs } from './exec-play.ts';
import { guard, stageFor } from './harness.ts';
import { eventually, MAIN, sleep } from './program.ts';
import { longestGapMs, ofKind } from './simulated-exchange.ts';
import { onTerminal } from './terminal.ts';

/** It is sent the signal for the sabotage as well, and ends well when it is asked to. It says when it is ready for both. */
const BOT =
  "process.on('SIGUSR2', () => {}).on('SIGTERM', () => process.exit(0)); console.log('listens'); setInterval(() => {}, 1000)";
const MARKETS = ['AAA_USDT', 'BBB_USDT'];

describe('renewals go on, and a stop ends the process,', { timeout: 60_000 }, () => {
  test.concurrent('when every thread hangs in the kernel', async (context) => {
    const bot = [process.execPath, '-e', BOT];
    const config = { liveness: PROCESS };
    const { stage, exchange, daemon } = await guard(context, {
      timeoutSeconds: 5,
      canSabotage: true,
      bot,
      config,
    });
    await eventually('the bot', 10_000, () => (daemon.stdout().includes('listens') ? true : null));
    daemon.sabotage({ kind: 'hang-threads', pipe: join(stage.directory, 'pipe') });
    const fromMs = await exchange.nowMs();
    await sleep(3500);
    const toMs = await exchange.nowMs();
    const events = await exchange.events();
    expect(MARKETS.filter((market) => longestGapMs(events, market, fromMs, toMs) > 2500)).toEqual([]);
    daemon.signal('SIGTERM');
    expect(await daemon.exit(10_000)).toMatchObject({ code: 0 });
    const deleted = ofKind(await exchange.events(), 'timer-deleted').map(({ market }) => market);
    expect(deleted.toSorted()).toEqual(MARKETS);
  });

  test.concurrent('at once at a second signal, when every thread hangs and the exchange as well', async (context) => {
    const config = { shutdown: { budgetSeconds: 60 } };
    const { stage, exchange, daemon } = await guard(context, { canSabotage: true, config });
    daemon.sabotage({ kind: 'hang-threads', pipe: join(stage.directory, 'pipe') });
    await exchange.addFaults({ kind: 'hang', mode: 'drop' });
    daemon.signal('SIGTERM');
    await sleep(1100);
    expect(daemon.hasExited()).toBe(false);
    // A second SIGTERM would count by the clock of a daemon that is busy here.
    daemon.signal('SIGINT');
    expect(await daemon.exit(3000)).toMatchObject({ code: 75 });
    expect(daemon.stderr()).toContain('timers may still be armed');
  });

  test.concurrent('when the terminal that it writes to is stopped', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const { configFile, env } = writeFiles(stage.directory, {
      exchange: exchange.url,
      markets: MARKETS.map((market) => ({ market, timeoutSeconds: 5 })),
      config: { log: { level: 'debug' }, shutdown: { budgetSeconds: 3 } },
    });
    const terminal = onTerminal(context, [process.execPath, MAIN, 'run', '--config', configFile], env);
    await eventually('the timers', 15_000, () => (terminal.shown().includes('is armed') ? true : null));
    const children = readFileSync(`/proc/${terminal.pid}/task/${terminal.pid}/children`, 'utf8').trim();
    expect(children).toMatch(/^\d+$/);
    terminal.type('\u0013');
    const fromMs = await exchange.nowMs();
    await sleep(3000);
    const { length } = terminal.shown();
    await sleep(1500);
    expect(terminal.shown().length).toBe(length);
    const toMs = await exchange.nowMs();
    const events = await exchange.events();
    expect(MARKETS.filter((market) => longestGapMs(events, market, fromMs, toMs) > 3000)).toEqual([]);
    // The exchange goes away: the last words are for standard error, which is the same terminal.
    await exchange.addFaults({ kind: 'hang', mode: 'drop' });
    process.kill(Number(children), 'SIGTERM');
    await eventually('the end of the daemon', 8000, () => (runs(Number(children)) ? null : true));
  });
});

test.concurrent('clients that fill every listener do not take the descriptors of renewals', {
  timeout: 60_000,
}, async (context) => {
  const { exchange, daemon } = await guard(context, {
    prefix: ['prlimit', '--nofile=512:512'],
    timeoutSeconds: 5,
    control: true,
  });
  expect(daemon.logged('few-descriptors')).toHaveLength(1);
  const web = new URL(await daemon.web());
  const sockets: Socket[] = [];
  let over = false;
  context.onTestFinished(() => {
    over = true;
    for (const socket of sockets) socket.destroy();
  });
  const keepOpen = (open: () => Socket): void => {
    if (over) return;
    const socket = open();
    sockets.push(socket);
    socket.on('error', () => undefined);
    // Asks for something and does not read the answer, and comes back whenever it is sent away.
    socket.write('GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n');
    socket.once('close', () => setTimeout(() => keepOpen(open), 200));
  };
  for (let client = 0; client < 600; client += 1) {
    keepOpen(() => connect(Number(web.port), web.hostname));
    keepOpen(() => connect(daemon.socket.replace('unix:', '')));
  }
  const fromMs = await exchange.nowMs();
  await sleep(2000);
  // New connections are needed.
  await exchange.addFaults({ kind: 'reset', when: 'before', count: 6 });
  await sleep(4500);
  const toMs = await exchange.nowMs();
  const events = await exchange.events();
  expect(ofKind(events, 'timer-fired')).toEqual([]);
  expect(MARKETS.filter((market) => longestGapMs(events, market, fromMs, toMs) > 3500)).toEqual([]);
});
