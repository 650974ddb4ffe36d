import { botsOf, type Config, placesOfBots } from '../config/config.ts';
import { createFileEvidence, createFileLook } from '../liveness/file.ts';
import { createHttpEvidence } from '../liveness/http.ts';
import { createProcessEvidence, type LookAtProcess, type ProcessEvidence } from '../liveness/process.ts';
import type { OnProblem } from '../liveness/rounds.ts';
import type { Clock, Evidence } from '../ports.ts';
import { openHttpProber } from './asking.ts';

/**
 * What looks for signs of life of its own accord; nothing where bots speak for themselves or nobody watches. Everything
 * but the mode is asked for at each look, so that a reload needs no restart.
 */
export function createBotEvidence(options: {
  readonly clock: Clock;
  readonly config: () => Config;
  readonly lookAtProcess: LookAtProcess;
  readonly onProblem: OnProblem;
}): Evidence | ProcessEvidence | null {
  const { clock, config, lookAtProcess, onProblem } = options;
  const probeEveryMs = () => config().liveness.probeEverySeconds * 1000;
  const shared = { clock, probeEveryMs, onProblem };
  switch (config().liveness.mode) {
    case 'none':
    case 'beat':
      return null;
    case 'file':
      return createFileEvidence({
        ...shared,
        files: () => placesOfBots(config(), 'file'),
        look: createFileLook(),
      });
    case 'http': {
      const open = (url: string) => openHttpProber(clock, url);
      return createHttpEvidence({ ...shared, urls: () => placesOfBots(config(), 'url'), open });
    }
    case 'process':
      return createProcessEvidence({ ...shared, bots: () => botsOf(config().markets), look: lookAtProcess });
  }
}
