import { isUtf8 } from 'node:buffer';
import type { Refusal } from './answer.ts';
import { type Accepted, type Headers, INVALID_PAYLOAD, parseObject, UNAUTHORISED } from './signed-request.ts';

/** An OAuth 2.0 access token that the exchange gave out, and whose account it opens. */
export interface AccessToken {
  readonly token: string;
  readonly account: string;
}

/** The form of RFC 6750: the word in any case, one space, the token. */
const BEARER = /^bearer ([\w.~+/-]+=*)$/i;

/**
 * The checks of an operation with a bearer token: the token, and a JSON object as body. Neither signature nor nonce nor
 * `request` is asked for. The document shows no errors of it; these are those of signed requests.
 */
export function checkBearerRequest(
  request: { readonly headers: Headers; readonly body: Buffer },
  tokens: ReadonlyMap<string, AccessToken>,
): Accepted | Refusal {
  const { authorization } = request.headers;
  const [, token = ''] = typeof authorization === 'string' ? (BEARER.exec(authorization) ?? []) : [];
  const known = tokens.get(token);
  if (known === undefined) return UNAUTHORISED;
  const body = isUtf8(request.body) ? parseObject(request.body.toString('utf8')) : null;
  return body === null ? INVALID_PAYLOAD : { kind: 'accepted', account: known.account, body };
}
