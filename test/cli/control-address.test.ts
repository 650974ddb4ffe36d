import { chmodSync, linkSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ControlFlags, findControl } from '../../src/cli/control-address.ts';
import { createControlClient } from '../../src/cli/control-client.ts';
import { createSystemClock } from '../../src/clock.ts';
import { statusOf } from './sample-status.ts';
import { daemonAt, fileWith, folder, refusalWith, run } from './stage.ts';

const TOKEN = 'a-token-of-some-length';
const NOWHERE = '/nowhere';

async function find(flags: ControlFlags, env: Record<string, string> = {}, usual = NOWHERE): Promise<string> {
  return (await findControl(flags, env, usual)).address.text;
}

/** What the command line shows and ends with where no daemon is asked. */
async function refusal(args: readonly string[], env: Record<string, string> = {}) {
  const { code, out, err } = await run(['status', ...args], { env });
  expect(out).toEqual([]);
  return { code, err: err.join('\n') };
}
const matching = (code: number, says: RegExp) => ({ code, err: expect.stringMatching(says) });

describe('where the daemon is', () => {
  it('is said by the flag, else by the variable, else by the configuration, else by habit', async () => {
    const listen = '["unix:/from/file.sock", "127.0.0.1:17478"]';
    const config = fileWith(`control: { listen: ${listen} }\nmarkets: 7\n`, 'k.yaml');
    const usual = dirname(fileWith('', 'control.sock'));
    const byFile = { KILLSWITCHD_CONFIG: config };
    const byListen = { ...byFile, KILLSWITCHD_CONTROL_LISTEN: 'unix:/from/listen.sock, 127.0.0.1:17478' };
    const all = { ...byListen, KILLSWITCHD_CONTROL: 'unix:/from/variable.sock' };
    for (const [flags, env, address] of [
      [{ control: 'unix:/from/flag.sock' }, all, 'unix:/from/flag.sock'],
      [{}, all, 'unix:/from/variable.sock'],
      [{}, byListen, 'unix:/from/listen.sock'],
      [{}, byFile, 'unix:/from/file.sock'],
      [{ config }, { KILLSWITCHD_CONFIG: '/no/such/file' }, 'unix:/from/file.sock'],
      [{}, {}, `unix:${usual}/control.sock`],
    ] as const)
      expect(await find(flags, env, usual)).toBe(address);
    // It is not guessed where a configuration says that it takes no commands.
    const none = fileWith('web: { listen: ["127.0.0.1:17477"] }\n', 'k.yaml');
    const message = /k\.yaml: control\.listen is missing or empty.*write control: \{ listen/;
    await expect(find({ config: none }, {}, usual)).rejects.toThrow(message);
  });

  it('is the only instance of this host, and must be said where there are several or none', async () => {
    const run = folder();
    const instance = (name: string) => {
      mkdirSync(join(run, name));
      writeFileSync(join(run, name, 'control.sock'), '');
    };
    mkdirSync(join(run, 'empty'));
    instance('main');
    expect(await find({}, {}, run)).toBe(`unix:${run}/main/control.sock`);
    instance('other');
    await expect(find({}, {}, run)).rejects.toMatchObject({
      exitCode: 78,
      message: `several daemons run here; say which: --control unix:${run}/main/control.sock, --control unix:${run}/other/control.sock`,
    });
    const none =
      /^no daemon is named.*--control unix:\/PATH.*KILLSWITCHD_CONTROL.*--config.*without control\.listen takes no commands$/;
    await expect(find({})).rejects.toMatchObject({ exitCode: 78, message: expect.stringMatching(none) });
  });

  it.each<[string, Record<string, string>, number, RegExp]>([
    [
      '--control /run/k.sock',
      {},
      64,
      /--control: found "\/run\/k.sock"; .*did you mean unix:\/run\/k.sock\?/,
    ],
    ['--control 127.0.0.1:0', {}, 64, /--control: found port 0/],
    ['', { KILLSWITCHD_CONTROL: '' }, 78, /KILLSWITCHD_CONTROL: found an empty text/],
    ['', { KILLSWITCHD_CONTROL_LISTEN: '17478' }, 78, /KILLSWITCHD_CONTROL_LISTEN: found "17478"/],
    ['--config /no.yaml', {}, 78, /^.*\/no.yaml: the configuration file does not exist\n.*--control/],
  ])('%s with %j ends with %i', async (args, env, code, message) => {
    expect(await refusal(args.split(' ').filter(Boolean), env)).toEqual(matching(code, message));
  });

  it.each([
    [
      'control: { listen: "unix:/k" }',
      /k\.yaml:1:12 control.listen: found "unix:\/k"; allowed: a list of addr/,
    ],
    ['control: { listen: [unix:relative] }', /k\.yaml:1:12 control.listen: found "unix:relative"/],
    ['control: [', /k\.yaml:1:\d+: not valid YAML/],
  ])('a file with %j ends with 78 and the place', async (text, message) => {
    expect(await refusal(['--config', fileWith(text, 'k.yaml')])).toEqual(matching(78, message));
  });
});

describe('the token', () => {
  const guarded = () =>
    daemonAt({ tcp: true }, ({ headers }) =>
      headers.authorization === `Bearer ${TOKEN}`
        ? { json: statusOf([]) }
        : refusalWith(401, 'unauthorised', 'no token, or not the right one'),
    );

  it('comes from a file that the flag, the variable or the configuration names', async () => {
    const { address } = await guarded();
    const token = fileWith(`${TOKEN}\n`);
    const config = fileWith(`control: { listen: ["${address}"], tokenFile: "${token}" }`);
    const env = { KILLSWITCHD_CONTROL: address, KILLSWITCHD_CONTROL_TOKEN_FILE: token };
    expect((await run(['status', '--control', address, '--token-file', token])).code).toBe(0);
    expect((await run(['status'], { env })).code).toBe(0);
    expect((await run(['status', '--config', config])).code).toBe(0);
  });

  it('that is missing or wrong ends the command with 77 and is shown nowhere', async () => {
    const { address } = await guarded();
    for (const more of [[], ['--token-file', fileWith('another-token-of-some-length')]]) {
      const refused = await refusal(['--control', address, ...more]);
      const says = /refuses the command: no token, or not the right one .*--token-file/;
      expect(refused).toEqual(matching(77, says));
      expect(refused.err).not.toContain('another-token');
    }
  });

  it('that cannot be read is a mistake of whoever named it', async () => {
    const flag = await refusal(['--control', '127.0.0.1:9', '--token-file', '/no/such/file']);
    expect(flag).toEqual(matching(64, /--token-file: the file that it names does not exist/));
    const env = { KILLSWITCHD_CONTROL_TOKEN_FILE: fileWith('short') };
    const variable = await refusal(['--control', '127.0.0.1:9'], env);
    expect(variable).toEqual(matching(78, /CONTROL_TOKEN_FILE: in the file that it names: found 5/));
  });

  it('is not sent over a socket, which its mode guards', async () => {
    const fake = await daemonAt({}, () => ({ json: statusOf([]) }));
    expect((await run(['status', '--control', fake.address, '--token-file', '/no/such/file'])).code).toBe(0);
    expect(fake.asked[0]?.headers.authorization).toBeUndefined();
  });
});

describe('a daemon that is not there', () => {
  it('is told from one that has ended, from something else, and from one that breaks off', async () => {
    const expectAt = async (address: string, says: string) =>
      expect(await refusal(['--control', address])).toEqual(matching(69, new RegExp(says)));
    const socket = join(folder(), 'control.sock');
    await expectAt(`unix:${socket}`, 'there is no such socket; is killswitchd running');
    writeFileSync(socket, '');
    await expectAt(`unix:${socket}`, 'what is there is no socket');
    const page = await daemonAt({ tcp: true }, () => ({ text: '<html>' }));
    await expectAt(page.address, 'is no killswitchd daemon');
    await page.close();
    await expectAt(page.address, 'nobody listens there');
    const mail = join(folder(), 'mail.sock');
    const server = createServer((connection) => connection.end('220 mail.example ESMTP\r\n')).listen(mail);
    await expectAt(`unix:${mail}`, 'does not speak HTTP');
    const left = `${mail}.left`;
    linkSync(mail, left);
    server.close();
    await expectAt(`unix:${left}`, 'nobody listens at the socket any more');
    const torn = await daemonAt({}, () => (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 });
      response.write('{"markets":[');
      setImmediate(() => response.destroy());
    });
    await expectAt(torn.address, 'broke the connection off');
  });

  it('to this user is told with the owner and the mode of its socket', async () => {
    const path = folder();
    const socket = join(path, 'control.sock');
    const { address } = await daemonAt({ socket }, () => ({ json: statusOf([]) }));
    const ask = () => asNobody(() => refusal(['--control', address]));
    chmodSync(path, 0o755);
    chmodSync(socket, 0o000);
    const says =
      /may not use unix:.*belongs to the user with the id \d+ and has the mode 0000; run the command as/;
    expect(await ask()).toEqual(matching(69, says));
    chmodSync(path, 0o700);
    if (process.geteuid?.() !== 0) return;
    expect((await ask()).err).toMatch(/it may not enter the folder of the socket/);
  });

  it('is waited for as long as was said, and no longer', async () => {
    const { address } = await daemonAt({}, () => () => {});
    const place = await findControl({ control: address }, {});
    const client = createControlClient(place, { clock: createSystemClock(), sender: 'a test' });
    const ask = (method: 'GET' | 'POST') => client.ask({ method, path: '/', withinMs: 100 });
    const message = expect.stringMatching(/has not answered within 0\.1 s$/);
    await expect(ask('GET')).rejects.toMatchObject({ exitCode: 69, message });
    await expect(ask('POST')).rejects.toThrow(/may have been done: killswitchd status tells$/);
  });
});

/** Root may use every socket: as somebody who may not. */
async function asNobody<T>(act: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return act();
  process.seteuid?.(65534);
  try {
    return await act();
  } finally {
    process.seteuid?.(0);
  }
}
