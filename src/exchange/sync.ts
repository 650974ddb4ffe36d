import type { Outcome } from '../core/outcome.ts';
import type { Cancel, SyncRequest } from '../ports.ts';
import { classifySync } from './classify.ts';
import { syncKillSwitch } from './operations.ts';
import type { Session } from './session.ts';

/**
 * One renewal, trip or delete for the keeper, at the base address `base`. Calls `settled` as the port `Exchange.sync`
 * says; the returned function gives up.
 */
export function startSync(
  session: Session,
  base: string,
  request: SyncRequest,
  settled: (outcome: Outcome) => void,
): Cancel {
  const { fresh, mayWrite } = request;
  return session.call(
    syncKillSwitch,
    request,
    { base, fresh, mayWrite },
    (result, redact) => classifySync(result, request, redact),
    settled,
  );
}
