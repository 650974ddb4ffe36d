import { stat } from 'node:fs';
import type { FileLook, LookAtFile } from './file.ts';

/**
 * Looks that may hang at a time. Node has four threads for files and for resolving names: a dead network file system must
 * not take the ones that the way to the exchange needs.
 */
const AT_ONCE = 2;

/** Looks at real files; more than two at a time wait for their turn. */
export function createFileLook(): LookAtFile {
  const waiting: (() => void)[] = [];
  let underWay = 0;

  function serve(): void {
    while (underWay < AT_ONCE) {
      const next = waiting.shift();
      if (next === undefined) return;
      underWay += 1;
      next();
    }
  }
  return (path, done) => {
    waiting.push(() =>
      stat(path, (error, stats) => {
        underWay -= 1;
        serve();
        if (error !== null) done(describe(error));
        // Their times are changed by others than the bot.
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
