import { delimiter, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { read } from '../docs/documents.ts';
import { startProcess } from '../liveness/started.ts';
import { runs } from './exec-play.ts';
import { endBy, eventually, MAIN, ROOT, runProgram, sleep } from './program.ts';
import { exchangeAt, ofKind, renewalsOf } from './simulated-exchange.ts';
import { onTerminal } from './terminal.ts';

const DEMO = [MAIN, 'demo'];
/** One after the other; each of them must come. */
const STORY = [
  ['Exchange', 'BTC_USDT: timer armed\\.'],
  ['Bot', 'Process \\d+ starts'],
  ['Bot', '"armed: orders may go out"'],
  ['Exchange', '4 orders of the bot rest'],
  ['Demo', 'Process \\d+ stands still \\(SIGSTOP\\)'],
  ['Daemon', 'No sign of life for 5 s\\. Nothing is renewed any more'],
  ['Exchange', '(BTC|ETH)_USDT: THE TIMER RAN OUT, 2 orders cancelled\\.'],
  ['Demo', 'Measured: [\\d.]+ s after the last sign of life; promised were at most [\\d.]+ s\\.'],
  ['Demo', 'Process \\d+ goes on \\(SIGCONT\\)'],
  ['Bot', '"not armed: orders are held back"'],
  ['Bot', '"armed: orders may go out"'],
  ['Demo', 'Process \\d+ is asked to end \\(SIGTERM\\)'],
  ['Exchange', 'BTC_USDT: timer deleted, its 2 orders stay\\.'],
  ['Bot', '"goodbye"'],
  ['Bot', 'Process \\d+ has ended with exit code 0\\.'],
] as const;

describe.concurrent('demo', { timeout: 120_000 }, () => {
  test('tells the whole story in order in less than 90 s, without a terminal, and keeps its promise', async (context) => {
    const startedMs = performance.now();
    // What a user has set for an exchange of their own is not touched.
    const env = { KILLSWITCHD_BASE_URL: 'https://exchange.example', KILLSWITCHD_MARKETS: 'XRP_USDT' };
    const demo = startProcess(context, process.execPath, DEMO, env);
    expect(await demo.ended).toEqual([0, null]);
    expect(performance.now() - startedMs).toBeLessThan(90_000);
    const told = demo.output();
    let rest = told;
    for (const [who, what] of STORY) {
      const found = new RegExp(`^ *\\d+\\.\\d s +${who} +${what}`, 'm').exec(rest);
      expect(found, `${who}: ${what} in\n${rest}`).not.toBeNull();
      rest = rest.slice((found?.index ?? 0) + (found?.[0].length ?? 0));
    }
    const [, measured, promised] = /Measured: ([\d.]+) s .* at most ([\d.]+) s/.exec(told) ?? [];
    expect(Number(measured)).toBeGreaterThan(0);
    expect(Number(measured)).toBeLessThanOrEqual(Number(promised));
    const hosts = [...told.matchAll(/https?:\/\/([^:/\s]+)/g)].map(([, host]) => host);
    expect(new Set(hosts)).toEqual(new Set(['127.0.0.1']));
    expect(told).not.toContain('\u001b');
    expect(told).not.toContain('XRP_USDT');
    expect(runs(Number(/Process (\d+) starts/.exec(told)?.[1]))).toBe(false);
  });

  test('draws on a terminal in place, and Ctrl-C ends it while its bot stands still', async (context) => {
    const terminal = onTerminal(context, [process.execPath, ...DEMO]);
    await eventually('a bot that stands still', 60_000, () => terminal.shown().includes('(SIGSTOP)'));
    await sleep(1000);
    const pid = Number(/Process (\d+) starts/.exec(terminal.shown())?.[1]);
    expect(runs(pid)).toBe(true);
    const drawn = terminal.shown().split('\r\u001b[K');
    expect(drawn.filter((text) => /beat \d\.\d s ago/.test(text)).length).toBeGreaterThan(5);
    terminal.type('\u0003');
    expect(await terminal.ended).toBe(130);
    expect(runs(pid)).toBe(false);
  });

  test('ends at once by SIGTERM, however early that comes', async (context) => {
    const demo = startProcess(context, process.execPath, DEMO);
    await eventually('its name', 60_000, () => demo.output().includes('killswitchd demo'));
    demo.signal('SIGTERM');
    expect(await demo.ended).toEqual([143, null]);
  });
});

// That a start takes no longer than 2 s is measured by `npm run bench`.
test.concurrent('npm start arms three timers, renews them, cancels nothing, and Ctrl-C ends the bot and takes them back within 3 s', {
  timeout: 60_000,
}, async (context) => {
  const { scripts } = JSON.parse(read('package.json')) as {
    scripts: { start: string };
  };
  const path = [join(ROOT, 'node_modules', '.bin'), process.env['PATH'] ?? ''].join(delimiter);
  const env = { PATH: path, KILLSWITCHD_WEB_LISTEN: '127.0.0.1:0' };
  const program = runProgram(scripts.start.split(' ').slice(3), { env });
  context.onTestFinished(() => program.signal('SIGKILL'));
  // The bot has standard output for itself: the daemon's log is on the other one.
  const said = (pattern: RegExp) =>
    eventually(`${pattern}`, 20_000, () => pattern.exec(program.stderr())?.[1]);
  const exchange = exchangeAt(await said(/embedded simulated exchange (http:\S+?)\.?\s/), () =>
    program.exit(),
  );
  const web = await said(/Status page, health and metrics: (http:\S+)/);
  const isReady = async () => (await fetch(`${web}/readyz`)).status === 200;
  await eventually('/readyz', 20_000, isReady);
  const ofMarket = { BTC_USDT: 30, ETH_USDT: 10, SOL_USDT: 60 };
  const armed = ofKind(await exchange.events(), 'timer-armed');
  expect(Object.fromEntries(armed.map((one) => [one.market, one.timeoutSeconds]))).toEqual(ofMarket);
  // Every market is renewed at least twice in it.
  await sleep(12_500);
  expect(await isReady()).toBe(true);
  const events = await exchange.events();
  for (const market of Object.keys(ofMarket))
    expect(renewalsOf(events, market).length, market).toBeGreaterThanOrEqual(3);
  expect(ofKind(events, 'order-placed').length).toBeGreaterThan(0);
  expect([...ofKind(events, 'timer-fired'), ...ofKind(events, 'order-cancelled')]).toEqual([]);
  expect(program.stdout()).toBe('armed: orders may go out\n');

  const pressedMs = performance.now();
  expect(await endBy(program, 'SIGINT')).toBe(0);
  // The bot ends at the end of its round, which takes a second.
  expect(performance.now() - pressedMs).toBeLessThanOrEqual(3000);
  expect(program.stdout()).toBe('armed: orders may go out\ngoodbye\n');
  for (const market of Object.keys(ofMarket))
    expect(program.stderr()).toMatch(new RegExp(`Exchange: .*${market}: timer deleted; its orders stay`));
});
