import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { errorOf, openClient } from './open.ts';
import { TIMER } from './samples.ts';
import { serveHttp, serveSilence } from './servers.ts';

const ARM = { market: 'BTC_USDT', timeoutSeconds: 60 } as const;

test('a connection that is refused rejects with its cause, and nothing was applied', async () => {
  const failed = openClient('http://127.0.0.1:1').syncKillSwitch(ARM);
  await expect(failed).rejects.toMatchObject({
    name: 'NetworkError',
    maybeApplied: false,
    cause: { code: 'ECONNREFUSED' },
  });
});

test('a signal withdraws a timer that is on its way: whether it was made is unknown', async () => {
  const server = await serveSilence();
  const stopping = new AbortController();
  const failed = errorOf(openClient(server.base).syncKillSwitch(ARM, { signal: stopping.signal }));
  await expect.poll(() => server.paths.length).toBe(1);
  stopping.abort(new Error('enough'));
  expect(await failed).toMatchObject({ reason: 'aborted', maybeApplied: true, cause: { message: 'enough' } });
});

test('a program that used the client and closed it ends by itself', async () => {
  const server = await serveHttp((request, response) => {
    response.end(request.method === 'GET' ? '["pong"]' : JSON.stringify(TIMER));
  });
  const program = `
    const { createClient } = await import(${JSON.stringify(new URL('../../src/exchange/client.ts', import.meta.url).href)});
    const { createSystemClock } = await import(${JSON.stringify(new URL('../../src/clock.ts', import.meta.url).href)});
    const client = createClient({ bases: ['${server.base}'], credentials: () => ({ key: 'k', secret: 's' }),
      nonce: 'increasing', clock: createSystemClock() });
    await client.ping();
    await client.syncKillSwitch({ market: 'BTC_USDT', timeoutSeconds: 60 });
    await client.close();
    console.log('closed');`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
    timeout: 8_000,
  });
  expect(stdout).toBe('closed\n');
});
