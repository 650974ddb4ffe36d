import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Dispatcher, Pool } from 'undici';
import { marketNames, nowMs } from './protocol.ts';

/** A loop that a user might write instead, as a process: `node peer.ts OPTIONS`. */
export interface PeerOptions {
  readonly kind: 'undici' | 'floor' | 'ccxt';
  readonly url: string;
  readonly markets: number;
  readonly timeoutSeconds: number;
  readonly periodMs: number;
  readonly secret: string;
  /** Where ccxt is installed. */
  readonly ccxt?: string;
}

const CONNECTIONS = 64;
const TICK_MS = 25;
const PATH = '/api/v4/order/kill-switch';
const options = JSON.parse(process.argv[2] ?? '{}') as PeerOptions;
const { kind, url, markets, timeoutSeconds, periodMs, secret } = options;
const names = marketNames(markets);
const pool = new Pool(url, { connections: CONNECTIONS, keepAliveTimeout: 60_000 });
const ignore = () => undefined;

let last = 0;

/** What stands in every guide: stringify, base64, createHmac. */
function sign(market: string): Dispatcher.DispatchOptions {
  last = Math.max(Date.now(), last + 1);
  const timeout = String(timeoutSeconds);
  const body = JSON.stringify({ request: PATH, nonce: String(last), nonceWindow: true, market, timeout });
  const payload = Buffer.from(body).toString('base64');
  const headers = {
    'content-type': 'application/json',
    'X-TXC-APIKEY': 'bench-key',
    'X-TXC-PAYLOAD': payload,
    'X-TXC-SIGNATURE': createHmac('sha512', secret).update(payload).digest('hex'),
  };
  return { path: PATH, method: 'POST', body, headers };
}

async function renew(market: string): Promise<void> {
  const answer = await pool.request(sign(market));
  await answer.body.json();
}

/** By ccxt, as its users call what it has no function for. */
async function byCcxt(): Promise<typeof renew> {
  const file = join(options.ccxt ?? '', 'node_modules/ccxt/js/ccxt.js');
  const { default: ccxt } = await import(pathToFileURL(file).href);
  const exchange = new ccxt.whitebit({ apiKey: 'bench-key', secret, enableRateLimit: false });
  exchange.urls.api.v4 = { public: `${url}/api/v4/public`, private: `${url}/api/v4` };
  return (market) => exchange.v4PrivatePostOrderKillSwitch({ market, timeout: String(timeoutSeconds) });
}

/** The least that a renewal costs with undici. */
function renewBarely(market: string): void {
  const chunks: Buffer[] = [];
  pool.dispatch(sign(market), {
    onRequestStart: ignore,
    onResponseStart: ignore,
    onResponseData: (_, chunk) => void chunks.push(chunk),
    onResponseEnd: () => void JSON.parse(Buffer.concat(chunks).toString()),
    onResponseError: ignore,
  });
}

/** An interval per market, started where the market stands on the grid. */
function pace(send: typeof renew): void {
  names.forEach((name, index) => {
    const next = () => void send(name).catch(ignore);
    const begin = () => setInterval(next, periodMs) && next();
    next();
    setTimeout(begin, (periodMs * index) / markets);
  });
}

/** One timer for all: what is due is sent together. */
function paceInTicks(): void {
  names.forEach(renewBarely);
  const startMs = nowMs();
  let sent = 0;
  setInterval(() => {
    const due = Math.floor(((nowMs() - startMs) * markets) / periodMs) + 1;
    for (; sent < due; sent += 1) renewBarely(names[sent % markets] ?? '');
  }, TICK_MS);
}

if (kind === 'floor') paceInTicks();
else pace(kind === 'ccxt' ? await byCcxt() : renew);
