import type { Headers } from './signed-request.ts';

/** Bodies larger than this are refused with 413. */
export const MAX_BODY_BYTES = 64 * 1024;

/** One HTTP request. `path` may carry a query; header names are lower case. */
export interface ExchangeRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string | Buffer;
}

/** The path without its query, and without the address that RFC 9112 allows before it. */
export function pathOf({ path }: ExchangeRequest): string {
  const start = /^https?:\/\/[^/?]*/i.exec(path)?.[0].length ?? 0;
  const query = path.indexOf('?', start);
  return path.slice(start, query === -1 ? undefined : query);
}

export function bytesOf({ body }: ExchangeRequest): Buffer {
  return typeof body === 'string' ? Buffer.from(body, 'utf8') : body;
}
