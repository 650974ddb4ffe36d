import { createSystemClock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import type { OrderType } from '../core/events.ts';
import type { Verdict } from '../exchange/classify.ts';
import { createExchange } from '../exchange/exchange.ts';
import type { Exchange } from '../ports.ts';
import { type Edge, EXIT, type ExitCode } from './edge.ts';

export interface LiveResult {
  readonly code: ExitCode;
  /** Of the first base address, as pings found it; null where nothing was asked. */
  readonly roundTripMs: number | null;
}

/** No exchange has this market. */
const NO_MARKET = 'KILLSWITCHD_CHECK';
/** The first one opens the connection. */
const PINGS = 5;
const PING_TIMEOUT_MS = 5000;
const ANSWER_WITHIN_MS = 10_000;
/** The search for a nonce that counts, after a clock that was far ahead, takes eight. */
const MOST_TRIES = 10;

/**
 * `check-config --live`: pings every base address, shows the key to the first one, and asks it about every market. What
 * it sends is refused by the API document whatever the market is, a timer of 1 s of an order type that there is not: no
 * timer is touched. 69 where an address cannot be reached, 77 where the key is refused, 78 for an unknown market.
 */
export async function checkLive(config: Config, edge: Pick<Edge, 'out' | 'err'>): Promise<LiveResult> {
  if (config.embeddedExchange) {
    edge.out('Live: nothing to ask, the exchange is embedded.');
    return { code: EXIT.ok, roundTripMs: null };
  }
  const bases = config.exchange.baseUrls;
  const exchange = createExchange({
    bases,
    allowPlainHttp: config.exchange.allowPlainHttp,
    credentials: () => ({ key: config.secrets.apiKey.reveal(), secret: config.secrets.apiSecret.reveal() }),
    nonce: config.exchange.nonce,
    clock: createSystemClock(),
  });
  const markets = config.markets.map(({ market }) => market);
  try {
    const measured: number[] = [];
    for (const [base, url] of bases.entries()) {
      const latencyMs = await measure(exchange, base);
      measured.push(latencyMs);
      edge.out(`Live: ${url} answers a ping in ${latencyMs.toFixed(0)} ms.`);
    }
    const roundTripMs = measured[0] ?? null;
    const told = await ask(exchange, NO_MARKET);
    if (told.kind === 'unauthorised')
      return refuse(edge, EXIT.refused, roundTripMs, `the exchange refuses the key: ${told.detail}`);
    if (told.kind !== 'refused') return refuse(edge, EXIT.unreachable, roundTripMs, detailOf(told));
    edge.out('Live: the exchange accepts the key.');
    if (!tellsOfMarket(told)) {
      edge.out('Live: the exchange does not say whether it knows a market.');
      return { code: EXIT.ok, roundTripMs };
    }
    const unknown: string[] = [];
    for (const market of markets) if (tellsOfMarket(await ask(exchange, market))) unknown.push(market);
    for (const market of unknown) edge.err(`Live: the exchange does not know the market ${market}.`);
    if (unknown.length > 0) return { code: EXIT.config, roundTripMs };
    edge.out(
      `Live: the exchange knows ${markets.length === 1 ? 'the market' : `all ${markets.length} markets`}.`,
    );
    return { code: EXIT.ok, roundTripMs };
  } catch (error) {
    return refuse(edge, EXIT.unreachable, null, error instanceof Error ? error.message : String(error));
  } finally {
    await exchange.close();
  }
}

function refuse(
  edge: Pick<Edge, 'err'>,
  code: ExitCode,
  roundTripMs: number | null,
  why: string,
): LiveResult {
  edge.err(`Live: ${why}`);
  return { code, roundTripMs };
}

/** The median of some pings, in milliseconds. Rejects where one is not answered. */
async function measure(exchange: Exchange, base: number): Promise<number> {
  const latencies: number[] = [];
  for (let pings = 0; pings < PINGS; pings += 1) {
    const latencyMs = await new Promise<number>((resolve, reject) => {
      exchange.ping(base, PING_TIMEOUT_MS, (outcome) => {
        if (outcome.ok) resolve(outcome.latencyMs);
        else reject(new Error(outcome.detail));
      });
    });
    if (pings > 0) latencies.push(latencyMs);
  }
  return latencies.toSorted((one, other) => one - other)[Math.floor(latencies.length / 2)] ?? 0;
}

/** Resolves with the refusal of what is refused for every market. A stale nonce is followed by others further ahead. */
async function ask(exchange: Exchange, market: string): Promise<Verdict> {
  for (let tries = 1; ; tries += 1) {
    const told = await askOnce(exchange, market);
    if (told.kind !== 'nonce' || tries === MOST_TRIES) return told;
  }
}

function askOnce(exchange: Exchange, market: string): Promise<Verdict> {
  const types = ['none'] as unknown as readonly OrderType[];
  const request = { market, timeoutSeconds: 1, types, base: 0, fresh: false, mayWrite: () => true };
  return new Promise((resolve) => {
    const giveUp = exchange.sync(request, (outcome) => {
      end();
      resolve(outcome);
    });
    const end = createSystemClock().after(ANSWER_WITHIN_MS, giveUp);
  });
}

/** Of all that is wrong with such a request the exchange names the market, too. */
function tellsOfMarket(told: Verdict): boolean {
  return told.kind === 'refused' && (told.code === 31 || 'market' in (told.fields ?? {}));
}

function detailOf(told: Verdict): string {
  return 'detail' in told ? told.detail : `the exchange carried out what it must refuse: ${told.kind}`;
}
