import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { eventually } from './program.ts';
import { everythingSaidBy, shownIn } from './secrets.ts';

const SECRET = 'W4-the.secret_of+this/test=0123456789';

test('nothing shows the API secret, in a run with failures of every kind', async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange({ secret: SECRET });
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'].map((market) => ({ market, timeoutSeconds: 5 })),
    secret: SECRET,
    config: { log: { level: 'debug' }, ping: { everySeconds: 1 }, shutdown: { budgetSeconds: 1 } },
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
  await exchange.addFaults({ kind: 'unauthorised' });
  // Its turn comes when every fault before it has had its own.
  await eventually('a refused key', 20_000, () => daemon.logged('unauthorised')[0] ?? null);
  const ps = ['-ww', '-o', 'args=', '-p', String(daemon.pid)];
  const shown = execFileSync('ps', ps, { encoding: 'utf8' }) + (await everythingSaidBy(daemon));
  daemon.signal('SIGTERM');
  await daemon.exit();
  expect(daemon.logged('attempt-failed').length).toBeGreaterThan(8);
  expect(shownIn(shown + daemon.stdout() + daemon.stderr(), [SECRET])).toEqual([]);
}, 60_000);
