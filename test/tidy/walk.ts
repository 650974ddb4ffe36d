import { globSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { asker, controlsOf } from '../process/control.ts';
import { beginGuard, type Scope, stageFor } from '../process/harness.ts';
import { eventually, ROOT, sleep } from '../process/program.ts';

/**
 * Prints the files and functions of src that run in the daemon, phase by phase, and fails where they are more than the
 * goal. V8 counts them (precise coverage).
 */
interface Phase {
  readonly goal: { readonly files: number; readonly functions?: number };
  readonly mode: 'beat' | 'none';
  /** Of each market, in seconds. The next renewal of one with 600 s comes 10 s after the last. */
  readonly timeouts: readonly number[];
  /** How long before it nothing is counted; a renewal was over then. */
  readonly settleMs: number;
  readonly act: (watched: Watched) => Promise<unknown>;
}
type Watched = Awaited<ReturnType<typeof watchedDaemon>>;

/** Until a beat has been taken in. */
const AFTERWARDS_MS = 300;
const ALONE = { mode: 'none', timeouts: [600], settleMs: AFTERWARDS_MS } as const;

const PHASES: Readonly<Record<string, Phase>> = {
  renewing: {
    goal: { files: 30, functions: 110 },
    mode: 'beat',
    timeouts: [10, 12, 15],
    // Long enough for what a scrape, a start and its first renewals leave behind to be over.
    settleMs: 15_000,
    act: () => sleep(15_000),
  },
  beat: {
    ...ALONE,
    goal: { files: 20 },
    mode: 'beat',
    async act({ beat }) {
      await beat();
      await sleep(AFTERWARDS_MS);
    },
  },
  // It changes the timeout of a market, which is renewed at once.
  reload: {
    ...ALONE,
    goal: { files: 35 },
    act({ daemon }) {
      daemon.configure({ markets: marketsOf([500]) });
      return daemon.reloadBySignal('reload-applied');
    },
  },
  // It deletes a timer.
  stop: {
    ...ALONE,
    goal: { files: 35 },
    act({ daemon }) {
      daemon.signal('SIGTERM');
      return daemon.exit(30_000);
    },
  },
};

interface Script {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
  }[];
}

/** File to what ran in it, each as `name:line`. */
type Walk = ReadonlyMap<string, readonly string[]>;

function walkOf(scripts: readonly Script[]): Walk {
  const walk = new Map<string, string[]>();
  for (const { url, functions } of scripts.filter(({ url }) => url.includes('/src/'))) {
    const path = fileURLToPath(url.split('?', 1)[0] ?? url);
    const text = readFileSync(path, 'utf8');
    const ran = functions.flatMap(({ functionName, ranges: [range] }) => {
      // The function that starts at 0 is the module itself: it runs when the file is loaded.
      if (range === undefined || range.count === 0 || range.startOffset === 0) return [];
      const line = text.slice(0, range.startOffset).split('\n').length;
      return [`${functionName === '' ? 'anonymous' : functionName}:${line}`];
    });
    if (ran.length > 0) walk.set(relative(join(ROOT, 'src'), path), ran);
  }
  return new Map([...walk].toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

const marketsOf = (timeouts: readonly number[]) =>
  timeouts.map((timeoutSeconds, index) => ({ market: `M${index}_USDT`, timeoutSeconds }));

/** A daemon whose walk can be taken, window by window. */
async function watchedDaemon(scope: Scope, mode: Phase['mode'], timeouts: readonly number[]) {
  const into = join(stageFor(scope).directory, 'walk');
  const { daemon } = await beginGuard(scope, {
    markets: marketsOf(timeouts),
    config: {
      liveness: mode === 'beat' ? { mode, ttlSeconds: 60 } : { mode },
      control: { listen: ['127.0.0.1:0'] },
      shutdown: { policy: 'delete' },
    },
    env: {
      NODE_V8_COVERAGE: into,
      NODE_OPTIONS: `--import=${new URL('walk-coverage.ts', import.meta.url).href}`,
    },
    cold: true,
  });
  const [address = ''] = await controlsOf(daemon);
  const ask = asker(scope, address);
  const beat = async () => {
    const { status, text } = await ask('/v1/beat');
    if (status !== 200) throw new Error(`the beat was refused: ${text}`);
  };
  const written = () => globSync(join(into, `coverage-${daemon.pid}-*.json`));
  let taken = written();
  /** What ran since the last time. */
  const take = async (): Promise<Walk> => {
    if (!daemon.hasExited()) daemon.signal('SIGUSR2');
    const { result } = await eventually('what ran', 10_000, () => {
      const file = written().find((one) => !taken.includes(one));
      try {
        return file === undefined ? null : (JSON.parse(readFileSync(file, 'utf8')) as { result: Script[] });
      } catch {
        // V8 writes the file piece by piece.
        return null;
      }
    });
    taken = written();
    return walkOf(result);
  };
  const renewals = () => daemon.metric('killswitch_renewals_total');
  const renewal = async () => {
    const before = await renewals();
    await eventually('a renewal', 15_000, async () => (await renewals()) > before);
  };
  // The second beat loads and compiles nothing any more.
  if (mode === 'beat') await beat();
  await daemon.ready();
  if (mode === 'beat') await beat();
  return { daemon, beat, take, renewal };
}

async function play(scope: Scope, { mode, timeouts, settleMs, act }: Phase): Promise<Walk> {
  const watched = await watchedDaemon(scope, mode, timeouts);
  await watched.renewal();
  await sleep(settleMs);
  await watched.take();
  await act(watched);
  return watched.take();
}

function report(phase: string, { files, functions = Number.POSITIVE_INFINITY }: Phase['goal'], walk: Walk) {
  const count = [...walk.values()].flat().length;
  const isKept = walk.size <= files && count <= functions;
  const bound = Number.isFinite(functions) ? ` (goal ${functions})` : '';
  const counted = `${walk.size} files (goal ${files}), ${count} functions${bound}`;
  process.stdout.write(`${phase}: ${counted}: ${isKept ? 'kept' : 'MISSED'}\n`);
  for (const [file, names] of walk) process.stdout.write(`  ${file}: ${names.join(', ')}\n`);
  return isKept;
}

async function run(names: readonly string[]): Promise<void> {
  for (const name of names) {
    const phase = PHASES[name];
    if (phase === undefined)
      throw new Error(`unknown phase ${name}; allowed: ${Object.keys(PHASES).join(', ')}`);
    const ends: (() => unknown)[] = [];
    const scope: Scope = { onTestFinished: (end) => void ends.unshift(end) };
    try {
      if (!report(name, phase.goal, await play(scope, phase))) process.exitCode = 1;
    } finally {
      for (const end of ends) await end();
    }
  }
}

const wanted = process.argv.slice(2);
await run(wanted.length === 0 ? Object.keys(PHASES) : wanted);
