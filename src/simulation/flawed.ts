import type { Flaw } from '../core/flaws.ts';
import type { NonceSource } from '../exchange/nonce.ts';
import type { Clock, Exchange } from '../ports.ts';

/** Canary `wall-clock-nonce`: nonces are the time of day, whatever was given out before. */
export function flawedNonces(flaw: Flaw | null): { readonly nonces?: NonceSource } {
  if (flaw !== 'wall-clock-nonce') return {};
  const next: NonceSource['next'] = ({ wallMs }) => String(Math.floor(wallMs));
  return { nonces: { next, accepted: () => undefined, refused: () => undefined } };
}

/**
 * Canary `limiter-on-wall-clock`: a limiter that lets everything through at once, but after a step back of the wall
 * clock nothing before the old time has come round, and nobody goes past it.
 */
export function flawedLimiter(flaw: Flaw | null, clock: Clock): Exchange['acquire'] | null {
  if (flaw !== 'limiter-on-wall-clock') return null;
  let latestMs = Number.NEGATIVE_INFINITY;
  return (_permits, _withinMs, granted) => {
    const { wallMs } = clock.now();
    const behindMs = latestMs - wallMs;
    latestMs = Math.max(latestMs, wallMs);
    if (behindMs > 0) return clock.after(behindMs, () => granted('in-turn'));
    granted('in-turn');
    return () => {};
  };
}
