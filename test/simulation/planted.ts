import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** One change of a source file: the text must occur in it exactly once. */
interface Edit {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** A bug of lease keepers, planted by a change of the sources. */
export interface PlantedBug {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** Only the wider swarm can show it. */
  readonly wider?: true;
}

const edit = (file: string, find: string, replace: string): Edit => ({ file, find, replace });

/** What the simulation must find. A refactoring that moves the text of a rule moves it here as well. */
export const PLANTED: readonly PlantedBug[] = [
  {
    name: 'retries follow each other without a pause',
    edits: [edit('src/core/release.ts', 'jittered(gapMs,', 'jittered(1 + 0 * gapMs,')],
  },
  {
    name: 'the pause between retries is longer than the timer',
    edits: [
      edit('src/core/release.ts', 'jittered(gapMs,', 'jittered(30_000 + 0 * gapMs,'),
      edit('src/core/release.ts', '? placed(state, market, slack, jitteredMs) :', '? jitteredMs :'),
    ],
  },
  {
    name: 'the timer counts from the reply',
    edits: [
      edit(
        'src/core/belief.ts',
        'const untilLifeMs = attempt.writtenLifeMs +',
        'const untilLifeMs = state.lifeMs +',
      ),
    ],
  },
  {
    name: 'a delete leaves beside a renewal',
    edits: [
      edit('src/core/exit.ts', 'if (before.length > 0) continue;', ''),
      edit('src/core/plan.ts', '!exit.done && !others && inFlight', '!exit.done && inFlight'),
    ],
  },
  {
    name: 'the rate is counted on the wall clock',
    edits: [
      edit('src/core/rate.ts', 'const from = now.monoMs -', 'const from = now.wallMs -'),
      edit(
        'src/core/rate.ts',
        'state.settled.push(state.now.monoMs)',
        'state.settled.push(state.now.wallMs)',
      ),
    ],
  },
  {
    name: 'renewals need no evidence',
    edits: [
      edit(
        'src/core/evidence.ts',
        "if (state.settings.liveness.mode === 'none') return true;",
        'if (atLifeMs > 0) return true;',
      ),
    ],
  },
  {
    name: 'a time-out counts as not carried out',
    edits: [
      edit(
        'src/core/failures.ts',
        'if (mayHaveBeenApplied(outcome))',
        "if (mayHaveBeenApplied(outcome) && reasonOf(outcome) !== 'timeout')",
      ),
    ],
  },
  {
    name: 'a confirmation counts for twice the timeout',
    edits: [
      edit(
        'src/core/belief.ts',
        'attempt.writtenLifeMs + (shortestMs -',
        'attempt.writtenLifeMs + (2 * shortestMs -',
      ),
    ],
  },
  {
    name: 'nonces are the time of day',
    edits: [
      edit(
        'src/exchange/nonce.ts',
        'last = Math.max(Math.floor(now.wallMs), last + 1);',
        'last = Math.floor(now.wallMs);',
      ),
    ],
  },
  {
    name: 'a retry waits for an attempt that hangs',
    edits: [
      edit(
        'src/core/plan.ts',
        'market.inFlight.length >= MOST_IN_FLIGHT || market',
        'market.inFlight.length >= 1 || market',
      ),
      edit(
        'src/core/release.ts',
        'deadlineMs: monoMs + attemptDeadlineMs(slack, longestRoundTripMs)',
        'deadlineMs: monoMs + 10_000 + 0 * longestRoundTripMs',
      ),
    ],
  },
  {
    name: "another market's success ends a streak of failures",
    edits: [
      edit(
        'src/core/settle.ts',
        'market.confirmedOnce = true;',
        'market.confirmedOnce = true;\n  for (const other of state.markets) other.streak = 0;',
      ),
    ],
  },
  {
    name: 'a lapse is not reported',
    edits: [
      edit(
        'src/core/settle.ts',
        "lapse !== null && attempt.purpose !== 'trip'",
        "lapse === undefined && attempt.purpose !== 'trip'",
      ),
    ],
  },
  {
    name: 'every lapse is called possible',
    edits: [
      edit(
        'src/core/belief.ts',
        "return surely && unresolved === 0 ? 'certain' : 'possible';",
        "return 'possible';",
      ),
    ],
  },
  {
    name: 'every tenth lapse is called possible',
    edits: [
      edit(
        'src/core/belief.ts',
        'return surely && unresolved === 0 ?',
        'return surely && unresolved === 0 && timer.startTime % 10 !== 0 ?',
      ),
    ],
  },
  {
    name: 'timers are renewed every third of their timeout',
    edits: [
      edit('src/core/timing.ts', 'const SHARE = 0.1;', 'const SHARE = 1 / 3;'),
      edit('src/core/timing.ts', 'const LOST_AT_MOST = 0.15;', 'const LOST_AT_MOST = 2;'),
      edit('src/core/timing.ts', 'const LONGEST_PERIOD_MS = 10_000;', 'const LONGEST_PERIOD_MS = 200_000;'),
    ],
  },
  {
    name: 'a request leaves without being asked again',
    edits: [
      edit(
        'src/keeper.ts',
        'mayWrite: () => mayWrite(state, attempt, clock.now())',
        'mayWrite: () => mayWrite !== undefined',
      ),
    ],
  },
  {
    name: 'a suspend does not age a timer',
    edits: [edit('src/core/time.ts', 'timebase.lifeOffsetMs += Math.max(slept, stepped, 0);', '')],
  },
  {
    name: 'the second that the exchange rounds off is not given away',
    edits: [edit('src/core/promise.ts', 'export const ROUNDING_MS = 1000;', 'export const ROUNDING_MS = 0;')],
  },
  {
    name: 'a beat counts for twice its time',
    edits: [edit('src/core/evidence.ts', 'atLifeMs - bot.lastLifeMs <=', 'atLifeMs - bot.lastLifeMs <= 2 *')],
  },
  {
    name: 'the timeout that the exchange granted is not looked at',
    wider: true,
    edits: [edit('src/core/belief.ts', 'Math.min(attempt.timeoutMs, grantedMs)', 'attempt.timeoutMs')],
  },
  {
    name: '`renewEverySeconds` is not looked at',
    wider: true,
    edits: [edit('src/core/timing.ts', 'market.renewEveryMs ??', '')],
  },
  {
    name: 'a lapse under `onLapse: hold` is armed again',
    wider: true,
    edits: [
      edit(
        'src/core/hold.ts',
        "state.settings.onLapse === 'hold' && market.hold === null",
        'market.streak < 0',
      ),
    ],
  },
];

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** A copy of the sources and of the simulation with the bug in it. The caller removes the folder. */
export function plant({ name, edits }: PlantedBug): string {
  const folder = mkdtempSync(join(tmpdir(), 'planted-'));
  for (const part of ['src', 'test/simulation', 'package.json'])
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const { file, find, replace } of edits) {
    const path = join(folder, file);
    const text = readFileSync(path, 'utf8');
    const parts = text.split(find);
    if (parts.length !== 2) {
      rmSync(folder, { recursive: true });
      throw new Error(`"${name}": ${file} has ${parts.length - 1} times: ${find}`);
    }
    writeFileSync(path, parts.join(replace));
  }
  return folder;
}
