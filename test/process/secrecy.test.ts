import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { DaemonProcess } from './daemon.ts';
import { stageFor } from './harness.ts';
import { eventually, sleep } from './program.ts';

const SECRET = 'W4-the.secret_of+this/test=0123456789';

/** Everything that a daemon shows of itself. */
async function everythingShownBy(daemon: DaemonProcess): Promise<string> {
  const paths = ['/metrics', '/api/v1/status', '/', '/readyz?verbose', '/livez?verbose'];
  const pages = await Promise.all(paths.map(async (path) => (await daemon.get(path)).body));
  const commandLine =
    process.platform === 'linux'
      ? readFileSync(`/proc/${daemon.pid}/cmdline`, 'utf8')
      : execFileSync('ps', ['-o', 'args=', '-p', String(daemon.pid)], { encoding: 'utf8' });
  return [daemon.stdout(), daemon.stderr(), commandLine, ...pages].join('\n');
}

/** The secret as it is, and in the forms that a careless program would show it in. */
const formsOf = (text: string) => [
  text,
  encodeURIComponent(text),
  Buffer.from(text).toString('base64'),
  Buffer.from(text).toString('hex'),
];

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
    const shown = [await everythingShownBy(daemon)];
    daemon.signal('SIGTERM');
    await daemon.exit();
    shown.push(daemon.stdout(), daemon.stderr());
    expect(daemon.logged('attempt-failed').length).toBeGreaterThan(8);
    expect(formsOf(SECRET).filter((form) => shown.some((text) => text.includes(form)))).toEqual([]);
  });

  test('the key or a signature, even when the exchange repeats every header and body in its answer', {
    timeout: 60_000,
  }, async (context) => {
    const stage = stageFor(context);
    const sent: string[] = [];
    let answers = 0;
    const echo = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const {
          'x-txc-apikey': key,
          'x-txc-signature': signature,
          'x-txc-payload': payload,
        } = request.headers;
        for (const value of [key, signature, payload]) if (typeof value === 'string') sent.push(value);
        const message = `${JSON.stringify(request.headers)} ${Buffer.concat(chunks).toString()}`;
        const errors = { market: [message] };
        if (request.method === 'POST') answers += 1;
        response.writeHead(answers <= 3 ? 500 : 400, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ code: 9, message, errors }));
      });
    });
    await new Promise<void>((resolve) => {
      echo.listen(0, '127.0.0.1', resolve);
    });
    context.onTestFinished(() => {
      echo.close();
      echo.closeAllConnections();
    });
    const { port } = echo.address() as AddressInfo;
    const daemon = await stage.daemon({
      exchange: `http://127.0.0.1:${port}`,
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
