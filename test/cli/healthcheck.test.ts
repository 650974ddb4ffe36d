import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Snapshot } from '../../src/core/view.ts';
import { sampleMarket, sampleSnapshot } from '../operator/sample-snapshot.ts';
import { start as startWeb } from '../operator/web-fixture.ts';
import { daemon, daemonAt, failing, fileWith, folder, run, type Setting } from './stage.ts';

const health = (live: boolean, ready: boolean, notReady: readonly string[] = []) =>
  daemon(() => ({ json: { live, ready, notReady } }));

const check = (line: string, setting: Setting = {}) => run(`healthcheck ${line}`.trim().split(' '), setting);
const well = (what: string) => ({ code: 0, out: [`The daemon is ${what}.`], err: [] });
const webOf = async (snapshot?: () => Snapshot) =>
  new URL((await startWeb(snapshot)).addresses[0] ?? '').host;

describe('healthcheck', () => {
  it('asks the control listener whether the daemon is live, or ready', async () => {
    const { address, asked } = await health(true, false, ['BTC_USDT is not confirmed armed (arming)']);
    for (const flag of ['', '--live '])
      expect(await check(`${flag}--control ${address}`)).toMatchObject(well('live'));
    const says = /is not ready: BTC_USDT is not confirmed armed \(arming\)$/;
    expect(await check(`--ready --control ${address}`)).toMatchObject(failing(69, says));
    expect(asked).toMatchObject(Array.from({ length: 3 }, () => ({ method: 'GET', path: '/v1/health' })));
    const stuck = await health(false, false);
    const still = /is not live: its loop makes no progress$/;
    expect(await check(`--control ${stuck.address}`)).toMatchObject(failing(69, still));
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

  it('asks for whoever starts a bot whether all but the bots is ready', async () => {
    const withoutBots = { ready: true, notReady: [] };
    const json = { live: true, ready: false, notReady: ['x'], withoutBots };
    const { address } = await daemon(() => ({ json }));
    const dead = { bot: 'main', mode: 'beat', state: 'stale', evidenceAgeMs: 20_000, ttlMs: 15_000 } as const;
    const suspended = sampleMarket({ state: 'suspended', wanted: false });
    const host = await webOf(() => sampleSnapshot({ markets: [suspended], bots: [dead] }));
    for (const place of [`--control ${address}`, `--web ${host}`])
      expect(await check(`--ready --exclude bots ${place}`)).toMatchObject(well('ready for its bots'));
    const { code, err } = await check(`--ready --web ${host}`);
    expect([code, err[0]]).toEqual([69, expect.stringContaining('bot/main failed: it is silent')]);
  });

  it('prefers the control listener where both are configured, and finds both in the file', async () => {
    const { address, asked } = await health(true, true);
    const both = `control: { listen: ["${address}"] }\nweb: { listen: ["127.0.0.1:9"] }\n`;
    expect(await check(`--config ${fileWith(both)}`)).toMatchObject(well('live'));
    expect(asked).toHaveLength(1);
    const KILLSWITCHD_CONFIG = fileWith(`web: { listen: ["${await webOf()}"] }\n`);
    expect(await check('', { env: { KILLSWITCHD_CONFIG } })).toMatchObject(well('live'));
  });

  it('ends with 69 where nobody is there, or somebody else, and with 78 where nobody can be asked', async () => {
    const gone = `--control unix:${join(folder(), 'none.sock')}`;
    expect(await check(gone)).toMatchObject(failing(69, /there is no such socket/));
    const { address } = await daemonAt({ tcp: true }, () => ({ status: 404, text: 'not here' }));
    const other = failing(69, /no killswitchd daemon \(HTTP 404\)$/);
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
