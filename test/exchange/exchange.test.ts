import { expect, test } from 'vitest';
import { KEY, openExchange, SECRET } from './open.ts';
import { serveGate, serveHttp, serveReply, serveSilence, serveTls } from './servers.ts';

test('a request is signed, and asks whether it may leave, once its connection is open: none overtakes its nonce', async () => {
  const nonces: number[] = [];
  const server = await serveTls((_request, response, body) => {
    nonces.push(Number((JSON.parse(body) as { nonce: string }).nonce));
    response.end('[]');
  });
  const gate = await serveGate(server);
  const { sync } = openExchange({ base: `https://127.0.0.1:${gate.port}` }, { ca: server.ca });
  const remove = { timeoutSeconds: null };
  await sync(remove);
  gate.hold();
  let asked = 0;
  const opening = sync({
    ...remove,
    fresh: true,
    mayWrite: () => {
      asked += 1;
      return true;
    },
  });
  expect(await sync(remove)).toEqual({ kind: 'deleted' });
  expect([nonces.length, asked]).toEqual([2, 0]);
  gate.release();
  expect(await opening).toEqual({ kind: 'deleted' });
  expect([nonces.length, asked]).toEqual([3, 1]);
  expect(nonces).toEqual(nonces.toSorted((one, other) => one - other));
});

test('a hung exchange ends when the core gives up: a time-out with unknown outcome', async () => {
  const server = await serveSilence();
  const { start } = openExchange(server);
  const { outcome, cancel } = start();
  await expect.poll(() => server.paths.length).toBe(1);
  cancel();
  expect(await outcome).toMatchObject({ kind: 'transient', reason: 'timeout', maybeApplied: true });
});

test('a base address that is not configured settles as not sent', async () => {
  const server = await serveReply([]);
  const { sync, ping } = openExchange(server);
  expect(await sync({ base: 7 })).toMatchObject({ kind: 'transient', maybeApplied: false });
  expect(await ping(1_000, 7)).toMatchObject({ ok: false });
});

test('a server that repeats key, payload and signature does not get them into the outcome', async () => {
  const sent: string[] = [KEY, SECRET];
  const server = await serveHttp((request, response) => {
    const named = ['x-txc-apikey', 'x-txc-payload', 'x-txc-signature'];
    const [key = '', payload = '', signature = ''] = named.map((name) => String(request.headers[name]));
    sent.push(payload, signature);
    response.writeHead(400);
    const message = `rejected ${key} ${payload} ${signature}`;
    response.end(JSON.stringify({ code: 9, message, errors: { [key]: [payload] } }));
  });
  const { sync } = openExchange(server);
  const outcome = JSON.stringify(await sync());
  expect(outcome).toContain('rejected [redacted]');
  for (const secret of sent) expect(outcome).not.toContain(secret);
});
