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
  /** Where it writes, when it ends, when each renewal was planned and when it was sent. */
  readonly record: string;
  /** Where ccxt is installed. */
  readonly ccxt?: string;
}

/** Sets the timer of a market, or deletes it where the timeout is null. `done` is called however it ended. */
export type Client = (market: string, timeoutSeconds: number | null, done: () => void) => void;

const PATH = '/api/v4/order/kill-switch';
const KEY = 'bench-key';

let last = 0;
function nextNonce(): string {
  last = Math.max(Date.now(), last + 1);
  return String(last);
}

interface Signed<Headers> {
  readonly body: string;
  readonly headers: Headers;
}

/** What stands in every guide: stringify, base64, createHmac. */
function sign(secret: string, market: string, timeoutSeconds: number | null): Signed<Record<string, string>> {
  const timeout = timeoutSeconds === null ? null : String(timeoutSeconds);
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

/** What both parts of a signature begin with. */
interface LeanKey {
  readonly inner: string;
  readonly outer: Buffer;
}

const BLOCK_BYTES = 128;

function leanKey(secret: string): LeanKey {
  const key = Buffer.alloc(BLOCK_BYTES);
  key.write(secret);
  return {
    inner: Buffer.from(key.map((byte) => byte ^ 0x36)).toString('latin1'),
    outer: Buffer.from(key.map((byte) => byte ^ 0x5c)),
  };
}

/** The least that a signature costs on this runtime: two one-shot hashes over prepared blocks. */
function signLean(
  { inner, outer }: LeanKey,
  market: string,
  timeoutSeconds: number | null,
): Signed<string[]> {
  const timeout = timeoutSeconds === null ? 'null' : `"${timeoutSeconds}"`;
  const body = `{"request":"${PATH}","nonce":"${nextNonce()}","nonceWindow":true,"market":"${market}","timeout":${timeout}}`;
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

function overUndici({ url, connections, secret }: PeerOptions): Client {
  const pool = new Pool(url, { connections, keepAliveTimeout: 60_000 });
  const call = async (market: string, timeoutSeconds: number | null) => {
    const { body, headers } = sign(secret, market, timeoutSeconds);
    const answer = await pool.request({ path: PATH, method: 'POST', body, headers });
    await answer.body.json();
  };
  return (market, timeoutSeconds, done) => void call(market, timeoutSeconds).then(done, done);
}

function overFetch({ url, secret }: PeerOptions): Client {
  const call = async (market: string, timeoutSeconds: number | null) => {
    const { body, headers } = sign(secret, market, timeoutSeconds);
    const answer = await fetch(`${url}${PATH}`, { method: 'POST', body, headers });
    await answer.json();
  };
  return (market, timeoutSeconds, done) => void call(market, timeoutSeconds).then(done, done);
}

function overDispatch({ url, connections, secret }: PeerOptions): Client {
  const pool = new Pool(url, { connections, keepAliveTimeout: 60_000 });
  const key = leanKey(secret);
  return (market, timeoutSeconds, done) => {
    const { body, headers } = signLean(key, market, timeoutSeconds);
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
async function overCcxt({ ccxt, secret, url, markets }: PeerOptions): Promise<Client> {
  const { whitebit: Exchange } = (await import(pathToFileURL(ccxt ?? '').href)) as Ccxt;
  const exchange = new Exchange({ apiKey: KEY, secret, enableRateLimit: false });
  exchange.urls.api.v4.private = `${url}/api/v4`;
  exchange.setMarkets(
    marketNames(markets).map((name) => {
      const [base, quote] = name.split('_');
      return { id: name, symbol: `${base}/${quote}`, base, quote, type: 'spot', spot: true, active: true };
    }),
  );
  return (market, timeoutSeconds, done) => {
    const symbol = market.replace('_', '/');
    void exchange.cancelAllOrdersAfter((timeoutSeconds ?? 0) * 1000, { symbol }).then(done, done);
  };
}

export function marketNames(markets: number): string[] {
  return Array.from({ length: markets }, (_, index) => marketName(index));
}

export async function createClient(options: PeerOptions): Promise<Client> {
  switch (options.kind) {
    case 'undici':
      return overUndici(options);
    case 'fetch':
      return overFetch(options);
    case 'ccxt':
      return await overCcxt(options);
    case 'floor':
      return overDispatch(options);
  }
}
