import { chmodSync, linkSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ControlFlags, findControl } from '../../src/cli/control-address.ts';
import { createControlClient } from '../../src/cli/control-client.ts';
import { createSystemClock } from '../../src/clock.ts';
import type { Snapshot } from '../../src/core/view.ts';
import { sampleMarket, sampleSnapshot } from '../operator/sample-snapshot.ts';
import { start as startWeb } from '../operator/web-fixture.ts';
import { statusOf } from './sample-status.ts';
import { daemon, daemonAt, failing, fileWith, folder, refusalWith, run, type Setting } from './stage.ts';

const TOKEN = 'a-token-of-some-length';

const find = async (flags: ControlFlags, env: Record<string, string> = {}, usual = '/nowhere') =>
  (await findControl(flags, env, usual)).address.text;

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
    for (const name of ['empty', 'main', 'other']) mkdirSync(join(run, name));
    writeFileSync(join(run, 'main/control.sock'), '');
    expect(await find({}, {}, run)).toBe(`unix:${run}/main/control.sock`);
    writeFileSync(join(run, 'other/control.sock'), '');
    const named = ['main', 'other'].map((name) => `--control unix:${run}/${name}/control.sock`).join(', ');
    const several = { exitCode: 78, message: `several daemons run here; say which: ${named}` };
    await expect(find({}, {}, run)).rejects.toMatchObject(several);
    const none = /^no daemon is named.*--control unix:\/PATH.*without control\.listen takes no commands$/;
    await expect(find({})).rejects.toMatchObject({ exitCode: 78, message: expect.stringMatching(none) });
  });

  const misspelt = { KILLSWITCHD_CONTOL: 'unix:/k' };
  const noFile = /^.*\/no.yaml: the configuration file does not exist\n.*--control/;
  const inFile = (text: string) => ['--config', fileWith(text, 'k.yaml')];
  it.each<[number, () => string[], Record<string, string>, RegExp]>([
    [64, () => ['--control', '/run/k'], {}, /--control: found "\/run\/k"; .*did you mean unix:\/run\/k\?/],
    [64, () => ['--control', '127.0.0.1:0'], {}, /--control: found port 0/],
    [78, () => [], misspelt, /CONTOL: unknown variable; did you mean KILLSWITCHD_CONTROL/],
    [78, () => [], { KILLSWITCHD_CONTROL: '' }, /KILLSWITCHD_CONTROL: found an empty text/],
    [78, () => [], { KILLSWITCHD_CONTROL_LISTEN: '17478' }, /KILLSWITCHD_CONTROL_LISTEN: found "17478"/],
    [78, () => ['--config', '/no.yaml'], {}, noFile],
    [78, () => ['--control', '127.0.0.1:1'], { KILLSWITCHD_CONFIG: '/no.yaml' }, /write --token-file, with/],
    [78, () => inFile('control: { listen: "unix:/k" }'), {}, /k\.yaml:1:12 .*"unix:\/k"; allowed: a list/],
    [78, () => inFile('control: { listen: [unix:a] }'), {}, /k\.yaml:1:12 control.listen: found "unix:a"/],
    [78, () => inFile('control: ['), {}, /k\.yaml:1:\d+: not valid YAML/],
  ])('ends with %i where it is said by %s with %j', async (code, args, env, message) => {
    expect(await refusal(args(), env)).toEqual(matching(code, message));
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
    const tcp = ['--control', '127.0.0.1:9'];
    const missing = /--token-file: the file that it names does not exist/;
    expect(await refusal([...tcp, '--token-file', '/no/such/file'])).toEqual(matching(64, missing));
    const env = { KILLSWITCHD_CONTROL_TOKEN_FILE: fileWith('short') };
    const short = /CONTROL_TOKEN_FILE: in the file that it names: found 5/;
    expect(await refusal(tcp, env)).toEqual(matching(78, short));
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
    await expectAt(page.address, 'is no killswitchd daemon, or its other listener');
    await page.close();
    await expectAt(page.address, 'nobody listens there');
    const mail = join(folder(), 'mail.sock');
    const server = createServer((connection) => connection.end('220 mail.example ESMTP\r\n')).listen(mail);
    await expectAt(`unix:${mail}`, 'does not speak HTTP');
    linkSync(mail, `${mail}.left`);
    server.close();
    await expectAt(`unix:${mail}.left`, 'nobody listens at the socket any more');
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
    const { address } = await daemonAt({ socket }, () => ({ json: {} }));
    const isRoot = process.geteuid?.() === 0;
    const ask = async () => {
      // Root may use every socket: as somebody who may not.
      if (isRoot) process.seteuid?.(65_534);
      return refusal(['--control', address]).finally(() => isRoot && process.seteuid?.(0));
    };
    chmodSync(path, 0o755);
    chmodSync(socket, 0o000);
    const says = /may not use unix:.*belongs to the user with the id \d+ and has the mode 0000; run the/;
    expect(await ask()).toEqual(matching(69, says));
    chmodSync(path, 0o700);
    if (isRoot) expect((await ask()).err).toMatch(/it may not enter the folder of the socket/);
  });

  it('is waited for as long as was said, and no longer', async () => {
    const { address } = await daemonAt({}, () => () => {});
    const place = await findControl({ control: address }, {});
    const client = createControlClient(place, { clock: createSystemClock(), sender: 'a test' });
    const message = expect.stringMatching(/has not answered within 0\.1 s$/);
    await expect(client.ask('/', 100)).rejects.toMatchObject({ exitCode: 69, message });
    await expect(client.ask('/', 100, {})).rejects.toThrow(/may have been done: killswitchd status tells$/);
  });
});

