import { request } from 'node:http';
import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { takesGzip } from '../../src/operator/accept-encoding.ts';
import type { Web } from '../../src/operator/web.ts';
import { ask, start } from './web-fixture.ts';

const PAGE = Array.from({ length: 60 }, (_, index) => `metric_${index} 1.5\n`.repeat(3000));
const GZIP = { 'accept-encoding': 'gzip' };

/** The bytes of the answer as they came. */
function read(web: Web, headers: Record<string, string> = GZIP): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${web.addresses[0]}/metrics`, { headers, agent: false }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', () => resolve(Buffer.concat(chunks)));
    });
    outgoing.on('error', reject).end();
  });
}

describe('the encoding of the metrics', () => {
  test.each([
    ['gzip', true],
    ['GZIP', true],
    ['x-gzip', true],
    ['*', true],
    ['gzip, deflate, br, zstd', true],
    ['deflate, gzip;q=0.5', true],
    ['identity;q=0.5, gzip; q=1.0', true],
    ['br;q=1.0, *;q=0.1', true],
    ['identity;q=0, *', true],
    [undefined, false],
    ['', false],
    ['identity', false],
    ['br, zstd', false],
    ['gzip;q=0', false],
    ['gzip;q=0.000, *', false],
    ['*;q=0', false],
    ['gzip;q=0.2, identity;q=0.8', false],
    ['gzip;q=much', false],
    ['gzipped', false],
  ])('Accept-Encoding: %s', async (header, gzip) => {
    expect(takesGzip(header)).toBe(gzip);
    const headers = header === undefined ? {} : { 'accept-encoding': header };
    const reply = await ask(await start(), '/metrics', 'GET', headers);
    expect(reply.headers['content-encoding']).toBe(gzip ? 'gzip' : undefined);
    expect(reply.headers['vary']).toBe('accept-encoding');
  });

  test('gzip and text say the same', async () => {
    const web = await start(undefined, undefined, PAGE);
    const [gzip, text] = [await read(web), await read(web, {})];
    expect(text.toString()).toBe(PAGE.join(''));
    expect(gunzipSync(gzip).toString()).toBe(PAGE.join(''));
    expect(gzip.length).toBeLessThan(text.length);
  });

  test('HEAD has the headers that GET has', async () => {
    const web = await start();
    const [get, head] = [await ask(web, '/metrics', 'GET', GZIP), await ask(web, '/metrics', 'HEAD', GZIP)];
    for (const name of ['content-type', 'content-encoding', 'vary'])
      expect(head.headers[name], name).toBe(get.headers[name]);
    expect(head.body).toBe('');
  });

  test('readers at the same time each get the whole page, beside others who leave in the middle of it', async () => {
    const web = await start(undefined, undefined, PAGE);
    const leave = (encoding: string) => {
      const socket = connect(Number(new URL(web.addresses[0] ?? '').port), '127.0.0.1');
      socket.on('error', () => {});
      socket.once('data', () => socket.destroy());
      socket.write(`GET /metrics HTTP/1.1\r\nhost: localhost\r\naccept-encoding: ${encoding}\r\n\r\n`);
      return new Promise((resolve) => socket.once('close', resolve));
    };
    for (let round = 0; round < 10; round += 1) {
      const left = ['gzip', 'identity', 'gzip', 'identity'].map(leave);
      const pages = await Promise.all([read(web), read(web, {}), read(web), read(web, {}), ...left]);
      const texts = pages.slice(0, 4).map((page, index) => {
        return index % 2 === 0 ? gunzipSync(page as Buffer) : (page as Buffer);
      });
      for (const text of texts) expect(text.toString() === PAGE.join('')).toBe(true);
    }
  });
});
