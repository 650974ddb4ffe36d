import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { recipe } from '../docs/recipes.ts';
import { startProcess } from '../liveness/started.ts';
import { keptAddress, stageFor } from './harness.ts';
import { eventually, ROOT } from './program.ts';
import { ofKind } from './simulated-exchange.ts';

const STAND_INS = join(ROOT, 'test/process/stand-ins');
/** Each with the market that it trades, and the program that its host is stood in for by. */
const HOST = [join(STAND_INS, 'host.py')];
const RECIPES = [
  { heading: 'A loop in Python', market: 'LOOP_USDT', bot: 'loop', host: [] },
  { heading: 'ccxt in Python', market: 'CCXT_USDT', bot: 'ccxt', host: [] },
  { heading: 'freqtrade', market: 'FREQTRADE_USDT', bot: 'freqtrade', host: HOST },
  { heading: 'hummingbot', market: 'HUMMINGBOT_USDT', bot: 'hummingbot', host: HOST },
] as const;
const TRADES = 'orders go out here';

test.concurrent('the recipes in Python trade while they are armed, and lose their orders when they are killed; ccxt, freqtrade and hummingbot are stand-ins that call the same hooks', {
  timeout: 120_000,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  await exchange.placeOrders(...RECIPES.map(({ market }) => ({ market, type: 'spot' as const })));
  const control = `unix:${join(stage.directory, 'control.sock')}`;
  const bots = RECIPES.map(({ heading, bot, host, market }) => {
    const [program = ''] = recipe(heading, 'python');
    const file = join(stage.directory, `${bot}_bot.py`);
    writeFileSync(file, program);
    const started = startProcess(context, 'python3', [...host, file], {
      KILLSWITCHD_CONTROL: control,
      KILLSWITCHD_BOT: bot,
      PYTHONPATH: `${STAND_INS}:${join(ROOT, 'clients/python')}`,
      PYTHONDONTWRITEBYTECODE: '1',
      BOT_API_KEY: 'demo-key',
      BOT_API_SECRET: 'demo-secret',
    });
    return { bot, market, started };
  });
  await eventually('a beat before the daemon is there', 30_000, () =>
    bots.every(({ started }) => started.output().includes('no answer from unix:')),
  );
  expect(bots.filter(({ started }) => started.output().includes(TRADES))).toEqual([]);
  await stage.daemon({
    exchange: exchange.url,
    markets: RECIPES.map(({ market, bot }) => ({ market, bot, timeoutSeconds: 5 })),
    config: { liveness: { mode: 'beat', ttlSeconds: 5 }, control: { listen: [control] } },
  });
  for (const { bot, started } of bots)
    await eventually(`orders of ${bot}`, 30_000, () => started.output().includes(TRADES));
  expect(ofKind(await exchange.events(), 'order-cancelled')).toEqual([]);
  for (const { started } of bots) started.signal('SIGKILL');
  for (const { market } of bots)
    await exchange.event('order-cancelled', 40_000, (event) => event.market === market);
});

test.concurrent('bots on asyncio live through a daemon that is late, hangs, dies and comes back, over a unix socket and over TCP with a token', {
  timeout: 120_000,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  const tokenFile = join(stage.directory, 'token');
  writeFileSync(tokenFile, 'T7-the.token_of+this/test=9876543210\n', { mode: 0o600 });
  const ways = {
    unix: { KILLSWITCHD_CONTROL: `unix:${join(stage.directory, 'control.sock')}` },
    tcp: { KILLSWITCHD_CONTROL: await keptAddress(context), KILLSWITCHD_CONTROL_TOKEN_FILE: tokenFile },
  };
  const listen = Object.values(ways).map(({ KILLSWITCHD_CONTROL: address }) => address);
  const daemon = () =>
    stage.daemon({
      exchange: exchange.url,
      markets: [
        { market: 'UNIX_USDT', timeoutSeconds: 5, bot: 'unix' },
        { market: 'TCP_USDT', timeoutSeconds: 5, bot: 'tcp' },
      ],
      config: { liveness: { mode: 'beat', ttlSeconds: 10 }, control: { listen, tokenFile } },
    });
  const driver = join(ROOT, 'test/liveness/drivers/asyncio-bot.py');
  const bots = Object.entries(ways).map(([bot, env]) => {
    const started = startProcess(context, 'python3', ['-X', 'dev', '-W', 'error', driver], {
      ...env,
      KILLSWITCHD_BOT: bot,
      PYTHONPATH: join(ROOT, 'clients/python'),
      PYTHONDONTWRITEBYTECODE: '1',
    });
    return { ...started, said: () => started.output().match(/^(armed|held back)$/gm) ?? [] };
  });
  const comeTo = (count: number) =>
    eventually(`${count} changes in ${bots.map(({ output }) => output()).join()}`, 60_000, () =>
      bots.every(({ said }) => said().length >= count),
    );
  await comeTo(1);
  const first = await daemon();
  await comeTo(2);
  for (const [index, signal] of (['SIGSTOP', 'SIGCONT', 'SIGKILL'] as const).entries()) {
    first.signal(signal);
    await comeTo(3 + index);
  }
  const second = await daemon();
  await comeTo(6);
  for (const { signal, ended, said, output } of bots) {
    signal('SIGTERM');
    expect(await ended).toEqual([0, null]);
    expect(said()).toEqual(['held back', 'armed', 'held back', 'armed', 'held back', 'armed']);
    const [, problem, longest] = /^goodbye: (.*) longest: (.*)$/m.exec(output()) ?? [];
    expect(problem).toBe('None');
    // A beat that blocked the loop would take its whole second; the machine may be busy.
    expect(Number(longest)).toBeLessThan(0.9);
    expect(output()).not.toMatch(/Warning|Traceback|ignored/);
  }
  await eventually('deleted timers', 15_000, () => second.logged('deleted')[1]);
});
