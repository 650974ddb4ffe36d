import { writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { run } from '../cli/stage.ts';
import { stageFor } from './harness.ts';
import { serve } from './http-server.ts';

/** What a service answers. */
type Answer = readonly [status: number, body: string];
interface Asked {
  readonly method: string;
  readonly url: URL;
  readonly type: IncomingMessage['headers']['content-type'];
  readonly body: string;
}

/** As the Bot API does: parameters from the query and from a JSON body alike, and a text of 1 to 4096 characters. */
function telegram({ method, url, type, body }: Asked): Answer {
  const refused = (code: number, description: string): Answer => [
    code,
    JSON.stringify({ ok: false, error_code: code, description }),
  ];
  if (!['GET', 'POST'].includes(method)) return refused(501, 'Not Implemented');
  if (url.pathname !== TELEGRAM) return refused(404, 'Not Found');
  if (type !== 'application/json') return refused(400, 'Bad Request: message text is empty');
  const given: Record<string, unknown> = { ...Object.fromEntries(url.searchParams), ...JSON.parse(body) };
  if (!/^(-?\d+|@\w+)$/.test(String(given['chat_id']))) return refused(400, 'Bad Request: chat_id is empty');
  const text = given['text'];
  if (typeof text !== 'string' || text === '') return refused(400, 'Bad Request: message text is empty');
  if (text.length > 4096) return refused(400, 'Bad Request: message is too long');
  return [200, JSON.stringify({ ok: true, result: { message_id: 1, date: 1, text } })];
}

/** As an incoming webhook does; `&`, `<` and `>` have to be escaped, or they are read as commands. */
function slack({ method, url, type, body }: Asked): Answer {
  if (method !== 'POST') return [400, 'invalid_payload'];
  if (url.pathname !== SLACK) return [404, 'no_service'];
  if (type?.startsWith('application/json') !== true) return [400, 'invalid_payload'];
  const { text } = JSON.parse(body) as { text?: unknown };
  if (typeof text !== 'string' || text === '') return [400, 'no_text'];
  if (/[<>]|&(?!amp;|lt;|gt;)/.test(text)) return [400, 'not escaped'];
  return [200, 'ok'];
}

/** As healthchecks.io does, which has answered a ping that it does not take with a 200. */
function healthchecks({ method, url }: Asked): Answer {
  if (!['HEAD', 'GET', 'POST'].includes(method)) return [405, ''];
  if (!/^\/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(url.pathname)) return [400, 'invalid url format'];
  return [200, url.pathname === CHECK ? 'OK' : 'OK (not found)'];
}

const TELEGRAM = '/bot123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11/sendMessage';
const SLACK = '/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX';
const CHECK = '/5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278';

function serviceAt(path: string): (asked: Asked) => Answer {
  if (path.startsWith('/bot')) return telegram;
  return path.startsWith('/services') ? slack : healthchecks;
}

/** Serves them all, by the beginning of the path; `notify --test` with these addresses and this format. */
async function play(context: TestContext) {
  const { directory } = stageFor(context);
  const answers: Answer[] = [];
  const bodies: string[] = [];
  const base = await serve(context, ({ method, path, headers, body }, response) => {
    const url = new URL(path, 'http://service');
    const answer = serviceAt(url.pathname)({ method, url, type: headers['content-type'], body });
    answers.push(answer);
    bodies.push(body);
    response.writeHead(answer[0]).end(answer[1]);
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
  return { answers, bodies, attempt };
}

test('Telegram takes the message beside a ping, and one to no chat is seen to be refused', async (context) => {
  const { answers, attempt } = await play(context);
  expect(await attempt('telegram', `${TELEGRAM}?chat_id=-1001234567890`, CHECK)).toEqual([
    0,
    'Message: delivered, HTTP 200.',
    'Ping: delivered, HTTP 200.',
  ]);
  const { ok, result } = JSON.parse(answers[0]?.[1] ?? '');
  expect(ok).toBe(true);
  expect(result.text).toMatch(/^🟢 R&D <main>: This is a test\. .* \(\d{4}-.*Z\)$/);
  expect(await attempt('telegram', `${TELEGRAM}?chat_id=nobody`)).toEqual([
    69,
    'Message: not delivered, HTTP 400.',
  ]);
  const [code, told] = await attempt('telegram', TELEGRAM);
  expect([code, told]).toEqual([78, expect.stringContaining('?chat_id=')]);
});

test('Slack takes the message and shows the name as it is', async (context) => {
  const { answers, bodies, attempt } = await play(context);
  expect(await attempt('slack', SLACK)).toEqual([0, 'Message: delivered, HTTP 200.']);
  expect(answers).toEqual([[200, 'ok']]);
  expect(JSON.parse(bodies[0] ?? '')).toEqual({
    text: expect.stringContaining('R&amp;D &lt;main&gt;: This'),
  });
});

test('a ping for no check of healthchecks.io is seen to be ignored', async (context) => {
  const { attempt } = await play(context);
  expect(await attempt('json', null, CHECK.replace('5', '6'))).toEqual([
    69,
    'Ping: not delivered, HTTP 200 OK (not found).',
  ]);
});
