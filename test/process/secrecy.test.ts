import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { asker, type Reply } from './control.ts';
import { everythingSaidBy, shownIn } from './daemon.ts';
import { guard, stageFor } from './harness.ts';
import { type Heard, serve } from './http-server.ts';
import { endBy, eventually, sleep } from './program.ts';

const SECRET = 'W4-the.secret_of+this/test=0123456789';

test('nothing shows the API secret, in a run with failures of every kind, and where a request or the configuration holds it in a wrong place', async (context) => {
  const { exchange, daemon } = await guard(context, {
    exchange: { secret: SECRET },
    markets: ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'],
    timeoutSeconds: 5,
    secret: SECRET,
    control: true,
    config: { log: { level: 'debug' }, ping: { everySeconds: 1 }, shutdown: { budgetSeconds: 1 } },
  });
  const once = { count: 1, match: { operation: 'kill-switch' } };
  await exchange.addFaults(
    ...(
      ['garbage', 'cut-off', 'oversize', 'wrong-shape', 'redirect', 'stale-nonce', 'throttle'] as const
    ).map((kind) => ({ kind, ...once })),
    { kind: 'status', status: 500, body: 'html', ...once },
    { kind: 'reset', when: 'after', ...once },
    { kind: 'hang', mode: 'drop', ms: 1000, ...once },
    { kind: 'unauthorised' },
  );
  // Its turn comes when every fault before it has had its own.
  await eventually('a refused key', 20_000, () => daemon.logged('unauthorised')[0]);

  const ask = asker(context, daemon.socket);
  const replies: Reply[] = [];
  const encoded = encodeURIComponent(SECRET);
  for (const path of [`beat?bot=${encoded}`, `beat?${encoded}=1`, encoded])
    replies.push(await ask(`/v1/${path}`));
  for (const body of [{ markets: [SECRET] }, { [SECRET]: 1 }]) replies.push(await ask('/v1/trip', { body }));
  replies.push(await ask('/v1/log-level', { body: { level: SECRET } }));
  replies.push(await ask('/v1/trip', { headers: { 'content-type': SECRET }, body: '{}' }));
  // What the loader cannot know because the file is gone, the daemon still does.
  for (const [secret, wrong] of [
    [SECRET, { log: { level: SECRET } }],
    [SECRET, { markets: [SECRET] }],
    ['', { log: { level: SECRET } }],
  ] as const) {
    writeFileSync(daemon.secretFile, secret);
    daemon.configure(wrong);
    replies.push(await ask('/v1/reload'));
    expect(replies.at(-1)).toMatchObject({ status: 422, code: 'config_rejected' });
  }
  expect(replies.filter(({ status }) => status < 400)).toEqual([]);
  const texts = replies.map(({ text }) => text).join();
  expect(texts).toContain('[redacted]');

  const ps = ['-ww', '-o', 'args=', '-p', String(daemon.pid)];
  const shown = texts + execFileSync('ps', ps, { encoding: 'utf8' }) + (await everythingSaidBy(daemon));
  await endBy(daemon);
  expect(daemon.logged('attempt-failed').length).toBeGreaterThan(8);
  expect(shownIn(shown + daemon.stdout() + daemon.stderr(), [SECRET])).toEqual([]);
}, 60_000);

const KEY = 'K9-the.key_of+this/test=0123456789';

/** An exchange that repeats the key and the secret wherever an answer has room for a text. */
function repeat({ path, body }: Heard): string {
  if (path.endsWith('/ping')) return JSON.stringify({ code: 0, message: `${KEY} ${SECRET}`, errors: {} });
  const { market, timeout } = JSON.parse(body) as { market: string; timeout: string | null };
  const startTime = Math.floor(Date.now() / 1000);
  const cancellationTime = startTime + Number(timeout);
  const types = ['spot', SECRET, KEY, KEY.slice(0, 20), 'x'.repeat(60_000)];
  return JSON.stringify({ market, startTime, cancellationTime, types });
}

test('nothing shows key and secret where the exchange repeats them in a confirmation or to a ping, and no line grows with what it repeats', async (context) => {
  const stage = stageFor(context);
  const exchange = await serve(context, (heard, response) => response.end(repeat(heard)));
  const daemon = await stage.daemon({
    exchange,
    markets: ['AAA_USDT'],
    key: KEY,
    secret: SECRET,
    config: { ping: { everySeconds: 1 }, shutdown: { policy: 'keep' } },
  });
  const told = await eventually('the altered timer', 20_000, () => daemon.logged('altered')[0]);
  expect(told.msg).toContain('order types spot, (unknown) instead of spot, margin, futures');
  const page = await eventually('a ping with the answer', 20_000, async () => {
    const { body } = await daemon.get('/api/v1/status');
    return body.includes('expected [') ? body : null;
  });
  expect(page.length).toBeLessThan(20_000);
  // Nor the secret of before a rotation.
  writeFileSync(daemon.secretFile, 'the-secret-after-the-rotation\n');
  daemon.signal('SIGHUP');
  await eventually('the rotation', 5000, () => daemon.logged('secrets-changed')[0]);
  await sleep(1500);
  expect(shownIn(await everythingSaidBy(daemon), [SECRET, KEY, KEY.slice(0, 20)])).toEqual([]);
  for (const line of daemon.stdout().split('\n')) expect(line.length).toBeLessThan(3000);
}, 60_000);
