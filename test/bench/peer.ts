import { createHmac, hash } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import { Pool } from 'undici';
import { marketName } from './protocol.ts';

/** A loop that a user might write instead, as a process: `node peer.ts OPTIONS`. */
export interface PeerOptions {
  readonly kind: 'undici' | 'fetch' | 'ccxt' | 'floor';
  readonly url: string;
  readonly markets: number;
  readonly timeoutSeconds: number;
  /** 0: as fast as it goes, with `connections` loops. */
  readonly periodMs: number;
  readonly connections: number;
  readonly secret: string;
  /** Where ccxt is installed. */
  readonly ccxt?: string;
}

const PATH = '/api/v4/order/kill-switch';
const KEY = 'bench-key';
const TICK_MS = 25;
const options = JSON.parse(process.argv[2] ?? '{}') as PeerOptions;
const { kind, url, markets, timeoutSeconds, periodMs, connections, secret } = options;
const names = Array.from({ length: markets }, (_, index) => marketName(index));
const timeout = String(timeoutSeconds);

let last = 0;
function nextNonce(): string {
  last = Math.max(Date.now(), last + 1);
  return String(last);
}

/** What stands in every guide: stringify, base64, createHmac. */
function sign(market: string): { readonly body: string; readonly headers: Record<string, string> } {
  const body = JSON.stringify({ request: PATH, nonce: nextNonce(), nonceWindow: true, market, timeout });
  const payload = Buffer.from(body).toString('base64');
  const signature = createHmac('sha512', secret).update(payload).digest('hex');
  return {
    body,
    headers: {
      'content-type': 'application/json',
      'X-TXC-APIKEY': KEY,
      'X-TXC-PAYLOAD': payload,
      'X-TXC-SIGNATURE': signature,
    },
  };
}

const BLOCK_BYTES = 128;
const key = Buffer.alloc(BLOCK_BYTES);
key.write(secret);
const inner = Buffer.from(key.map((byte) => byte ^ 0x36)).toString('latin1');
const outer = Buffer.from(key.map((byte) => byte ^ 0x5c));

/** The least that a signature costs on this runtime: two one-shot hashes over prepared blocks. */
function signLean(market: string): { readonly body: string; readonly headers: string[] } {
  const body = `{"request":"${PATH}","nonce":"${nextNonce()}","nonceWindow":true,"market":"${market}","timeout":"${timeout}"}`;
  const payload = btoa(body);
  const first = hash('sha512', Buffer.from(inner + payload, 'latin1'), 'buffer');
  const signature = hash('sha512', Buffer.concat([outer, first]), 'hex');
  return {
    body,
    headers: [
      'content-type',
      'application/json',
      'X-TXC-APIKEY',
      KEY,
      'X-TXC-PAYLOAD',
      payload,
      'X-TXC-SIGNATURE',
      signature,
    ],
  };
}

type Renew = (market: string) => Promise<void>;

function overUndici(): Renew {
  const pool = new Pool(url, { connections, keepAliveTimeout: 60_000 });
  return async (market) => {
    const { body, headers } = sign(market);
    const answer = await pool.request({ path: PATH, method: 'POST', body, headers });
    await answer.body.json();
  };
}

function overFetch(): Renew {
  return async (market) => {
    const { body, headers } = sign(market);
    const answer = await fetch(`${url}${PATH}`, { method: 'POST', body, headers });
    await answer.json();
  };
}

function floor(): { readonly send: (market: string, done: () => void) => void } {
  const pool = new Pool(url, { connections, keepAliveTimeout: 60_000 });
  return {
    send(market, done) {
      const { body, headers } = signLean(market);
      const chunks: Buffer[] = [];
      pool.dispatch(
        { path: PATH, method: 'POST', body, headers },
        {
          onRequestStart: () => undefined,
          onResponseStart: () => undefined,
          onResponseData: (_, chunk) => void chunks.push(chunk),
          onResponseEnd() {
            JSON.parse((chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))?.toString() ?? '');
            done();
          },
          onResponseError: done,
        },
      );
    },
  };
}

interface CcxtExchange {
  urls: { api: { v4: { private: string } } };
  setMarkets(markets: readonly object[]): void;
  cancelAllOrdersAfter(timeoutMs: number, params: object): Promise<unknown>;
}
interface Ccxt {
  readonly whitebit: new (options: object) => CcxtExchange;
}

/** Its own signing and its own call; its limiter, which lets 50 through in a second, is off. */
async function overCcxt(): Promise<Renew> {
  const { whitebit: Exchange } = (await import(pathToFileURL(options.ccxt ?? '').href)) as Ccxt;
  const exchange = new Exchange({ apiKey: KEY, secret, enableRateLimit: false });
  exchange.urls.api.v4.private = `${url}/api/v4`;
  exchange.setMarkets(
    names.map((name) => {
      const [base, quote] = name.split('_');
      return { id: name, symbol: `${base}/${quote}`, base, quote, type: 'spot', spot: true, active: true };
    }),
  );
  return async (market) => {
    await exchange.cancelAllOrdersAfter(timeoutSeconds * 1000, { symbol: market.replace('_', '/') });
  };
}

const ignore = () => undefined;

/** An interval per market, started where the market stands on the grid. */
function pace(renew: Renew): void {
  names.forEach((name, index) => {
    setTimeout(
      () => {
        void renew(name).catch(ignore);
        setInterval(() => void renew(name).catch(ignore), periodMs);
      },
      (periodMs * index) / markets,
    );
  });
}

async function flood(renew: Renew): Promise<void> {
  let at = 0;
  const loop = async () => {
    for (;;) {
      at = (at + 1) % markets;
      await renew(names[at] ?? '').catch(ignore);
    }
  };
  await Promise.all(Array.from({ length: connections }, loop));
}

/** One timer for all: what is due is sent together. */
function paceInTicks({ send }: ReturnType<typeof floor>): void {
  const startMs = performance.now();
  let sent = 0;
  setInterval(() => {
    const due = Math.floor(((performance.now() - startMs) * markets) / periodMs);
    for (; sent < due; sent += 1) send(names[sent % markets] ?? '', ignore);
  }, TICK_MS);
}

function floodLean({ send }: ReturnType<typeof floor>): void {
  let at = 0;
  const again = () => {
    at = (at + 1) % markets;
    send(names[at] ?? '', again);
  };
  for (let lane = 0; lane < connections; lane += 1) again();
}

if (kind === 'floor') {
  if (periodMs > 0) paceInTicks(floor());
  else floodLean(floor());
} else {
  const renew = kind === 'undici' ? overUndici() : kind === 'fetch' ? overFetch() : await overCcxt();
  if (periodMs > 0) pace(renew);
  else await flood(renew);
}
