import { warnOfPace } from '../config/pace.ts';
import type { CoreSettings } from '../core/events.ts';
import type { Notice } from '../core/notice.ts';
import { seconds } from '../core/promise.ts';
import type { Snapshot } from '../core/view.ts';
import type { Log } from '../telemetry/log.ts';

/**
 * Says the bounds again when everything is armed, and whenever the cadence follows another answer time: what was printed
 * at the start held for an assumed one. A warning is repeated only once it was gone in between.
 */
export function createPaceTold({ logger }: Pick<Log, 'logger'>, snapshot: () => Snapshot) {
  let warned: readonly string[] = [];
  return (notice: Notice, settings: CoreSettings): void => {
    if (notice.kind !== 'cadence' && notice.kind !== 'all-armed') return;
    const markets = snapshot().markets.filter(({ leaving }) => !leaving);
    const tightest = markets.reduce<Snapshot['markets'][number] | null>(
      (least, one) => (least === null || shareOf(one) < shareOf(least) ? one : least),
      null,
    );
    if (tightest === null) return;
    const { market, survivesMs, periodMs, timeoutMs } = tightest;
    const says = `From now on an outage of the exchange shorter than ${seconds(survivesMs)} cancels nothing of ${market}, which is renewed every ${seconds(Math.round(periodMs))} and has a timer of ${seconds(timeoutMs)}; no other market has less room for its timeout.`;
    logger.info({ event: 'promise', market, promise: [says] }, says);
    if (notice.kind !== 'cadence' || notice.answerMs === null) return;
    const warnings = warnOfPace(settings, Math.ceil(notice.answerMs));
    for (const warning of warnings) {
      if (!warned.includes(subjectOf(warning))) logger.warn({ event: 'config-warning' }, `${warning}.`);
    }
    warned = warnings.map(subjectOf);
  };
}

function shareOf({ survivesMs, timeoutMs }: Snapshot['markets'][number]): number {
  return survivesMs / timeoutMs;
}

/** The key that a warning begins with: its figures change. */
function subjectOf(warning: string): string {
  return warning.split(':', 1)[0] ?? '';
}
