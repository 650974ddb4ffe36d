import type { Config } from '../config/config.ts';
import { filesOfBots, urlsOfBots } from '../config/liveness.ts';
import { createFileEvidence } from '../liveness/file.ts';
import { createFileLook } from '../liveness/file-look.ts';
import { createHttpEvidence } from '../liveness/http.ts';
import { openHttpProber } from '../liveness/http-probe.ts';
import type { OnProblem } from '../liveness/problems.ts';
import { createProcessEvidence, type LookAtProcess, type ProcessEvidence } from '../liveness/process.ts';
import type { Clock, Evidence } from '../ports.ts';

export interface EvidenceOptions {
  readonly clock: Clock;
  /** The configuration in force. */
  readonly config: () => Config;
  readonly lookAtProcess: LookAtProcess;
  readonly onProblem: OnProblem;
}

/** The bots of these markets, each once. */
export function botsOf(markets: Config['markets']): string[] {
  return [...new Set(markets.map(({ bot }) => bot))];
}

/**
 * What looks for signs of life of its own accord; nothing where bots speak for themselves or nobody watches. Everything
 * but the mode is asked for at each look, so that a reload needs no restart.
 */
export function createBotEvidence(options: EvidenceOptions): Evidence | ProcessEvidence | null {
  const { clock, config, onProblem } = options;
  const probeEveryMs = () => config().liveness.probeEverySeconds * 1000;
  switch (config().liveness.mode) {
    case 'none':
    case 'beat':
      return null;
    case 'file':
      return createFileEvidence({
        clock,
        files: () => filesOfBots(config()),
        probeEveryMs,
        look: createFileLook(),
        onProblem,
      });
    case 'http':
      return createHttpEvidence({
        clock,
        urls: () => urlsOfBots(config()),
        probeEveryMs,
        open: (url) => openHttpProber(clock, url),
        onProblem,
      });
    case 'process':
      return createProcessEvidence({
        clock,
        bots: () => botsOf(config().markets),
        probeEveryMs,
        look: options.lookAtProcess,
        onProblem,
      });
  }
}
