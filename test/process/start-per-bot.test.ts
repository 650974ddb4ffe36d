import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { run } from '../cli/stage.ts';
import { stageFor } from './harness.ts';
import { eventually } from './program.ts';
import { writeConfig } from './reloading.ts';

const MARKETS = [
  { market: 'AAA_USDT', bot: 'maker' },
  { market: 'GONE_USDT', bot: 'taker' },
];

test('a market that the exchange refuses holds back the bot that trades it and no other, and makes a reload end as arm does', async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange({ markets: ['AAA_USDT', 'BBB_USDT'] });
  const config = { liveness: { mode: 'beat' } };
  const daemon = await stage.daemon({ exchange: exchange.url, markets: MARKETS, control: true, config });
  await eventually('the refusal', 15_000, () => daemon.logged('refused')[0] ?? null);
  const ask = async (...args: readonly string[]) => {
    const { code, out, err } = await run(args);
    return { code, out: out.join('\n'), err: err.join('\n') };
  };

  const ready = ['healthcheck', '--ready', '--exclude', 'bots', '--control', daemon.socket];
  expect(await ask(...ready, '--bot', 'maker', '--wait', '5')).toMatchObject({
    code: 0,
    out: 'The daemon is ready for the bot maker.',
  });
  const taker = await ask(...ready, '--bot', 'taker', '--wait', '1');
  expect(taker).toMatchObject({ code: 69, out: '' });
  expect(taker.err).toMatch(/waits: .*\n.*is not ready for the bot taker: timer\/GONE_USDT: rejected/);
  expect(taker.err).not.toContain('AAA_USDT');
  expect((await ask(...ready)).code).toBe(69);
  const unknown = await ask(...ready, '--bot', 'makr');
  expect([unknown.code, unknown.err]).toEqual([64, expect.stringContaining('did you mean maker')]);
  const byWeb = ['healthcheck', '--ready', '--exclude', 'bots', '--web', new URL(await daemon.web()).host];
  for (const [bot, exitCode, status] of [
    ['maker', 0, 200],
    ['taker', 69, 503],
    ['makr', 64, 404],
  ] as const) {
    expect([bot, (await ask(...byWeb, '--bot', bot)).code]).toEqual([bot, exitCode]);
    expect((await daemon.get(`/readyz?exclude=bots&bot=${bot}`)).status).toBe(status);
  }
  expect((await daemon.get('/readyz?bot=maker')).status).toBe(200);
  expect((await daemon.get('/readyz?exclude=bots')).status).toBe(503);

  const control = ['--control', daemon.socket];
  const content = JSON.parse(readFileSync(daemon.configFile, 'utf8')) as object;
  const reloadWith = (...markets: readonly object[]) => {
    writeConfig(daemon, JSON.stringify({ ...content, markets }));
    return ask('reload', ...control);
  };
  const reload = await reloadWith(...MARKETS, { market: 'LOST_USDT', bot: 'maker' });
  expect(reload.code).toBe((await ask('arm', 'LOST_USDT', ...control)).code);
  expect(reload.code).toBe(69);
  expect(reload.err).toMatch(/LOST_USDT is refused by the exchange.*\n.*the configuration is in force/);
  const still = await reloadWith(...MARKETS, { market: 'BBB_USDT', bot: 'maker' });
  expect([still.code, still.err]).toEqual([69, expect.stringContaining('refuses GONE_USDT')]);
  expect((await reloadWith(MARKETS[0] ?? {}, { market: 'BBB_USDT', bot: 'maker' })).code).toBe(0);
}, 60_000);
