import { execFile, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ListenError, placeSocket } from '../../src/operator/listen.ts';
import { asker, createSpy, makeFolder, start } from './control-fixture.ts';

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
if (!isRoot) console.info('control-socket: not root, so that no process of another user can be started');

/** Tries for as long as it lives, and tells of each outcome when it comes for the first time. */
const CONNECT_ALWAYS = `
  const { readdirSync } = require('node:fs');
  const net = require('node:net');
  const [folder] = process.argv.slice(1);
  const seen = new Set();
  const knock = (path) => new Promise((resolve) => {
    const socket = net.connect({ path });
    socket.on('connect', () => { socket.destroy(); resolve('connected'); });
    socket.on('error', ({ code }) => resolve(code));
  });
  (async () => {
    console.log('ready');
    for (;;) {
      const paths = readdirSync(folder).flatMap((name) => [name, name + '/s']);
      for (const path of ['control.sock', ...paths]) {
        const outcome = await knock(folder + '/' + path);
        if (!seen.has(outcome)) console.log(outcome);
        seen.add(outcome);
      }
    }
  })();`;

/** A directory that everybody may enter, as /run/killswitchd often is. */
function openFolder(): string {
  const folder = makeFolder();
  fs.chmodSync(folder, 0o755);
  return folder;
}

const startAt = (path: string, spy = createSpy()) => start(spy, [`unix:${path}`]);
const errorAt = (path: string) => startAt(path).catch((reason: unknown) => reason);

/** Leaves a socket on which nobody listens, as a daemon that was killed does. */
async function leaveSocket(path: string): Promise<void> {
  const code = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
  await promisify(execFile)(process.execPath, ['-e', code]).catch(() => {});
}

function setUmask(mask: number): void {
  const before = process.umask(mask);
  onTestFinished(() => {
    process.umask(before);
  });
}

describe('the socket file', () => {
  test.each([
    ['owner', '600'],
    ['group', '660'],
  ] as const)('is for its %s, whatever the umask, and is all that lies there', async (access, mode) => {
    for (const umask of [0, 0o077]) {
      setUmask(umask);
      const folder = openFolder();
      const path = join(folder, 'control.sock');
      const control = await start(createSpy(), [`unix:${path}`], null, access);
      expect(control.addresses).toEqual([`unix:${path}`]);
      const { mode: found, gid } = fs.lstatSync(path);
      expect([(found & 0o777).toString(8), gid]).toEqual([mode, process.getgid?.()]);
      expect(fs.readdirSync(folder)).toEqual(['control.sock']);
      await control.close();
      expect(fs.readdirSync(folder)).toEqual([]);
    }
  });

  test('is made also where the current directory was removed, as a deployment does', async () => {
    const path = join(openFolder(), 'control.sock');
    const [before, gone] = [process.cwd(), makeFolder()];
    onTestFinished(() => process.chdir(before));
    process.chdir(gone);
    fs.rmdirSync(gone);
    const control = await startAt(path);
    expect(fs.lstatSync(path).isSocket()).toBe(true);
    await control.close();
  });

  test('does not take a path that something else has taken meanwhile', async () => {
    const folder = makeFolder();
    const path = join(folder, 'control.sock');
    await leaveSocket(path);
    const server = createServer();
    onTestFinished(() => void server.close());
    const placed = placeSocket(path, async (bound) => {
      await new Promise<void>((resolve) => server.listen(bound, resolve));
      fs.unlinkSync(path);
      fs.writeFileSync(path, 'precious');
    });
    await expect(placed).rejects.toMatchObject({ code: 'EEXIST' });
    expect(fs.readFileSync(path, 'utf8')).toBe('precious');
    expect(fs.readdirSync(folder)).toEqual(['control.sock']);
  });

  test.runIf(isRoot)('lets no other user in, while it is being made or afterwards', async () => {
    setUmask(0);
    const folder = openFolder();
    const path = join(folder, 'control.sock');
    const args = ['-e', CONNECT_ALWAYS, folder];
    const intruder = spawn(process.execPath, args, { uid: NOBODY, gid: NOBODY });
    onTestFinished(() => void intruder.kill());
    let heard = '';
    intruder.stdout.on('data', (data) => {
      heard += String(data);
    });
    const hears = (what: string) => expect.poll(() => heard, { timeout: 15_000 }).toContain(what);
    await hears('ready');
    // On until it has met the socket: it may not run at all during the first hundred.
    for (let round = 0; round < 40 || !heard.includes('EACCES'); round += 1) {
      await (await startAt(path)).close();
      // A round alone reads nothing of what the intruder says.
      await new Promise((resolve) => setImmediate(resolve));
    }
    await startAt(path);
    expect(heard).not.toContain('connected');
    fs.chmodSync(path, 0o666);
    await hears('connected');
  });

  test('that a killed daemon left behind is replaced', async () => {
    const path = join(makeFolder(), 'control.sock');
    await leaveSocket(path);
    expect(fs.lstatSync(path).isSocket()).toBe(true);
    const control = await startAt(path);
    expect((await asker(control.addresses[0])('/v1/arm')).status).toBe(200);
    expect((fs.lstatSync(path).mode & 0o777).toString(8)).toBe('600');
  });

  test('on which another daemon listens is left to it', async () => {
    const path = join(makeFolder(), 'control.sock');
    const first = await startAt(path);
    const says = 'another process listens there, perhaps another killswitchd; stop it';
    const message = expect.stringContaining(says);
    expect(await errorAt(path)).toMatchObject({ code: 'EADDRINUSE', message });
    expect((await asker(first.addresses[0])('/v1/arm')).status).toBe(200);
  });

  test('is removed at the end only while it is the own one', async () => {
    const path = join(makeFolder(), 'control.sock');
    const control = await startAt(path);
    fs.unlinkSync(path);
    fs.writeFileSync(path, 'mine');
    await control.close();
    expect(fs.readFileSync(path, 'utf8')).toBe('mine');
  });
});

