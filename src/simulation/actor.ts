import { encodePayload, signPayload } from '../exchange/sign.ts';
import type { ApiKey } from '../simulator/signed-request.ts';
import type { SimulatedExchange } from '../simulator/simulated-exchange.ts';

/** Somebody else with a key of the same account. */
export const ACTOR_KEY: ApiKey = { key: 'key-actor', secret: 'secret-actor', account: 'main' };

const PATH = '/api/v4/order/kill-switch';

/** Changes timers behind the daemons' backs, by the same API that they use. */
export function createActor(exchange: SimulatedExchange) {
  let nonce = 1;

  /** `timeoutSeconds` null deletes. `nowMs` is the exchange's clock, Unix milliseconds. */
  function sync(market: string, timeoutSeconds: number | null, nowMs: number): void {
    nonce += 1;
    const timeout = timeoutSeconds === null ? null : String(timeoutSeconds);
    const body = JSON.stringify({ request: PATH, nonce: String(nonce), market, timeout, types: null });
    const payload = encodePayload(body);
    const headers = {
      'content-type': 'application/json',
      'x-txc-apikey': ACTOR_KEY.key,
      'x-txc-payload': payload,
      'x-txc-signature': signPayload(payload, ACTOR_KEY.secret),
    };
    exchange.handle({ method: 'POST', path: PATH, headers, body }, nowMs);
  }

  return {
    sync,
    /** A request that changes nothing and counts against the limit. */
    knock: (nowMs: number): void => sync('', null, nowMs),
  };
}
