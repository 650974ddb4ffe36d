import { expect, test } from 'vitest';
import { openExchange } from './open.ts';
import { serveGate, serveHttp, serveTls } from './servers.ts';

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

test('a base address that is not configured settles as not sent', async () => {
  const server = await serveHttp((_request, response) => response.end('[]'));
  const { sync, ping } = openExchange(server);
  expect(await sync({ base: 7 })).toMatchObject({ kind: 'transient', maybeApplied: false });
  expect(await ping(1_000, 7)).toMatchObject({ ok: false });
});
