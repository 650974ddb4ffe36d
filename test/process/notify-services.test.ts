import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { stageFor } from './harness.ts';

/** What a service answers. */
type Answer = readonly [status: number, body: string];
interface Asked {
  readonly method: string;
  readonly url: URL;
  readonly type: string;
  readonly body: string;
}

/** As the Bot API does: parameters from the query and from a JSON body alike, and a text of 1 to 4096 characters. */
function telegram({ method, url, type, body }: Asked): Answer {
  const refused = (code: number, description: string): Answer => [
    code,
    JSON.stringify({ ok: false, error_code: code, description }),
  ];
  if (!['GET', 'POST'].includes(method)) return refused(501, 'Not Implemented');
  if (url.pathname !== '/bot123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11/sendMessage')
    return refused(404, 'Not Found');
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
  if (url.pathname !== '/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX') return [404, 'no_service'];
  if (!type.startsWith('application/json')) return [400, 'invalid_payload'];
  const { text } = JSON.parse(body) as { text?: unknown };
  if (typeof text !== 'string' || text === '') return [400, 'no_text'];
  if (/[<>]|&(?!amp;|lt;|gt;)/.test(text)) return [400, 'not escaped'];
  return [200, 'ok'];
}

const CHECK = '5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278';
/** As healthchecks.io does, which has answered a ping that it does not take with a 200. */
function healthchecks({ method, url }: Asked): Answer {
  if (!['HEAD', 'GET', 'POST'].includes(method)) return [405, ''];
  if (!/^\/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(url.pathname)) return [400, 'invalid url format'];
  return [200, url.pathname === `/${CHECK}` ? 'OK' : 'OK (not found)'];
}

function serviceAt(path: string): (asked: Asked) => Answer {
  if (path.startsWith('/bot')) return telegram;
  return path.startsWith('/services') ? slack : healthchecks;
}

/** Serves them all, by the beginning of the path; `notify --test` with these addresses and this format. */
async function play(context: TestContext) {
  const stage = stageFor(context);
  const answers: Answer[] = [];
  const bodies: string[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      const url = new URL(request.url ?? '', 'http://service');
      const type = request.headers['content-type'] ?? '';
      const answer = serviceAt(url.pathname)({ method: request.method ?? '', url, type, body });
      answers.push(answer);
      bodies.push(body);
      response.writeHead(answer[0]).end(answer[1]);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  context.onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const file = (name: string, text: string) => {
    writeFileSync(join(stage.directory, name), text);
    return join(stage.directory, name);
  };
  const attempt = async (addresses: { url?: string; pingUrl?: string }, format: string) => {
    const { url, pingUrl } = addresses;
    const notify = {
      name: 'R&D <main>',
      format,
      ...(url === undefined ? {} : { urlFile: file('url', base + url) }),
      ...(pingUrl === undefined ? {} : { pingUrlFile: file('ping', base + pingUrl) }),
    };
    const rest = {
      exchange: { baseUrls: ['http://127.0.0.1:9'] },
      markets: ['BTC_USDT'],
      liveness: { mode: 'none' },
    };
    const config = file('killswitchd.json', JSON.stringify({ ...rest, notify }));
    const env = { KILLSWITCHD_API_KEY: 'demo-key', KILLSWITCHD_API_SECRET: 'demo-secret' };
    const program = await stage.run(['notify', '--test', '--config', config], { env });
    const { code } = await program.exit();
    return [code, program.stdout() + program.stderr()];
  };
  return { answers, bodies, attempt };
}

const TELEGRAM = '/bot123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11/sendMessage';
const SLACK = '/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX';

test('Telegram takes the message, and one to no chat is seen to be refused', async (context) => {
  const { answers, attempt } = await play(context);
  expect(await attempt({ url: `${TELEGRAM}?chat_id=-1001234567890` }, 'telegram')).toEqual([
    0,
    'Message: delivered, HTTP 200.\n',
  ]);
  expect(JSON.parse(answers[0]?.[1] ?? '')).toMatchObject({
    ok: true,
    result: { text: expect.stringContaining('R&D <main>: This is a test.') },
  });
  expect(await attempt({ url: `${TELEGRAM}?chat_id=nobody` }, 'telegram')).toEqual([
    69,
    'Message: not delivered, HTTP 400.\n',
  ]);
  expect(await attempt({ url: TELEGRAM }, 'telegram')).toEqual([78, expect.stringContaining('?chat_id=')]);
}, 60_000);

test('Slack takes the message and shows the name as it is', async (context) => {
  const { answers, bodies, attempt } = await play(context);
  expect(await attempt({ url: SLACK }, 'slack')).toEqual([0, 'Message: delivered, HTTP 200.\n']);
  expect(answers).toEqual([[200, 'ok']]);
  expect(JSON.parse(bodies[0] ?? '')).toEqual({
    text: expect.stringContaining('R&amp;D &lt;main&gt;: This'),
  });
}, 60_000);

test('healthchecks.io takes the ping, and one for no check is seen to be ignored', async (context) => {
  const { attempt } = await play(context);
  expect(await attempt({ pingUrl: `/${CHECK}` }, 'json')).toEqual([0, 'Ping: delivered, HTTP 200.\n']);
  expect(await attempt({ pingUrl: `/${CHECK.replace('5', '6')}` }, 'json')).toEqual([
    69,
    'Ping: not delivered, HTTP 200 OK (not found).\n',
  ]);
}, 60_000);
