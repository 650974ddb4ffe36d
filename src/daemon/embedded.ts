import type { Clock } from '../ports.ts';
import { createNarrator } from '../simulator/event-log.ts';
import { type SimulatedServer, startSimulatedServer } from '../simulator/server.ts';
import { DEMO_ORDERS } from '../simulator/state.ts';
import type { Log } from '../telemetry/log.ts';
import type { Credentials } from './credentials.ts';

/** Starts the exchange that the daemon brings along, with orders to guard, and tells the log what it does. */
export async function startEmbedded(
  clock: Clock,
  { key, secret }: Credentials,
  { logger }: Log,
): Promise<SimulatedServer> {
  const server = await startSimulatedServer({
    clock,
    listen: { host: '127.0.0.1', port: 0 },
    exchange: { keys: [{ key, secret, account: 'main' }] },
    orders: DEMO_ORDERS,
  });
  const narrate = createNarrator((line) => logger.info({ event: 'exchange-said' }, `Exchange: ${line}`));
  server.exchange.log.subscribe(narrate);
  return server;
}
