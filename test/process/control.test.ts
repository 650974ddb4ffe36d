import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { asker, type Reply } from './control.ts';
import {
  judgeSlack,
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

const THOUSAND = Array.from({ length: 1000 }, (_, index) => index);

/** What of a thousand requests each sends: five of seven are refused, each for another reason. */
function sending(overUnix: Play['ask'], overTcp: Play['ask'], { authorised }: Play) {
  return (index: number): Promise<Reply> => {
    const listener = index % 2 === 0 ? overUnix : overTcp;
    const headers: Record<string, string> = index % 2 === 0 ? {} : authorised;
    switch (index % 7) {
      case 0:
        return listener('/v1/trip', { headers: { ...headers, origin: 'https://evil.example' } });
      case 1:
        return listener('/v1/trip', { headers, body: { markets: ['x'.repeat(70_000)] } });
      case 2:
        return listener('/v1/disarm', { headers, body: '{"markets":' });
      case 3:
        return listener('/v1/trip', { headers, body: { markets: [`M${index}_USDT`] } });
      case 4:
        return overTcp('/v1/trip', { headers: { authorization: `Bearer ${WRONG_TOKEN}` } });
      default:
        return listener('/v1/beat', { headers, body: {} });
    }
  };
}

// One daemon is asked by one test after the other.
describe('the control listener delays no renewal, changes nothing and', { timeout: 60_000 }, () => {
  const scope = scopeOfBlock();
  let playing: Promise<Play>;

  test('answers a thousand requests at once, good beats among them, again and again', async () => {
    playing = play(scope);
    const stand = await playing;
    const { daemon, unix, tcp } = stand;
    const before = await refusalsCounted(daemon);
    const beatsBefore = await daemon.metric('killswitch_bot_beats_total');
    const judgeRest = await nothingHappens(stand);
    const send = sending(asker(scope, unix, 50), asker(scope, tcp, 50), stand);
    const codes: string[] = [];
    let beats = 0;
    for (const untilMs = performance.now() + 1500; performance.now() < untilMs; ) {
      const replies = await Promise.all(THOUSAND.map(send));
      for (const { status, code, text } of replies) {
        if (status === 200) beats += 1;
        else codes.push(String(code));
        if (status !== 200) expect(text).toContain('"message":');
      }
      const statuses = tally(replies.map(({ status }) => String(status)));
      expect(statuses).toEqual({ 200: 285, 400: 143, 401: 143, 403: 143, 404: 143, 413: 143 });
    }
    await judgeSlack(`while ${beats} beats and ${codes.length} refused requests came in`, daemon);
    expect(since(before, await refusalsCounted(daemon))).toEqual(tally(codes));
    expect((await daemon.metric('killswitch_bot_beats_total')) - beatsBefore).toBe(beats);
    await judgeRest();
    expect(daemon.logged('control-refused').length).toBe(new Set(codes).size);
    expect(await secretsShownBy(daemon, [])).toEqual([]);
  });

  test('refuses another user of the host, at the socket and over loopback', async (context) => {
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

  test('repeats no secret that a request or a file holds in a place where it has no business', async () => {
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
