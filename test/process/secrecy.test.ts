import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import type { DaemonProcess } from './daemon.ts';
import { stageFor } from './harness.ts';
import { serve } from './http-server.ts';
import { eventually, sleep } from './program.ts';
import { everythingSaidBy, shownIn } from './secrets.ts';

const SECRET = 'W4-the.secret_of+this/test=0123456789';

/** Everything that a daemon shows of itself. */
async function everythingShownBy(daemon: DaemonProcess): Promise<string> {
  const commandLine = execFileSync('ps', ['-ww', '-o', 'args=', '-p', String(daemon.pid)], {
    encoding: 'utf8',
  });
  return `${commandLine}${await everythingSaidBy(daemon)}`;
}

describe.concurrent('nothing shows', { timeout: 60_000 }, () => {
  test('the API secret, in a run with failures of every kind', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange({ secret: SECRET });
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'].map((market) => ({ market, timeoutSeconds: 5 })),
      secret: SECRET,
      config: { log: { level: 'debug' }, ping: { everySeconds: 1 } },
    });
    await daemon.ready();
    const once = { count: 1, match: { operation: 'kill-switch' } };
    await exchange.addFaults(
      { kind: 'garbage', ...once },
      { kind: 'cut-off', ...once },
      { kind: 'oversize', ...once },
      { kind: 'wrong-shape', ...once },
      { kind: 'status', status: 500, body: 'html', ...once },
      { kind: 'reset', when: 'after', ...once },
      { kind: 'redirect', ...once },
      { kind: 'stale-nonce', ...once },
      { kind: 'throttle', ...once },
      { kind: 'hang', mode: 'drop', ms: 1000, ...once },
    );
    await sleep(4000);
    await exchange.addFaults({ kind: 'unauthorised' });
    // Its turn comes when every fault before it has had its own.
    await eventually('a refused key', 20_000, () => daemon.logged('unauthorised')[0] ?? null);
    const shown = await everythingShownBy(daemon);
    daemon.signal('SIGTERM');
    await daemon.exit();
    expect(daemon.logged('attempt-failed').length).toBeGreaterThan(8);
    expect(shownIn(shown + daemon.stdout() + daemon.stderr(), [SECRET])).toEqual([]);
  });

  test('the key or a signature, even when the exchange repeats every header and body in its answer', async (context) => {
    const stage = stageFor(context);
    const sent: string[] = [];
    let answers = 0;
    const echo = await serve(context, ({ method, headers, body }, response) => {
      for (const name of ['x-txc-apikey', 'x-txc-signature', 'x-txc-payload'])
        if (typeof headers[name] === 'string') sent.push(headers[name]);
      const message = `${JSON.stringify(headers)} ${body}`;
      if (method === 'POST') answers += 1;
      response.writeHead(answers <= 3 ? 500 : 400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ code: 9, message, errors: { market: [message] } }));
    });
    const daemon = await stage.daemon({
      exchange: echo,
      markets: [{ market: 'AAA_USDT', timeoutSeconds: 5 }],
      secret: SECRET,
      config: { log: { level: 'debug' } },
    });
    await eventually('some failures', 15_000, () => daemon.logged('attempt-failed')[2] ?? null);
    const shown = await everythingShownBy(daemon);
    expect(sent.length).toBeGreaterThan(3);
    expect([SECRET, ...sent].filter((text) => shown.includes(text))).toEqual([]);
  });
});
