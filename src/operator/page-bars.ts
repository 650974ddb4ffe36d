/**
 * Moves bars between two states, in the browser. The attribute `transform` of a bar always says where it stands; an
 * animation on top of it drains or fills it smoothly, without work for the page, until the next state differs from where
 * it would be. Who asks for reduced motion gets the attribute alone.
 */
export const BARS_SOURCE = `
const bars = new WeakMap(), lessMotion = matchMedia('(prefers-reduced-motion: reduce)');
const REFILL_MS = 400, SAME = 0.012;
const scaled = (share) => ({ transform: 'scaleX(' + Math.min(1, Math.max(0, share)) + ')' });

function moveBar(bar, share, rate) {
  const old = bars.get(bar);
  const shown = old === undefined ? share : old.share + old.rate * (performance.now() - old.atMs) / 1000;
  if (lessMotion.matches || rate === 0) {
    if (old !== undefined) old.animation.cancel();
    bars.delete(bar);
    return;
  }
  if (old !== undefined && old.rate === rate && Math.abs(shown - share) < SAME) return;
  if (old !== undefined) old.animation.cancel();
  const end = rate < 0 ? 0 : 1, duration = Math.max(1, (end - share) / rate * 1000), refill = Math.min(REFILL_MS, duration / 2);
  const animation = bar.animate([
    { ...scaled(shown), easing: 'ease-out' },
    { ...scaled(share + rate * refill / 1000), offset: refill / duration },
    scaled(end),
  ], { duration, fill: 'forwards' });
  bars.set(bar, { share, rate, atMs: performance.now(), animation });
}
`;
