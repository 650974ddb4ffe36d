import { hurry } from './due.ts';
import type { Effect } from './events.ts';
import type { Attempt, CoreState } from './state.ts';
import { KEY_PROBE_MS, LOOKS } from './timing.ts';

/** The exchange accepted the key: whatever was latched because of it goes on. */
export function acceptKey(state: CoreState, out: Effect[]): void {
  state.authorisedOnce = true;
  for (const market of state.keyRefusers.splice(0)) market.refusedAlone = true;
  state.unauthorisedStreak = 0;
  if (state.unauthorised === null) return;
  state.unauthorised = null;
  out.push({ kind: 'notice', notice: { kind: 'authorised-again' } });
  for (const market of state.markets) if (market.refused === null) hurry(state, market);
}

/** The exchange refused the key. One that was good once gets a second look; then everything waits for the slow probe. */
export function latchKey(
  state: CoreState,
  attempt: Attempt,
  { status, detail }: { readonly status: number; readonly detail: string },
  out: Effect[],
): void {
  // Answers to what was signed with the key before, or sent before the first refusal came, are no second look.
  if (attempt.writtenMs < state.keySinceMs || attempt.market.refusedAlone) return;
  state.keyRefusers.push(attempt.market);
  if (state.unauthorised !== null) return;
  if (state.unauthorisedStreak > 0 && attempt.writtenMs <= state.unauthorisedAtMs) return;
  state.unauthorisedStreak += 1;
  state.unauthorisedAtMs = state.now.monoMs;
  if (state.authorisedOnce && state.unauthorisedStreak < LOOKS) return;
  state.unauthorised = { status, detail, nextProbeMs: state.now.monoMs + KEY_PROBE_MS };
  out.push({ kind: 'notice', notice: { kind: 'unauthorised', status, detail, probeInMs: KEY_PROBE_MS } });
}
