import { describe, expect, test } from 'vitest';
import { type Started, startProcess } from '../liveness/started.ts';
import { eventually, MAIN, sleep } from './program.ts';
import { onTerminal } from './terminal.ts';

const DEMO = [MAIN, 'demo'];
/** One after the other; each of them must come. */
const STORY = [
  /^ *\d+\.\d s +Exchange +BTC_USDT: timer armed\./m,
  /^ *\d+\.\d s +Bot +Process \d+ starts/m,
  /^ *\d+\.\d s +Bot +"armed: orders may go out"/m,
  /^ *\d+\.\d s +Exchange +4 orders of the bot rest/m,
  /^ *\d+\.\d s +Demo +Process \d+ stands still \(SIGSTOP\)/m,
  /^ *\d+\.\d s +Daemon +No sign of life for 5 s\. Nothing is renewed any more/m,
  /^ *\d+\.\d s +Exchange +(BTC|ETH)_USDT: THE TIMER RAN OUT, 2 orders cancelled\./m,
  /^ *\d+\.\d s +Demo +Measured: [\d.]+ s after the last sign of life; promised were at most [\d.]+ s\./m,
  /^ *\d+\.\d s +Demo +Process \d+ goes on \(SIGCONT\)/m,
  /^ *\d+\.\d s +Bot +"not armed: orders are held back"/m,
  /^ *\d+\.\d s +Bot +"armed: orders may go out"/m,
  /^ *\d+\.\d s +Demo +Process \d+ is asked to end \(SIGTERM\)/m,
  /^ *\d+\.\d s +Exchange +BTC_USDT: timer deleted, its 2 orders stay\./m,
  /^ *\d+\.\d s +Bot +"goodbye"/m,
  /^ *\d+\.\d s +Bot +Process \d+ has ended with exit code 0\./m,
];

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const botOf = (demo: Started) =>
  eventually('the start of the bot', 60_000, () => {
    const pid = /Process (\d+) starts/.exec(demo.output())?.[1];
    return pid === undefined ? null : Number(pid);
  });

const shows = (demo: Started, text: string) =>
  eventually(text, 60_000, () => (demo.output().includes(text) ? true : null));

describe.concurrent('demo', { timeout: 120_000 }, () => {
  test('tells the whole story in order in less than 90 s, without a terminal, and keeps its promise', async (context) => {
    const startedMs = performance.now();
    // What a user has set for an exchange of their own is not touched.
    const env = { KILLSWITCHD_BASE_URL: 'https://exchange.example', KILLSWITCHD_MARKETS: 'XRP_USDT' };
    const demo = startProcess(context, process.execPath, DEMO, env);
    const pid = await botOf(demo);
    expect(await demo.ended).toEqual([0, null]);
    expect(performance.now() - startedMs).toBeLessThan(90_000);
    const told = demo.output();
    let from = 0;
    for (const line of STORY) {
      const found = line.exec(told.slice(from));
      expect(found, `${line} in\n${told.slice(from)}`).not.toBeNull();
      from += (found?.index ?? 0) + (found?.[0].length ?? 0);
    }
    const [, measured, promised] = /Measured: ([\d.]+) s .* at most ([\d.]+) s/.exec(told) ?? [];
    expect(Number(measured)).toBeGreaterThan(0);
    expect(Number(measured)).toBeLessThanOrEqual(Number(promised));
    const hosts = [...told.matchAll(/https?:\/\/([^:/\s]+)/g)].map(([, host]) => host);
    expect(new Set(hosts)).toEqual(new Set(['127.0.0.1']));
    expect(told).not.toContain('\u001b');
    expect(told).not.toContain('XRP_USDT');
    expect(isRunning(pid)).toBe(false);
  });

  test('draws on a terminal in place, and Ctrl-C ends it while its bot stands still', async (context) => {
    const terminal = onTerminal(context, [process.execPath, ...DEMO]);
    await eventually('a bot that stands still', 60_000, () =>
      terminal.shown().includes('(SIGSTOP)') ? true : null,
    );
    await sleep(1000);
    const pid = Number(/Process (\d+) starts/.exec(terminal.shown())?.[1]);
    expect(isRunning(pid)).toBe(true);
    const drawn = terminal.shown().split('\r\u001b[K');
    expect(drawn.filter((text) => /beat \d\.\d s ago/.test(text)).length).toBeGreaterThan(5);
    terminal.type('\u0003');
    expect(await terminal.ended).toBe(130);
    expect(isRunning(pid)).toBe(false);
  });

  test('ends at once by SIGTERM, however early that comes', async (context) => {
    const demo = startProcess(context, process.execPath, DEMO);
    await shows(demo, 'killswitchd demo');
    demo.signal('SIGTERM');
    expect(await demo.ended).toEqual([143, null]);
  });
});
