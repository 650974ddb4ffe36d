import { createSystemClock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import { createClient } from '../exchange/client.ts';
import { ERROR_CODES, RefusedError, UnauthorisedError } from '../exchange/errors.ts';
import { type Edge, EXIT, type ExitCode } from './edge.ts';

/** No exchange has this market: asking about it proves the key and can arm nothing. */
const NO_MARKET = 'KILLSWITCHD_CHECK';

/**
 * `check-config --live`: pings every base address and shows the key to the first one, with the delete of a timer of a
 * market that does not exist: a good key is refused for the market, a bad one for itself. Nothing is armed, nothing of
 * the account is touched. 69 where an address cannot be reached, 77 where the key is refused.
 */
export async function checkLive(config: Config, edge: Edge): Promise<ExitCode> {
  if (config.embeddedExchange) {
    edge.out('Live: nothing to ask, the exchange is embedded.');
    return EXIT.ok;
  }
  const bases = config.exchange.baseUrls;
  const client = createClient({
    bases,
    credentials: () => ({ key: config.secrets.apiKey.reveal(), secret: config.secrets.apiSecret.reveal() }),
    nonce: config.exchange.nonce,
    clock: createSystemClock(),
  });
  try {
    for (const [base, url] of bases.entries()) {
      const latencyMs = await client.ping({ base });
      edge.out(`Live: ${url} answers a ping in ${latencyMs.toFixed(0)} ms.`);
    }
    await showKey(() => client.syncKillSwitch({ market: NO_MARKET, timeoutSeconds: null }));
    edge.out('Live: the exchange accepts the key.');
    return EXIT.ok;
  } catch (error) {
    edge.err(`Live: ${error instanceof Error ? error.message : String(error)}`);
    return error instanceof UnauthorisedError ? EXIT.refused : EXIT.unreachable;
  } finally {
    await client.close();
  }
}

/** What the exchange says of a request whose key it has accepted. */
const KEY_ACCEPTED: readonly number[] = [ERROR_CODES.validation, ERROR_CODES.market];

async function showKey(call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof RefusedError && KEY_ACCEPTED.includes(error.code))) throw error;
  }
}
