import { botsOf, type Config, filesOfBots, urlsOfBots } from '../config/config.ts';
import { createTransport } from '../exchange/transport.ts';
import { createFileEvidence, createFileLook } from '../liveness/file.ts';
import { createHttpEvidence, type Prober } from '../liveness/http.ts';
import { createProcessEvidence, type LookAtProcess, type ProcessEvidence } from '../liveness/process.ts';
import type { OnProblem } from '../liveness/rounds.ts';
import type { Clock, Evidence } from '../ports.ts';

/**
 * What looks for signs of life of its own accord; nothing where bots speak for themselves or nobody watches. Everything
 * but the mode is asked for at each look, so that a reload needs no restart.
 */
export function createBotEvidence(options: {
  readonly clock: Clock;
  /** The configuration in force. */
  readonly config: () => Config;
  readonly lookAtProcess: LookAtProcess;
  readonly onProblem: OnProblem;
}): Evidence | ProcessEvidence | null {
  const { clock, config, lookAtProcess, onProblem } = options;
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
        look: lookAtProcess,
        onProblem,
      });
  }
}

/** The most of an answer that is waited for; it is dropped unread. */
const MAX_BODY_BYTES = 65_536;

/**
 * Probes a real URL over one connection, which is opened anew after anything but a whole answer. It has its own wire: no
 * connection and no lookup of a name is shared with renewals, or with another bot. Redirects are answers like any other
 * and are not followed. The answer must have ended within the time given, or have brought 64 KiB.
 */
export function openHttpProber(clock: Clock, url: string): Prober {
  const { origin, pathname, search } = new URL(url);
  const wire = createTransport({ clock, bases: [origin], connections: 1 });
  const request = {
    base: origin,
    method: 'GET',
    path: pathname + search,
    headers: { accept: '*/*', 'user-agent': 'killswitchd' },
    body: null,
    fresh: false,
    mayWrite: () => true,
    maxBodyBytes: MAX_BODY_BYTES,
    dropsBody: true,
  } as const;
  let isOpen = true;
  return {
    probe(timeoutMs, done) {
      const giveUp = wire.send(request, (result) => {
        cancelDeadline();
        if (!isOpen) return;
        if (result.kind === 'response') return done({ kind: 'answered', status: result.status });
        const late = `no whole answer within ${timeoutMs} ms`;
        return done({ kind: 'failed', detail: result.reason === 'timeout' ? late : result.detail });
      });
      const cancelDeadline = clock.after(timeoutMs, giveUp);
    },
    close() {
      isOpen = false;
      void wire.close();
    },
  };
}
