import { join } from 'node:path';
import { describe, expect, type TestContext, test } from 'vitest';
import type { DaemonProcess } from './daemon.ts';
import { stageFor } from './harness.ts';
import { eventually } from './program.ts';
import { writeConfig } from './reloading.ts';

const MARKETS = [
  { market: 'AAA_USDT', bot: 'maker' },
  { market: 'GONE_USDT', bot: 'taker' },
];

/** A daemon whose bots have not come yet; the exchange knows no market of the bot `taker`. */
async function play(context: TestContext) {
  const stage = stageFor(context);
  const exchange = await stage.exchange({ markets: ['AAA_USDT', 'BBB_USDT'] });
  const socket = join(stage.directory, 'control.sock');
  const config = { liveness: { mode: 'beat' }, control: { listen: [`unix:${socket}`] } };
  const daemon = await stage.daemon({ exchange: exchange.url, markets: MARKETS, config });
  await eventually('the refusal', 15_000, () => daemon.logged('refused')[0] ?? null);
  const ask = async (...args: readonly string[]) => {
    const asked = await stage.run(args);
    const { code } = await asked.exit();
    return { code, out: asked.stdout(), err: asked.stderr() };
  };
  return { exchange, daemon, socket, ask };
}

const contentOf = (daemon: DaemonProcess, exchange: string, socket: string, markets: readonly object[]) => {
  const web = { listen: ['127.0.0.1:0'] };
  const control = { listen: [`unix:${socket}`] };
  const content = { exchange: { baseUrls: [exchange] }, liveness: { mode: 'beat' }, web, control, markets };
  writeConfig(daemon, JSON.stringify(content));
};

describe.concurrent('a market that the exchange refuses', { timeout: 60_000 }, () => {
  test('holds back the bot that trades it, and no other', async (context) => {
    const { daemon, socket, ask } = await play(context);
    const ready = ['healthcheck', '--ready', '--exclude', 'bots', '--control', `unix:${socket}`];
    expect(await ask(...ready, '--bot', 'maker', '--wait', '5')).toMatchObject({
      code: 0,
      out: 'The daemon is ready for the bot maker.\n',
    });
    const taker = await ask(...ready, '--bot', 'taker', '--wait', '1');
    expect(taker).toMatchObject({ code: 69, out: '' });
    expect(taker.err).toMatch(/waits: .*\n.*is not ready for the bot taker: timer\/GONE_USDT: rejected/);
    expect(taker.err).not.toContain('AAA_USDT');
    expect((await ask(...ready)).code).toBe(69);
    const unknown = await ask(...ready, '--bot', 'makr');
    expect([unknown.code, unknown.err]).toEqual([64, expect.stringContaining('did you mean maker')]);

    const statusOf = async (query: string) => (await daemon.get(`/readyz?${query}`)).status;
    expect(await statusOf('exclude=bots&bot=maker')).toBe(200);
    expect(await statusOf('bot=maker')).toBe(200);
    expect(await statusOf('exclude=bots&bot=taker')).toBe(503);
    expect(await statusOf('exclude=bots')).toBe(503);
    expect(await statusOf('bot=makr')).toBe(404);
    const web = new URL(await daemon.web()).host;
    const byWeb = ['healthcheck', '--ready', '--exclude', 'bots', '--web', web, '--bot'];
    expect((await ask(...byWeb, 'maker')).code).toBe(0);
    expect((await ask(...byWeb, 'taker')).code).toBe(69);
    expect((await ask(...byWeb, 'makr')).code).toBe(64);
  });

  test('makes a reload end as arm does, and the configuration is in force', async (context) => {
    const { exchange, daemon, socket, ask } = await play(context);
    const control = ['--control', `unix:${socket}`];
    contentOf(daemon, exchange.url, socket, [...MARKETS, { market: 'LOST_USDT', bot: 'maker' }]);
    const reload = await ask('reload', ...control);
    expect(reload.code).toBe((await ask('arm', 'LOST_USDT', ...control)).code);
    expect(reload.code).toBe(69);
    expect(reload.err).toMatch(/LOST_USDT is refused by the exchange.*\n.*the configuration is in force/);
    contentOf(daemon, exchange.url, socket, [...MARKETS, { market: 'BBB_USDT', bot: 'maker' }]);
    const still = await ask('reload', ...control);
    expect([still.code, still.err]).toEqual([69, expect.stringContaining('refuses GONE_USDT')]);
    contentOf(daemon, exchange.url, socket, [MARKETS[0] ?? {}, { market: 'BBB_USDT', bot: 'maker' }]);
    expect((await ask('reload', ...control)).code).toBe(0);
  });
});
