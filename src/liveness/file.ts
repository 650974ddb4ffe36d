import { stat } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import type { Evidence } from '../ports.ts';
import { createPlaceEvidence, type Looking, type Places } from './rounds.ts';

/** What tells one touch of a file from the next. The values mean nothing beyond being equal or not. */
export interface FileState {
  readonly mtimeMs: number;
  readonly size: number;
  readonly ino: number;
}

/** `absent`: there is no such file. `failed`: nobody knows; `detail` is for the log. */
export type FileLook =
  | { readonly kind: 'present'; readonly state: FileState }
  | { readonly kind: 'absent' }
  | { readonly kind: 'failed'; readonly detail: string };

/** Looks at one file and calls `done` exactly once, never synchronously, however long that takes. */
export type LookAtFile = (path: string, done: (look: FileLook) => void) => void;

/** How a file was seen last. */
interface Seen {
  /** `absent` until it was seen for the first time. */
  state: FileState | 'absent' | 'unknown';
  /** When the look that found that was begun, monotonic. */
  sinceMs: number;
}

/**
 * Evidence by a file that the bot's loop touches: any change of it between two looks is a beat. The file's own time is
 * only compared, never believed: clocks of containers and file systems differ.
 *
 * A beat is dated back to the begin of the look that last saw the file as it was before, since the touch may have come
 * right after it; a slow look therefore makes old evidence and never fresh evidence. The first look of all never counts,
 * because a file survives the bot that touched it. For the same reason a file that was gone and is back unchanged does
 * not count (a file system was mounted again). But an old file whose file system is mounted for the first time after the
 * daemon's start looks like a touch, and makes one beat. A look that fails tells nothing, and a deleted file is no
 * goodbye: then only the lifetime of the evidence decides.
 */
export function createFileEvidence(
  options: Looking & { readonly files: Places; readonly look: LookAtFile },
): Evidence {
  const { files, look } = options;
  return createPlaceEvidence(options, files, (path) => {
    const seen: Seen = { state: 'unknown', sinceMs: 0 };
    return {
      look: (begunMs, done) =>
        look(path, (found) => done(problemOf(path, found), takeIn(seen, found, begunMs))),
      close: () => undefined,
    };
  });
}

/** Keeps what a look found. Returns since when the touch that it shows may have come, monotonic; null where it shows none. */
function takeIn(seen: Seen, found: FileLook, begunMs: number): number | null {
  const { state: before, sinceMs } = seen;
  if (found.kind === 'failed') return null;
  // A file that was seen before stays what the next one is compared with.
  if (found.kind === 'absent' && before !== 'unknown' && before !== 'absent') return null;
  seen.state = found.kind === 'absent' ? 'absent' : found.state;
  seen.sinceMs = begunMs;
  const isTouch = before !== 'unknown' && !isDeepStrictEqual(before, seen.state);
  return isTouch ? sinceMs : null;
}

function problemOf(path: string, found: FileLook): string | null {
  if (found.kind === 'failed') return `cannot look at ${path}: ${found.detail}`;
  return found.kind === 'absent' ? `there is no file ${path}` : null;
}

/** Looks that may hang at a time: the threads of `main.ts` serve the files of other bots and the log as well. */
const AT_ONCE = 48;

/** Looks at real files; more than 48 at a time wait for their turn. */
export function createFileLook(): LookAtFile {
  const waiting: (() => void)[] = [];
  let underWay = 0;

  /** Each look that is asked for, and each that ends, lets one begin. */
  function serve(): void {
    const next = underWay < AT_ONCE ? waiting.shift() : undefined;
    if (next === undefined) return;
    underWay += 1;
    next();
  }
  return (path, done) => {
    waiting.push(() =>
      stat(path, (error, stats) => {
        underWay -= 1;
        serve();
        if (error !== null) done(describe(error));
        // Others than the bot change the times of a directory.
        else if (stats.isDirectory()) done({ kind: 'failed', detail: 'it is a directory' });
        else if (!stats.isFile()) done({ kind: 'failed', detail: 'it is no regular file' });
        else done({ kind: 'present', state: { mtimeMs: stats.mtimeMs, size: stats.size, ino: stats.ino } });
      }),
    );
    serve();
  };
}

function describe(error: NodeJS.ErrnoException): FileLook {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return { kind: 'absent' };
  return { kind: 'failed', detail: error.code ?? error.message };
}
