import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, type TestContext, test } from 'vitest';
import { type Ask, type Asked, asker, type Reply, say } from './control.ts';
import {
  expectNoGap,
  play,
  refusalsCounted,
  SECRET,
  secretsShownBy,
  settingsOf,
  TOKEN,
  tally,
  WRONG_TOKEN,
} from './control-stage.ts';
import { MAIN, ROOT, sleep } from './program.ts';

type Case = readonly [what: string, path: string, asked: Asked, status: number, code: string];

/** What is refused on both kinds of listener, to whoever may use them. */
const REFUSED: readonly Case[] = [
  ['a web page', '/v1/trip', { headers: { origin: 'https://evil.example' } }, 403, 'foreign_origin'],
  ['more than 64 KiB', '/v1/trip', { body: { markets: ['x'.repeat(65_536)] } }, 413, 'too_large'],
  ['no JSON', '/v1/trip', { body: '{"markets":["AAA_USDT"' }, 400, 'malformed_json'],
  ['an unknown key', '/v1/disarm', { body: { market: 'AAA_USDT' } }, 400, 'unknown_key'],
  ['an unknown command', '/v1/disarm-all', {}, 404, 'unknown_path'],
  ['an unknown market', '/v1/trip', { body: { markets: ['AAA_USDT', 'XXX_USDT'] } }, 404, 'unknown_market'],
  [
    'what a form sends',
    '/v1/disarm',
    { body: 'markets=AAA_USDT', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    415,
    'wrong_content_type',
  ],
];

/** What is refused over loopback only: at a socket the permissions of the file decide. */
const REFUSED_OVER_LOOPBACK: readonly Case[] = [
  ['a foreign Host', '/v1/trip', { headers: { host: 'evil.example' } }, 421, 'wrong_host'],
  ['no token', '/v1/trip', { headers: { authorization: '' } }, 401, 'unauthorised'],
  ['a wrong token', '/v1/trip', { headers: { authorization: `Bearer ${WRONG_TOKEN}` } }, 401, 'unauthorised'],
  [
    'the token in the query',
    `/v1/trip?token=${encodeURIComponent(TOKEN)}`,
    { headers: { authorization: '' } },
    401,
    'unauthorised',
  ],
];

describe.concurrent('the control listener refuses, and changes nothing:', { timeout: 60_000 }, () => {
  test('foreign origins and hosts, no token, too much, nonsense, unknown commands, and the web port', async (context) => {
    const stand = await play(context);
    const { exchange, daemon, unix, tcp, authorised } = stand;
    const askUnix = asker(context, unix);
    const askTcp = asker(context, tcp);
    const before = await settingsOf(stand, askUnix);
    const fromMs = await exchange.nowMs();
    const replies: Reply[] = [];
    const expectRefused = async (ask: Ask, [what, path, asked, status, code]: Case) => {
      const reply = await ask(path, asked);
      expect([what, reply.status, reply.code]).toEqual([what, status, code]);
      replies.push(reply);
    };
    for (const refused of REFUSED) {
      await expectRefused(askUnix, refused);
      const [what, path, asked, ...answer] = refused;
      const headers = { ...authorised, ...asked.headers };
      await expectRefused(askTcp, [what, path, { ...asked, headers }, ...answer]);
    }
    for (const [what, path, asked, ...answer] of REFUSED_OVER_LOOPBACK) {
      const { authorization, ...headers } = { ...authorised, ...asked.headers };
      const sent =
        authorization === '' || authorization === undefined ? headers : { ...headers, authorization };
      await expectRefused(askTcp, [what, path, { ...asked, headers: sent }, ...answer]);
    }
    for (const address of [unix, tcp]) {
      expect(await say(context, address, 'TRIP everything\r\n\r\n')).toMatch(
        /^HTTP\/1\.1 400 [^]*"code":"malformed_request"/,
      );
    }
    const codes = [...replies.map(({ code }) => String(code)), 'malformed_request', 'malformed_request'];
    expect(await refusalsCounted(daemon)).toEqual(tally(codes));

    const web = await daemon.web();
    for (const path of ['/v1/trip', '/v1/beat', '/v1/reload', '/api/v1/status']) {
      const reply = await asker(context, web)(path, { body: {}, headers: authorised ?? {} });
      expect([path, reply.status, reply.text.trim()]).toEqual([path, 405, 'this listener is read-only']);
    }
    expect((await asker(context, web)('/v1/status', { method: 'GET' })).status).toBe(404);

    await sleep(1500);
    expect(await settingsOf(stand, askUnix)).toEqual(before);
    await expectNoGap(stand, fromMs);
    expect(daemon.logged('control-refused').length).toBe(new Set(codes).size);
    expect(
      await secretsShownBy(
        daemon,
        replies.map(({ text }) => text),
      ),
    ).toEqual([]);
  });

  test('another user of the host, at the socket and over loopback', async (context) => {
    if (process.getuid?.() !== 0) {
      console.log('not tried: another user of the host (only root can become one)');
      return context.skip('only root can become another user');
    }
    const stand = await play(context);
    const { stage, exchange, daemon, unix, tcp } = stand;
    const ask = asker(context, unix);
    const before = await settingsOf(stand, ask);
    const fromMs = await exchange.nowMs();
    // So that nothing but the socket itself stands in the way.
    chmodSync(stage.directory, 0o755);
    const path = unix.slice('unix:'.length);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(path))).toContain('control.sock');

    const knock = await asNobody(context, [
      '-e',
      `require('node:http').request({ socketPath: ${JSON.stringify(path)}, path: '/v1/trip', method: 'POST' })
        .on('error', ({ code }) => console.log(code)).on('response', ({ statusCode }) => console.log(statusCode)).end()`,
    ]);
    expect(knock.out).toBe('EACCES\n');
    const command = await asNobody(context, [MAIN, 'trip', '--yes', '--control', unix]);
    expect(command.code).toBe(69);
    expect(command.err).toContain(
      `this user may not use ${unix}: the socket belongs to the user with the id 0 and has the mode 0600`,
    );
    const host = new URL(tcp).host;
    const overLoopback = await asNobody(context, [MAIN, 'trip', '--yes', '--control', host]);
    expect(overLoopback.code).toBe(77);
    expect(overLoopback.err).toContain('refuses the command: found no Authorization header');
    const tokenFile = join(stage.directory, 'token');
    const withToken = await asNobody(context, [
      MAIN,
      'trip',
      '--yes',
      '--control',
      host,
      '--token-file',
      tokenFile,
    ]);
    expect(withToken.err).toContain('may not be read by this user');

    expect(await refusalsCounted(daemon)).toEqual({ unauthorised: 1 });
    expect(await settingsOf(stand, ask)).toEqual(before);
    await expectNoGap(stand, fromMs);
  });

  test('what a request or a file holds in a place where a secret has no business, and repeats no secret', async (context) => {
    const stand = await play(context);
    const { daemon, unix } = stand;
    const ask = asker(context, unix);
    const before = await settingsOf(stand, ask);
    const replies: Reply[] = [];
    for (const text of [TOKEN, SECRET]) {
      replies.push(
        await ask(`/v1/beat?bot=${encodeURIComponent(text)}`),
        await ask(`/v1/beat?${encodeURIComponent(text)}=1`),
        await ask(`/v1/${encodeURIComponent(text)}`),
        await ask('/v1/trip', { body: { markets: [text] } }),
        await ask('/v1/trip', { body: { [text]: 1 } }),
        await ask('/v1/log-level', { body: { level: text } }),
        await ask('/v1/trip', { headers: { 'content-type': text }, body: '{}' }),
      );
    }
    expect(replies.filter(({ status }) => status < 400)).toEqual([]);

    const { log, markets, ...rest } = JSON.parse(readFileSync(daemon.configFile, 'utf8'));
    const reject = async (config: unknown) => {
      writeFileSync(daemon.configFile, JSON.stringify(config));
      const reply = await ask('/v1/reload');
      expect([reply.status, reply.code]).toEqual([422, 'config_rejected']);
      replies.push(reply);
    };
    await reject({ ...rest, markets, log: { level: SECRET } });
    await reject({ ...rest, log, markets: [TOKEN, SECRET] });
    // What the loader cannot know because the file is gone, the daemon still does.
    writeFileSync(daemon.secretFile, '');
    await reject({ ...rest, markets, log: { level: SECRET } });
    const { config: _config, reloads: _reloads, ...settings } = before as Record<string, unknown>;
    expect(await settingsOf(stand, ask)).toMatchObject(settings);
    await sleep(1100);
    const texts = replies.map(({ text }) => text);
    expect(texts.join()).toContain('[redacted]');
    expect(await secretsShownBy(daemon, texts)).toEqual([]);
  });
});

/** Runs Node as the user that owns nothing, from the folder of the program. */
async function asNobody({ onTestFinished }: TestContext, args: readonly string[]) {
  const child: ChildProcess = spawn(process.execPath, args, {
    cwd: ROOT,
    uid: 65_534,
    gid: 65_534,
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const said = { out: '', err: '' };
  child.stdout?.on('data', (text) => {
    said.out += text;
  });
  child.stderr?.on('data', (text) => {
    said.err += text;
  });
  await once(child, 'close');
  return { ...said, code: child.exitCode };
}
