import { describe, expect, test } from 'vitest';
import { codeOf, dial, open, refusal, refusalOf, TCP } from './control-fixture.ts';

const TOKEN = 'correct-horse-battery-stäple';
const WRONG = 'authorization: Bearer wrong\r\nconnection: keep-alive\r\n';
/** A text as a header carries it: its bytes, one character each. */
const latin = (text: string) => Buffer.from(text).toString('latin1');

test('a Unix socket wants no Host header and no token: the permissions of the file decide', async () => {
  const { ask } = await open({ bots: () => ['main'] }, undefined, () => TOKEN);
  for (const host of ['localhost', 'x', 'evil.example:80', '10.0.0.1', '']) {
    const { status, body } = await ask('/v1/beat', { headers: { host } });
    expect([status, body], host).toEqual([200, expect.objectContaining({ armed: true })]);
  }
});

describe('over loopback', () => {
  test.each(['evil.example', 'localhost.evil.example:80', '192.168.1.5:80', '127.0.0.2', '', 'localhost:x'])(
    'the Host header %s is refused',
    async (host) => {
      const { ask, spy } = await open({}, TCP, () => TOKEN);
      const headers = { host, authorization: `Bearer ${TOKEN}` };
      const reply = await ask('/v1/trip', { headers });
      expect(refusalOf(reply, spy)).toEqual(refusal('wrong_host'));
    },
  );

  test('the Host header of this host is good, with any port', async () => {
    const { ask } = await open({}, TCP);
    for (const host of ['localhost', 'LOCALHOST:1', '127.0.0.1:17478', '[::1]:17478', '[::1]'])
      expect((await ask('/v1/trip', { headers: { host } })).status, host).toBe(200);
  });

  test('without the very token nobody is let in where one is configured, and none is repeated', async () => {
    const { ask, calls } = await open({}, TCP, () => TOKEN);
    const nearly = [TOKEN.slice(0, -1), `x${TOKEN.slice(1)}`, `${TOKEN.slice(0, -1)}x`, `${TOKEN}x`];
    const wrong = [...nearly, TOKEN.toUpperCase(), `${TOKEN} `.repeat(2), 'wrong', 'null', ''].map(
      (token) => `Bearer ${latin(token)}`,
    );
    const basic = `Basic ${Buffer.from(`:${TOKEN}`).toString('base64')}`;
    for (const authorization of [undefined, '', 'Bearer', basic, ...wrong]) {
      const headers = authorization === undefined ? {} : { authorization };
      for (const path of ['/v1/trip', '/v1/nothing']) {
        const reply = await ask(path, { headers });
        expect([reply.status, codeOf(reply)], authorization).toEqual([401, 'unauthorised']);
        expect(reply.headers['www-authenticate']).toMatch(/^Bearer realm="killswitchd"/);
        expect(reply.text).not.toContain('correct');
        if (authorization !== undefined && authorization.length > 10)
          expect(reply.text + JSON.stringify(reply.headers)).not.toContain(authorization.slice(7));
      }
    }
    expect(calls).toEqual([]);
  });

  test('the right token is good, and the one that was read last counts', async () => {
    let token = TOKEN;
    const { ask, calls } = await open({}, TCP, () => token);
    const headers = { authorization: `bearer ${latin(TOKEN)}` };
    expect((await ask('/v1/trip', { headers })).status).toBe(200);
    token = 'another';
    expect((await ask('/v1/trip', { headers })).status).toBe(401);
    expect((await ask('/v1/trip', { headers: { authorization: 'Bearer another' } })).status).toBe(200);
    expect(calls).toHaveLength(2);
  });

  test('a token file that holds nothing, or cannot be read, lets nobody in', async () => {
    const empty = await open({}, TCP, () => '');
    for (const headers of [{}, { authorization: 'Bearer ' }, { authorization: 'Bearer x' }])
      expect((await empty.ask('/v1/trip', { headers })).status).toBe(401);
    const broken = await open({}, TCP, () => {
      throw new Error('no such file');
    });
    expect((await broken.ask('/v1/trip')).status).toBe(500);
    expect([...empty.calls, ...broken.calls]).toEqual([]);
  });

  test('a request without a Host header is refused, on a Unix socket it is not', async () => {
    const { address, calls } = await open({}, TCP);
    for (const version of ['1.0', '1.1']) {
      const socket = dial(address);
      socket.write(`POST /v1/trip HTTP/${version}\r\n\r\n`);
      const heard = await new Promise((resolve) => socket.once('data', (data) => resolve(String(data))));
      expect(heard).toMatch(/^HTTP\/1.1 421 /);
    }
    expect(calls).toEqual([]);
  });
});

describe('over an address that other hosts reach', () => {
  const name = (authorization?: string) => ({
    headers: { host: 'killswitchd:17478', ...(authorization === undefined ? {} : { authorization }) },
  });

  test('any Host header is good with the token, and none without', async () => {
    const { ask, calls } = await open({}, '0.0.0.0:0', () => TOKEN);
    expect((await ask('/v1/trip', name())).status).toBe(401);
    expect((await ask('/v1/trip', name(`Bearer ${latin(TOKEN)}x`))).status).toBe(401);
    expect(calls).toEqual([]);
    expect((await ask('/v1/trip', name(`Bearer ${latin(TOKEN)}`))).status).toBe(200);
  });

  test.each([
    ['has no token', 'POST /v1/beat HTTP/1.1\r\nhost: x\r\n\r\n'],
    ['asks for a path that cannot be read', 'POST /%zz HTTP/1.1\r\nhost: x\r\n\r\n'],
    ['never ends its request', 'POST /v1/beat HTTP/1.1\r\nhost: '],
    [
      'shows a wrong token and no body',
      `POST /v1/beat HTTP/1.1\r\nhost: x\r\n${WRONG}content-length: 9\r\n\r\n`,
    ],
    ['expects what there is not', `POST /v1/beat HTTP/1.1\r\nhost: x\r\nexpect: it\r\n${WRONG}\r\n`],
  ])('whoever %s keeps no place from those with the token', async (_, said) => {
    const { address, ask } = await open({ bots: () => ['main'] }, '0.0.0.0:0', () => TOKEN);
    const strangers = Array.from({ length: 300 }, () => dial(address));
    for (const stranger of strangers) stranger.write(said);
    await new Promise((resolve) => {
      setTimeout(resolve, 500);
    });
    const beat = await ask('/v1/beat', name(`Bearer ${latin(TOKEN)}`));
    expect(beat.status).toBe(200);
  });

  test('nobody is let in where there is no token, not even this host', async () => {
    const { ask, calls } = await open({}, '0.0.0.0:0');
    for (const authorization of [undefined, 'Bearer ', 'Bearer null'])
      expect((await ask('/v1/trip', name(authorization))).status).toBe(401);
    expect(calls).toEqual([]);
  });
});
