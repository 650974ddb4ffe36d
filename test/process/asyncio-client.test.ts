import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startProcess } from '../liveness/started.ts';
import { stageFor } from './harness.ts';
import { eventually, freePort, ROOT } from './program.ts';

test.for(['a unix socket', 'TCP with a token'])(
  'a bot on asyncio lives through a daemon that is late, hangs, dies and comes back, over %s',
  { timeout: 180_000 },
  async (way, context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const tokenFile = join(stage.directory, 'token');
    writeFileSync(tokenFile, 'T7-the.token_of+this/test=9876543210\n', { mode: 0o600 });
    const overTcp = way.startsWith('TCP');
    const control = overTcp
      ? `127.0.0.1:${await freePort()}`
      : `unix:${join(stage.directory, 'control.sock')}`;
    const daemon = () =>
      stage.daemon({
        exchange: exchange.url,
        markets: [{ market: 'BTC_USDT', timeoutSeconds: 5 }],
        config: {
          liveness: { mode: 'beat', ttlSeconds: 10 },
          control: { listen: [control], ...(overTcp ? { tokenFile } : {}) },
        },
      });
    const driver = join(ROOT, 'test/liveness/drivers/asyncio-bot.py');
    const bot = startProcess(context, 'python3', ['-X', 'dev', '-W', 'error', driver], {
      KILLSWITCHD_CONTROL: control,
      ...(overTcp ? { KILLSWITCHD_CONTROL_TOKEN_FILE: tokenFile } : {}),
      PYTHONPATH: join(ROOT, 'clients/python'),
      PYTHONDONTWRITEBYTECODE: '1',
    });
    const said = () => bot.output().match(/^(armed|held back)$/gm) ?? [];
    const comesTo = (count: number) =>
      eventually(`${count} changes in ${bot.output()}`, 60_000, () => (said().length >= count ? true : null));
    await comesTo(1);
    const first = await daemon();
    await comesTo(2);
    first.signal('SIGSTOP');
    await comesTo(3);
    first.signal('SIGCONT');
    await comesTo(4);
    first.signal('SIGKILL');
    await comesTo(5);
    const second = await daemon();
    await comesTo(6);
    bot.signal('SIGTERM');
    expect(await bot.ended).toEqual([0, null]);
    expect(said()).toEqual(['held back', 'armed', 'held back', 'armed', 'held back', 'armed']);
    const [, problem, longest] = /^goodbye: (.*) longest: (.*)$/m.exec(bot.output()) ?? [];
    expect(problem).toBe('None');
    // A beat that blocked the loop would take its whole second; the machine may be busy.
    expect(Number(longest)).toBeLessThan(0.9);
    expect(bot.output()).not.toMatch(/Warning|Traceback|ignored/);
    await eventually('a deleted timer', 15_000, () => second.logged('deleted')[0] ?? null);
  },
);
