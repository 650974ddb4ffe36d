import { createFileEvidence } from '../liveness/file.ts';
import { createHttpEvidence } from '../liveness/http.ts';
import { createProcessEvidence } from '../liveness/process.ts';
import type { Evidence } from '../ports.ts';
import type { Timeline } from '../simulator/virtual-clock.ts';
import type { Incarnation } from './incarnation.ts';
import { botName, type Plan } from './plan.ts';

export interface EvidenceWorld {
  readonly plan: Plan;
  readonly timeline: Timeline;
  readonly host: Incarnation;
  readonly bots: readonly number[];
  readonly isSilent: (bot: number) => boolean;
  readonly touchesOf: (bot: number) => number;
  /** The bot was truly seen alive at this very moment. */
  readonly onSeen: (bot: number) => void;
}

/** Evidence, and the end of a child process where that is where it comes from. */
export interface SimulatedEvidence extends Evidence {
  /** Is there a process that could end? */
  runs(): boolean;
  end(says: 'goodbye' | 'fail'): void;
}

const LOOK_EVERY_MS = 1000;
const PROBE_EVERY_MS = 3750;
/** A look at a file or a process takes this long. */
const LOOK_MS = 2;
const CHILD = 4711;

/** The production sources of evidence over a simulated file system, network and process table; null for beats. */
export function createEvidence(world: EvidenceWorld): SimulatedEvidence | null {
  switch (world.plan.evidence ?? 'beat') {
    case 'beat':
      return null;
    case 'file':
      return { ...watchFiles(world), runs: () => false, end: ignore };
    case 'http':
      return { ...probeUrls(world), runs: () => false, end: ignore };
    case 'process':
      return watchProcess(world);
  }
}

const ignore = () => {};

function watchFiles({ host, bots, touchesOf }: EvidenceWorld): Evidence {
  const { clock } = host;
  return createFileEvidence({
    clock,
    files: () => bots.map((bot) => ({ bot: botName(bot), path: String(bot) })),
    probeEveryMs: () => LOOK_EVERY_MS,
    look(path, done) {
      const mtimeMs = touchesOf(Number(path));
      clock.after(LOOK_MS, () => done({ kind: 'present', state: { mtimeMs, size: 0, ino: 1 } }));
    },
    onProblem: ignore,
  });
}

function probeUrls({ plan, timeline, host, bots, isSilent, onSeen }: EvidenceWorld): Evidence {
  const { clock } = host;
  const tripMs = plan.roundTripMs / 2;
  return createHttpEvidence({
    clock,
    urls: () => bots.map((bot) => ({ bot: botName(bot), url: String(bot) })),
    probeEveryMs: () => PROBE_EVERY_MS,
    open: (url) => ({
      probe(timeoutMs, done) {
        let over = false;
        const finish = (status: number | null) => {
          if (over) return;
          over = true;
          done(status === null ? { kind: 'failed', detail: 'no answer' } : { kind: 'answered', status });
        };
        clock.after(timeoutMs, () => finish(null));
        timeline.at(timeline.nowMs() + tripMs, () => {
          if (isSilent(Number(url))) return;
          onSeen(Number(url));
          timeline.at(timeline.nowMs() + tripMs, () => clock.whenRunning(() => finish(200)));
        });
      },
      close: ignore,
    }),
    onProblem: ignore,
  });
}

function watchProcess({ timeline, host, bots, isSilent, onSeen }: EvidenceWorld): SimulatedEvidence {
  const { clock } = host;
  const source = createProcessEvidence({
    clock,
    bots: () => bots.map(botName),
    probeEveryMs: () => LOOK_EVERY_MS,
    look(_pid, done) {
      const stopped = bots.some(isSilent);
      if (!stopped) for (const bot of bots) onSeen(bot);
      clock.after(LOOK_MS, () => done({ state: stopped ? 'T' : 'S', startedAt: '1' }));
    },
    onProblem: ignore,
  });
  let runs = true;
  return {
    start(hear) {
      const cancel = source.start(hear);
      source.began(CHILD);
      return cancel;
    },
    runs: () => runs,
    end(says) {
      runs = false;
      source.ended(says === 'goodbye' ? 0 : 1);
      // Started again at once; while it is silent, a look at it shows it stopped.
      timeline.at(timeline.nowMs() + 1, () =>
        clock.whenRunning(() => {
          runs = true;
          source.began(CHILD);
        }),
      );
    },
  };
}
