import { createSystemClock } from '../../src/clock.ts';
import { createClient } from '../../src/exchange/client.ts';
import { startSimulatedServer } from '../../src/simulator/server.ts';

/** Asks the server at `global` and another one for their timers' markets through one client with two base addresses. */
export async function twoBases(global: string): Promise<readonly string[]> {
  const clock = createSystemClock();
  const eu = await startSimulatedServer({ clock, listen: { host: '127.0.0.1', port: 0 } });
  const credentials = () => ({ key: 'demo-key', secret: 'demo-secret' });
  const client = createClient({ bases: [global, eu.url], credentials, nonce: 'increasing', clock });
  try {
    await client.syncKillSwitch({ market: 'BTC_USDT', timeoutSeconds: 60 }, { base: 0 });
    const before = eu.exchange.timers().length;
    await client.syncKillSwitch({ market: 'BTC_USDT', timeoutSeconds: 60 }, { base: 1 });
    return before === 0 && eu.exchange.timers().length === 1 ? ['global', 'eu'] : [];
  } finally {
    await client.close();
    await eu.close();
  }
}
