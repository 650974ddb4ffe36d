import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Ask, type Asked, asker, type Reply, say } from './control.ts';
import {
  nothingHappens,
  type Play,
  play,
  refusalsCounted,
  SECRET,
  secretsShownBy,
  since,
  TOKEN,
  tally,
  WRONG_TOKEN,
} from './control-stage.ts';
import { type Scope, scopeOfBlock } from './harness.ts';
import { MAIN, ROOT } from './program.ts';

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
const WRONG_HOST: Case = [
  'a foreign Host',
  '/v1/trip',
  { headers: { host: 'evil.example' } },
  421,
  'wrong_host',
];
const UNAUTHORISED: readonly Case[] = [
  ['no token', '/v1/trip', {}, 401, 'unauthorised'],
  ['a wrong token', '/v1/trip', { headers: { authorization: `Bearer ${WRONG_TOKEN}` } }, 401, 'unauthorised'],
  ['the token in the query', `/v1/trip?token=${encodeURIComponent(TOKEN)}`, {}, 401, 'unauthorised'],
];

// One daemon is asked by one test after the other.
describe('the control listener refuses, and changes nothing:', { timeout: 60_000 }, () => {
  const scope = scopeOfBlock();
  let playing: Promise<Play>;

  test('foreign origins and hosts, no token, too much, nonsense, unknown commands, and the web port', async () => {
    playing = play(scope);
    const stand = await playing;
    const { daemon, unix, tcp, ask: askUnix, authorised } = stand;
    const askTcp = asker(scope, tcp);
    const judgeRest = await nothingHappens(stand);
    const replies: Reply[] = [];
    const expectRefused = async (ask: Ask, [what, path, asked, status, code]: Case, headers = {}) => {
      const reply = await ask(path, { ...asked, headers: { ...headers, ...asked.headers } });
      expect([what, reply.status, reply.code]).toEqual([what, status, code]);
      replies.push(reply);
    };
    for (const refused of REFUSED) {
      await expectRefused(askUnix, refused);
      await expectRefused(askTcp, refused, authorised);
    }
    await expectRefused(askTcp, WRONG_HOST, authorised);
    for (const refused of UNAUTHORISED) await expectRefused(askTcp, refused);
    for (const address of [unix, tcp]) {
      expect(await say(scope, address, 'TRIP everything\r\n\r\n')).toMatch(
        /^HTTP\/1\.1 400 [^]*"code":"malformed_request"/,
      );
    }
    const codes = [...replies.map(({ code }) => String(code)), 'malformed_request', 'malformed_request'];
    expect(await refusalsCounted(daemon)).toEqual(tally(codes));

    const askWeb = asker(scope, await daemon.web());
    for (const path of ['/v1/trip', '/v1/beat', '/v1/reload', '/api/v1/status']) {
      const reply = await askWeb(path, { body: {}, headers: authorised });
      expect([path, reply.status, reply.text.trim()]).toEqual([path, 405, 'this listener is read-only']);
    }
    expect((await askWeb('/v1/status', { method: 'GET' })).status).toBe(404);
    await judgeRest();
    expect(daemon.logged('control-refused').length).toBe(new Set(codes).size);
    const texts = replies.map(({ text }) => text);
    expect(await secretsShownBy(daemon, texts)).toEqual([]);
  });

  test('another user of the host, at the socket and over loopback', async (context) => {
    if (process.getuid?.() !== 0) {
      console.log('not tried: another user of the host (only root can become one)');
      return context.skip('only root can become another user');
    }
    const stand = await playing;
    const { stage, daemon, unix, tcp } = stand;
    const before = await refusalsCounted(daemon);
    const judgeRest = await nothingHappens(stand);
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
    const trip = (...args: string[]) => asNobody(context, [MAIN, 'trip', '--yes', '--control', ...args]);
    const command = await trip(unix);
    expect(command.code).toBe(69);
    expect(command.err).toContain(
      `this user may not use ${unix}: the socket belongs to the user with the id 0 and has the mode 0600`,
    );
    const { host } = new URL(tcp);
    const overLoopback = await trip(host);
    expect(overLoopback.code).toBe(77);
    expect(overLoopback.err).toContain('refuses the command: found no Authorization header');
    const withToken = await trip(host, '--token-file', join(stage.directory, 'token'));
    expect(withToken.err).toContain('may not be read by this user');

    expect(since(before, await refusalsCounted(daemon))).toEqual({ unauthorised: 1 });
    await judgeRest();
  });

  test('what a request or a file holds in a place where a secret has no business, and repeats no secret', async () => {
    const stand = await playing;
    const { daemon, ask } = stand;
    const judgeRest = await nothingHappens(stand, 'config', 'reloads');
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
    await judgeRest();
    const texts = replies.map(({ text }) => text);
    expect(texts.join()).toContain('[redacted]');
    expect(await secretsShownBy(daemon, texts)).toEqual([]);
  });
});

/** Runs Node as the user that owns nothing, from the folder of the program. */
async function asNobody(scope: Scope, args: readonly string[]) {
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    uid: 65_534,
    gid: 65_534,
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  scope.onTestFinished(() => void child.kill('SIGKILL'));
  const said = { out: '', err: '' };
  child.stdout.on('data', (text) => {
    said.out += text;
  });
  child.stderr.on('data', (text) => {
    said.err += text;
  });
  await once(child, 'close');
  return { ...said, code: child.exitCode };
}
