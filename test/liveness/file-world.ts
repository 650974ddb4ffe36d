import { createFileEvidence, type FileLook, type FileState } from '../../src/liveness/file.ts';
import { createVirtual } from './virtual.ts';

export const PATH = '/run/bot/beat';
const FAILED: FileLook = { kind: 'failed', detail: 'EIO' };

/** A bot's file in a virtual world, looked at every second. */
export function createFileWorld(
  files: () => readonly { bot: string; path: string }[] = () => [{ bot: 'default', path: PATH }],
) {
  const world = createVirtual();
  let state: FileState | null = null;
  let mtimeMs = 5_000_000;
  let latencyMs = 1;
  let failing = false;
  let underWay = 0;
  let mostUnderWay = 0;
  let seen = false;
  const looks: string[] = [];
  const evidence = createFileEvidence({
    clock: world.clock,
    files,
    probeEveryMs: () => 1000,
    onProblem: world.onProblem,
    look(path, done) {
      looks.push(path);
      underWay += 1;
      mostUnderWay = Math.max(mostUnderWay, underWay);
      // Seen in the middle of the look.
      let found: FileLook = FAILED;
      world.timeline.at(world.timeline.nowMs() + latencyMs / 2, () => {
        if (!failing) found = state === null ? { kind: 'absent' } : { kind: 'present', state };
      });
      world.later(latencyMs, () => {
        underWay -= 1;
        seen ||= found.kind === 'present';
        done(found);
      });
    },
  });
  return {
    ...world,
    evidence,
    looks,
    mostUnderWay: () => mostUnderWay,
    seen: () => seen,
    touch: () => {
      mtimeMs += 1;
      state = { mtimeMs, size: 0, ino: state?.ino ?? 7 };
    },
    /** Whatever the file is from now on. */
    put: (next: FileState | null) => {
      state = next;
    },
    state: () => state,
    slow: (ms: number) => {
      latencyMs = ms;
    },
    fail: (yes: boolean) => {
      failing = yes;
    },
  };
}
