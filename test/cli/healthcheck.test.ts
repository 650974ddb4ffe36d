import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sampleMarket, sampleSnapshot } from '../operator/sample-snapshot.ts';
import { start as startWeb } from '../operator/web-fixture.ts';
import { daemon, daemonAt, fileWith, folder, run } from './stage.ts';

const SICK = sampleSnapshot({
  ready: false,
  notReady: ['BTC_USDT is not confirmed armed (arming)'],
  markets: [sampleMarket({ state: 'arming', guaranteedMs: null })],
});

const health = (live: boolean, ready: boolean, notReady: readonly string[] = []) =>
  daemon(() => ({ json: { live, ready, notReady } }));

describe('healthcheck', () => {
  it('asks the control listener whether the daemon is live, or ready', async () => {
    const { address, asked } = await health(true, false, ['BTC_USDT is not confirmed armed (arming)']);
    for (const flag of [[], ['--live']]) {
      const live = await run(['healthcheck', ...flag, '--control', address]);
      expect(live).toMatchObject({ code: 0, out: ['The daemon is live.'], err: [] });
    }
    const says = expect.stringMatching(/is not ready: BTC_USDT is not confirmed armed \(arming\)$/);
    const ready = await run(['healthcheck', '--ready', '--control', address]);
    expect(ready).toMatchObject({ code: 69, out: [], err: [says] });
    expect(asked).toMatchObject(Array.from({ length: 3 }, () => ({ method: 'GET', path: '/v1/health' })));
  });

  it('tells a daemon whose loop stands still', async () => {
    const { address } = await health(false, false);
    const says = expect.stringMatching(/is not live: its loop makes no progress$/);
    expect(await run(['healthcheck', '--control', address])).toMatchObject({ code: 69, err: [says] });
  });

  it('asks the read-only listener of a daemon that has no other', async () => {
    const well = new URL((await startWeb()).addresses[0] ?? '').host;
    const ready = await run(['healthcheck', '--ready', '--web', well]);
    expect(ready).toMatchObject({ code: 0, out: ['The daemon is ready.'] });
    const { port } = new URL((await startWeb(() => SICK)).addresses[0] ?? '');
    // A listener on all addresses, as in a container, is asked at the loopback one.
    const env = { KILLSWITCHD_WEB_LISTEN: `0.0.0.0:${port}` };
    expect((await run(['healthcheck'], { env })).code).toBe(0);
    const says = expect.stringMatching(/is not ready: .*BTC_USDT.*arming/);
    expect(await run(['healthcheck', '--ready'], { env })).toMatchObject({ code: 69, err: [says] });
  });

  it('asks for whoever starts a bot whether all but the bots is ready', async () => {
    const withoutBots = { ready: true, notReady: [] };
    const json = { live: true, ready: false, notReady: ['x'], withoutBots };
    const { address } = await daemon(() => ({ json }));
    const forBots = ['healthcheck', '--ready', '--exclude', 'bots'];
    const said = { code: 0, out: ['The daemon is ready for its bots.'] };
    expect(await run([...forBots, '--control', address])).toMatchObject(said);
    const dead = { bot: 'main', mode: 'beat', state: 'stale', evidenceAgeMs: 20_000, ttlMs: 15_000 } as const;
    const suspended = sampleMarket({ state: 'suspended', wanted: false });
    const web = await startWeb(() => sampleSnapshot({ markets: [suspended], bots: [dead] }));
    const { host } = new URL(web.addresses[0] ?? '');
    expect(await run([...forBots, '--web', host])).toMatchObject(said);
    const silent = expect.stringContaining('bot/main failed: it is silent');
    const ready = await run(['healthcheck', '--ready', '--web', host]);
    expect(ready).toMatchObject({ code: 69, err: [silent] });
  });

  it('prefers the control listener where both are configured, and finds both in the file', async () => {
    const { address, asked } = await health(true, true);
    const both = `control: { listen: ["${address}"] }\nweb: { listen: ["127.0.0.1:9"] }\n`;
    expect((await run(['healthcheck', '--config', fileWith(both)])).code).toBe(0);
    expect(asked).toHaveLength(1);
    const { host } = new URL((await startWeb()).addresses[0] ?? '');
    const file = fileWith(`web: { listen: ["${host}"] }\n`);
    expect((await run(['healthcheck'], { env: { KILLSWITCHD_CONFIG: file } })).code).toBe(0);
  });

  it('ends with 69 where nobody is there, or somebody else', async () => {
    const gone = await run(['healthcheck', '--control', `unix:${join(folder(), 'none.sock')}`]);
    expect(gone.code).toBe(69);
    const other = await daemonAt({ tcp: true }, () => ({ status: 404, text: 'not here' }));
    for (const flag of ['--web', '--control']) {
      const says = expect.stringMatching(/no killswitchd daemon \(HTTP 404\)$/);
      expect(await run(['healthcheck', flag, other.address])).toMatchObject({ code: 69, err: [says] });
    }
    const file = fileWith('control: { listen: [] }\nweb: { listen: [] }\n');
    expect((await run(['healthcheck', '--config', file])).code).toBe(78);
  });

  it('gives a daemon that hangs 2 s', async () => {
    const socket = join(folder(), 'control.sock');
    const server = createServer(() => {}).listen(socket);
    const startedMs = performance.now();
    const asked = await run(['healthcheck', '--control', `unix:${socket}`]);
    server.close();
    const says = expect.stringMatching(/has not answered within 2 s$/);
    expect(asked).toMatchObject({ code: 69, err: [says] });
    expect(performance.now() - startedMs).toBeGreaterThan(1900);
  });

  it.each(['--live --ready', '--exclude bots', '--bot main'])('makes no sense with %s', async (flags) => {
    expect((await run(['healthcheck', ...flags.split(' ')])).code).toBe(64);
  });
});
