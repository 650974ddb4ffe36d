import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { recipe } from '../docs/sections.ts';
import { startProcess } from '../liveness/started.ts';
import { stageFor } from './harness.ts';
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

test('the recipes in Python trade while they are armed, and lose their orders when they are killed; ccxt, freqtrade and hummingbot are stand-ins that call the same hooks', {
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
