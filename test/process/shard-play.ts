import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import type { DaemonProcess } from './daemon.ts';
import { stageFor } from './harness.ts';
import { type Events, eventsIn } from './simulated-exchange.ts';

/** The events of each market. */
export function byMarket(events: Events): (market: string) => Events {
  const of = Map.groupBy(events, (event) => ('market' in event ? event.market : ''));
  return (market) => of.get(market) ?? [];
}

const keyOf = (shard: number) => ({ key: `key-of-shard-${shard}`, secret: `secret-of-shard-${shard}` });

/** An exchange as a process, and the means to start shards against it; how long each may take for its stop. */
export async function stageFleet(context: TestContext, markets: number, stopSeconds: readonly number[]) {
  const stage = stageFor(context);
  const eventLog = join(stage.directory, 'events');
  const keyFile = join(stage.directory, 'keys.json');
  writeFileSync(keyFile, JSON.stringify([0, 1, 2].map(keyOf)));
  const exchange = await stage.exchangeProcess(['--keys', keyFile, '--event-log', eventLog]);
  const names = Array.from({ length: markets }, (_, index) => `M${index}_USDT`);
  const start = async (index: number, count: number): Promise<DaemonProcess> => {
    const config = {
      exchange: { nonce: 'window', budgetShare: 0.75 },
      defaults: { timeoutSeconds: 60 },
      shard: { index, count, handoverSeconds: 20 },
      shutdown: { policy: 'handoff', budgetSeconds: stopSeconds[index] },
    };
    const key = { ...keyOf(index), keyName: `shard-${index}.api-key` };
    const daemon = await stage.daemon({ exchange: exchange.url, markets: names, config, ...key });
    await daemon.ready(180_000);
    return daemon;
  };
  return { exchange, names, start, events: () => eventsIn(eventLog) };
}

/** The markets that a daemon guards, by its status. */
export async function ownedBy(daemon: DaemonProcess): Promise<ReadonlySet<string>> {
  const { markets } = JSON.parse((await daemon.get('/api/v1/status')).body) as {
    markets: { market: string }[];
  };
  return new Set(markets.map(({ market }) => market));
}
