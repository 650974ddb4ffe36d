import { isLoopback } from '../util/loopback.ts';

/**
 * The origin of a base address. Throws where it is not `https://host[:port]`, or `http://` of the loopback: the
 * headers carry the API key.
 */
export function originOf(base: string): string {
  if (!URL.canParse(base))
    throw new Error(`exchange address "${base}" is not a URL; write https://HOST[:PORT]`);
  const url = new URL(base);
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new Error(`exchange address with "${url.protocol}"; allowed: https: (http: only to loopback)`);
  if (url.username !== '' || url.password !== '')
    throw new Error(`exchange address of ${url.host} names a user or password; write ${url.origin}`);
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '')
    throw new Error(`exchange address "${base}" goes on after the host; write ${url.origin}`);
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw new Error(
      `exchange address "${base}": plain http is allowed only to 127.0.0.1, [::1] or localhost; write https://${url.host}`,
    );
  }
  return url.origin;
}
