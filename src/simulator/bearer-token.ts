import type { Refusal } from './answer.ts';
import type { Profile } from './exchange-state.ts';
import {
  type Accepted,
  checkContentType,
  type Headers,
  INVALID_PAYLOAD,
  objectIn,
  UNAUTHORISED,
} from './signed-request.ts';

/** An OAuth 2.0 access token that the exchange gave out, and whose account it opens. */
export interface AccessToken {
  readonly token: string;
  readonly account: string;
}

/** The form of RFC 6750: the word in any case, one space or more, the token. */
const BEARER = /^bearer +([\w.~+/-]+=*)$/i;

/**
 * The checks of an operation with a bearer token: the token, and a JSON object as body. Neither signature nor nonce nor
 * `request` is asked for. The document shows no errors of it; these are those of signed requests.
 */
export function checkBearerRequest(
  request: { readonly headers: Headers; readonly body: Buffer },
  { tokens, profile }: { readonly tokens: ReadonlyMap<string, AccessToken>; readonly profile: Profile },
): Accepted | Refusal {
  const { authorization } = request.headers;
  const [, token = ''] = typeof authorization === 'string' ? (BEARER.exec(authorization) ?? []) : [];
  const known = tokens.get(token);
  if (known === undefined) return UNAUTHORISED;
  const untyped = checkContentType(request.headers, profile);
  if (untyped !== null) return untyped;
  const body = objectIn(request.body);
  return body === null ? INVALID_PAYLOAD : { kind: 'accepted', account: known.account, body };
}
