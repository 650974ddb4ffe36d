import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { run } from '../cli/stage.ts';
import { stageFor } from './harness.ts';
import { type Heard, serve } from './http-server.ts';

const TELEGRAM = '/bot123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11/sendMessage?chat_id=';
const SLACK = '/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX';
const CHECK = '/5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278';

/** What the Bot API, an incoming webhook and healthchecks.io answer, which takes no ping of another check with a 200. */
function answerOf(path: string): readonly [status: number, body: string] {
  if (path.startsWith('/services')) return [200, 'ok'];
  if (!path.startsWith('/bot')) return [200, path === CHECK ? 'OK' : 'OK (not found)'];
  if (path.endsWith('=nobody')) return [400, '{"ok":false,"description":"Bad Request: chat not found"}'];
  return [200, '{"ok":true,"result":{"message_id":1,"date":1}}'];
}

/** Serves them all; `notify --test` with these addresses and this format. */
async function play(context: TestContext) {
  const { directory } = stageFor(context);
  const heard: Heard[] = [];
  const base = await serve(context, (one, response) => {
    heard.push(one);
    const [status, body] = answerOf(one.path);
    response.writeHead(status).end(body);
  });
  const file = (name: string, text: string) => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const attempt = async (format: string, url: string | null, pingUrl: string | null = null) => {
    const notify = {
      name: 'R&D <main>',
      format,
      ...(url === null ? {} : { urlFile: file('url', base + url) }),
      ...(pingUrl === null ? {} : { pingUrlFile: file('ping', base + pingUrl) }),
    };
    const exchange = { baseUrls: ['http://127.0.0.1:9'] };
    const content = { exchange, markets: ['BTC_USDT'], liveness: { mode: 'none' }, notify };
    const config = file('killswitchd.json', JSON.stringify(content));
    const env = { KILLSWITCHD_API_KEY: 'demo-key', KILLSWITCHD_API_SECRET: 'demo-secret' };
    const { code, out, err } = await run(['notify', '--test', '--config', config], { env });
    return [code, ...out, ...err];
  };
  return { heard, attempt };
}

test.for([
  ['telegram', `${TELEGRAM}-1001234567890`, /^🟢 R&D <main>: This is a test\. .* \(\d{4}-.*Z\)$/],
  // There `&`, `<` and `>` are read as commands.
  ['slack', SLACK, /^🟢 R&amp;D &lt;main&gt;: This is a test\. [^&<>]* \(\d{4}-.*Z\)$/],
] as const)('%s is posted a text and nothing else, as JSON, beside a ping', async (service, context) => {
  const [format, url, text] = service;
  const { heard, attempt } = await play(context);
  expect(await attempt(format, url, CHECK)).toEqual([
    0,
    'Message: delivered, HTTP 200.',
    'Ping: delivered, HTTP 200.',
  ]);
  const headers = expect.objectContaining({ 'content-type': 'application/json' });
  const [message] = heard.filter(({ path }) => path !== CHECK);
  expect(message).toEqual({ method: 'POST', path: url, headers, body: expect.any(String) });
  expect(JSON.parse(message?.body ?? '')).toEqual({ text: expect.stringMatching(text) });
  expect(heard.find(({ path }) => path === CHECK)).toMatchObject({ method: 'GET', body: '' });
});

test('a message to no chat, and a ping for no check of healthchecks.io, are seen to be refused', async (context) => {
  const { attempt } = await play(context);
  const refused = ['Message: not delivered, HTTP 400.', 'Ping: not delivered, HTTP 200 OK (not found).'];
  expect(await attempt('telegram', `${TELEGRAM}nobody`, CHECK.replace('5', '6'))).toEqual([69, ...refused]);
  expect(await attempt('json', null, CHECK.replace('5', '6'))).toEqual([69, refused[1]]);
  const [code, told] = await attempt('telegram', TELEGRAM.replace(/\?.*/, ''));
  expect([code, told]).toEqual([78, expect.stringContaining('?chat_id=')]);
});