test('something else at the path is never removed, be it a file, a directory or a link to a socket', async () => {
  const folder = makeFolder();
  const at = (name: string) => join(folder, name);
  fs.writeFileSync(at('file'), 'precious');
  fs.mkdirSync(at('directory'));
  await leaveSocket(at('target'));
  fs.symlinkSync(at('target'), at('link'));
  const message = expect.stringContaining('something at this path that is no socket; move it away');
  for (const name of ['file', 'directory', 'link'])
    expect(await errorAt(at(name))).toMatchObject({ code: 'EEXIST', message });
  expect(fs.readFileSync(at('file'), 'utf8')).toBe('precious');
  expect(fs.readdirSync(folder).toSorted()).toEqual(['directory', 'file', 'link', 'target']);
});

test('a path that cannot be is refused with what is wrong about it, and leaves nothing', async () => {
  const folder = makeFolder();
  const missing = join(folder, 'missing');
  const says = `the directory ${missing} does not exist; make it, or set control.listen`;
  const message = expect.stringContaining(says);
  expect(await errorAt(join(missing, 'control.sock'))).toMatchObject({ code: 'ENOENT', message });
  fs.writeFileSync(join(folder, 'file'), '');
  expect(await errorAt(join(folder, 'file', 'control.sock'))).toMatchObject({ code: 'ENOTDIR' });
  const long = join(folder, 'x'.repeat(90));
  fs.mkdirSync(long);
  expect(await errorAt(join(long, 'control.sock'))).toBeInstanceOf(ListenError);
  expect(fs.readdirSync(long)).toEqual([]);
});

test('several addresses all answer, and if one cannot be opened none stays open', async () => {
  const path = join(makeFolder(), 'control.sock');
  const control = await start(createSpy(), [`unix:${path}`, '127.0.0.1:0', '[::1]:0']);
  for (const address of control.addresses) expect((await asker(address)('/v1/arm')).status).toBe(200);
  await control.close();
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void taken.close());
  const { port } = taken.address() as { port: number };
  const both = start(createSpy(), [`unix:${path}`, `127.0.0.1:${port}`]);
  const says = 'set control.listen or KILLSWITCHD_CONTROL_LISTEN to another port';
  await expect(both).rejects.toMatchObject({ code: 'EADDRINUSE', message: expect.stringContaining(says) });
  expect(fs.existsSync(path)).toBe(false);
});