const health = (live: boolean, ready: boolean) => daemon(() => ({ json: { live, ready, notReady: [] } }));

const check = (line: string, setting: Setting = {}) => run(`healthcheck ${line}`.trim().split(' '), setting);
const well = (what: string) => ({ code: 0, out: [`The daemon is ${what}.`], err: [] });
const webOf = async (snapshot?: () => Snapshot) =>
  new URL((await startWeb(snapshot)).addresses[0] ?? '').host;

describe('healthcheck', () => {
  it('asks the control listener whether the daemon is live', async () => {
    const { address, asked } = await health(true, false);
    for (const flag of ['', '--live '])
      expect(await check(`${flag}--control ${address}`)).toMatchObject(well('live'));
    expect(asked).toMatchObject(Array.from({ length: 2 }, () => ({ method: 'GET', path: '/v1/health' })));
    const stuck = await health(false, false);
    const still = /is not live: its loop makes no progress$/;
    expect(await check(`--control ${stuck.address}`)).toMatchObject(failing(69, still));
  });

  it('says the first five reasons why it is not ready, and counts no others', async () => {
    const notReady = Array.from({ length: 6 }, (_, index) => `reason ${index}`);
    const { address } = await daemon(() => ({ json: { live: true, ready: false, notReady } }));
    const says = /is not ready: reason 0; .*; reason 4; and more$/;
    expect(await check(`--ready --control ${address}`)).toMatchObject(failing(69, says));
  });

  it('asks the web listener of a daemon that has no other', async () => {
    expect(await check(`--ready --web ${await webOf()}`)).toMatchObject(well('ready'));
    const markets = [sampleMarket({ state: 'arming', guaranteedMs: null })];
    const sick = await webOf(() => sampleSnapshot({ markets }));
    // A listener on all addresses, as in a container, is asked at the loopback one.
    const env = { KILLSWITCHD_WEB_LISTEN: sick.replace('127.0.0.1', '0.0.0.0') };
    expect(await check('', { env })).toMatchObject(well('live'));
    expect(await check('--ready', { env })).toMatchObject(failing(69, /is not ready: .*BTC_USDT.*arming/));
  });

  it('prefers the control listener where both are configured, and finds both in the file', async () => {
    const { address, asked } = await health(true, true);
    const both = `control: { listen: ["${address}"] }\nweb: { listen: ["127.0.0.1:9"] }\n`;
    expect(await check(`--config ${fileWith(both)}`)).toMatchObject(well('live'));
    expect(asked).toHaveLength(1);
    const KILLSWITCHD_CONFIG = fileWith(`web: { listen: ["${await webOf()}"] }\n`);
    expect(await check('', { env: { KILLSWITCHD_CONFIG } })).toMatchObject(well('live'));
  });

  it('ends with 69 where somebody else is there, and with 78 where nobody can be asked', async () => {
    const { address } = await daemonAt({ tcp: true }, () => ({ status: 404, text: 'not here' }));
    const other = failing(69, /no killswitchd daemon, or its other listener \(HTTP 404\): /);
    for (const flag of ['--web', '--control']) expect(await check(`${flag} ${address}`)).toMatchObject(other);
    const file = fileWith('control: { listen: [] }\nweb: { listen: [] }\n');
    expect(await check(`--config ${file}`)).toMatchObject(failing(78, /nobody can be asked$/));
  });

  it('gives a daemon that hangs 2 s', async () => {
    const { address } = await daemon(() => () => {});
    const startedMs = performance.now();
    expect(await check(`--control ${address}`)).toMatchObject(failing(69, /has not answered within 2 s$/));
    expect(performance.now() - startedMs).toBeGreaterThan(1900);
  });

  it.each(['--live --ready', '--exclude bots', '--bot main'])('makes no sense with %s', async (flags) => {
    expect((await check(flags)).code).toBe(64);
  });
});
