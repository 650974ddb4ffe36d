import type { Clock } from '../ports.ts';
import { createNarrator } from '../simulator/event-log.ts';
import { startSimulatedServer } from '../simulator/server.ts';
import { DEMO_ORDERS } from '../simulator/state.ts';
import type { Log } from '../telemetry/log.ts';

/** Starts the exchange that the daemon brings along, with orders to guard. */
export async function startEmbedded(clock: Clock, pair: { readonly key: string; readonly secret: string }) {
  const server = await startSimulatedServer({
    clock,
    listen: { host: '127.0.0.1', port: 0 },
    exchange: { keys: [{ ...pair, account: 'main' }] },
    orders: DEMO_ORDERS,
  });
  return {
    url: server.url,
    close: () => server.close(),
    /** Tells the log what the exchange does from here on. */
    narrate({ logger }: Log): void {
      const say = (line: string) => logger.info({ event: 'exchange-said' }, `Exchange: ${line}`);
      server.exchange.log.subscribe(createNarrator(say));
    },
  };
}
