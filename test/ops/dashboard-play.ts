import { readFileSync } from 'node:fs';
import type { TestContext } from 'vitest';
import { asker, controlsOf } from '../process/control.ts';
import { stageFor } from '../process/harness.ts';
import { sleep } from '../process/program.ts';
import { reloadBySignal, writeConfig } from '../process/reloading.ts';
import { type Prometheus, startPrometheus } from './monitoring.ts';

export interface Played {
  readonly prometheus: Prometheus;
  /** Unix seconds. */
  readonly from: number;
  readonly to: number;
}

const nowSeconds = () => Date.now() / 1000;

/**
 * About two minutes in the life of a daemon with two bots, scraped every second: renewals, an outage that lets timers
 * lapse, a bot that falls silent and comes back, commands, a wrong configuration, a standstill, and a clean stop.
 */
export async function playForDashboards(context: TestContext): Promise<Played> {
  const stage = stageFor(context);
  const exchange = await stage.exchangeProcess([
    '--listen',
    '127.0.0.1:0',
    '--markets',
    'AAA_USDT,BBB_USDT,CCC_USDT',
  ]);
  const daemon = await stage.daemon({
    exchange: exchange.url,
    markets: [
      { market: 'AAA_USDT', timeoutSeconds: 5, bot: 'maker' },
      { market: 'BBB_USDT', timeoutSeconds: 10, bot: 'maker' },
      { market: 'CCC_USDT', timeoutSeconds: 60, bot: 'taker' },
    ],
    config: {
      liveness: { mode: 'beat', ttlSeconds: 4, startupGraceSeconds: 10 },
      control: { listen: ['127.0.0.1:0'] },
      ping: { everySeconds: 1 },
    },
  });
  const [control = ''] = await controlsOf(daemon);
  const ask = asker(context, control, 2);
  const silent = new Set<string>();
  const beating = setInterval(() => {
    for (const bot of ['maker', 'taker']) {
      if (!silent.has(bot)) void ask(`/v1/beat?bot=${bot}`, { body: { seq: Date.now() } }).catch(() => {});
    }
  }, 500);
  context.onTestFinished(() => clearInterval(beating));

  const { host } = new URL(await daemon.web());
  const prometheus = await startPrometheus(context, stage.directory, (text) =>
    text
      .replaceAll('17477', new URL(`http://${host}`).port)
      .replaceAll('5s', '1s')
      .replaceAll('4s', '1s'),
  );
  const from = nowSeconds();
  await sleep(12_000);
  // A copy of an old beat, and a request that asks for nothing there is.
  await ask('/v1/beat?bot=maker', { body: { seq: 1 } });
  await ask('/v1/nothing');

  await exchange.addFaults({ kind: 'maintenance', forMs: 22_000 });
  await sleep(32_000);
  silent.add('maker');
  await sleep(18_000);
  silent.clear();
  await sleep(5000);

  await ask('/v1/pause', { body: { markets: ['AAA_USDT'], forSeconds: 60 } });
  await ask('/v1/trip', { body: { markets: ['BBB_USDT'] } });
  await sleep(3000);
  await ask('/v1/arm', { body: { markets: ['AAA_USDT', 'BBB_USDT'] } });
  const before = readFileSync(daemon.configFile, 'utf8');
  // The exchange does not know this market.
  const { markets, ...others } = JSON.parse(before) as { markets: unknown[] };
  const unknown = { market: 'DDD_USDT', timeoutSeconds: 60, bot: 'taker' };
  writeConfig(daemon, JSON.stringify({ ...others, markets: [...markets, unknown] }));
  await reloadBySignal(daemon, 'reload-applied');
  await sleep(2500);
  await ask('/v1/arm', { body: { markets: ['DDD_USDT'], waitSeconds: 1 } });
  writeConfig(daemon, '{"markets": 7}');
  await reloadBySignal(daemon, 'reload-rejected');
  await sleep(3000);
  daemon.signal('SIGSTOP');
  await sleep(1500);
  daemon.signal('SIGCONT');
  await sleep(8000);
  clearInterval(beating);
  daemon.signal('SIGTERM');
  await daemon.exit();
  await sleep(6000);
  return { prometheus, from, to: nowSeconds() };
}
