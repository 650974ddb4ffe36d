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

/** A change of the sources that can be planted. */
export interface Planting {
  readonly name: string;
  readonly edits: readonly Edit[];
}

/** A bug of lease keepers. */
interface PlantedBug extends Planting {
  /** The first seed that shows it, by what the test prints where another one does. */
  readonly seed: number;
  /** Words of the first promise that is broken. */
  readonly says: string;
  /** Only the wider swarm can show it. */
  readonly wider?: true;
}

const edit = (file: string, find: string, replace: string): Edit => ({ file, find, replace });

/** What the simulation must find. A refactoring that moves the text of a rule moves it here as well. */
export const PLANTED: readonly PlantedBug[] = [
  {
    name: 'retries follow each other without a pause',
    seed: 4,
    says: 'requests within a second',
    edits: [
      edit(
        'src/core/next.ts',
        'return slackMs <= 0 ? UNPROTECTED_GAP_MS : clamp(slackMs / 4, SHORTEST_GAP_MS, 5000);',
        'return 20 + 0 * slackMs;',
      ),
      edit(
        'src/core/promise.ts',
        'export const SHORTEST_GAP_MS = 250;',
        'export const SHORTEST_GAP_MS = 20;',
      ),
    ],
  },
  {
    name: 'the pause between retries is longer than the timer',
    seed: 4,
    says: 'fired although',
    edits: [
      edit('src/core/next.ts', 'clamp(slackMs / 4, SHORTEST_GAP_MS, 5000);', '30_000;'),
      edit('src/core/next.ts', '? lastMs : gapMs;', '? gapMs : gapMs;'),
    ],
  },
  {
    name: 'the timer counts from the reply',
    seed: 19,
    says: 'longer than it is',
    edits: [
      edit(
        'src/core/belief.ts',
        'let lifeMs = write.at.lifeMs +',
        'let lifeMs = write.at.lifeMs + (write.untilMs - write.at.monoMs) +',
      ),
    ],
  },
  {
    name: 'a delete leaves beside a renewal',
    seed: 5,
    says: 'wrote a delete beside a renewal in flight',
    edits: [
      edit(
        'src/core/dispatch.ts',
        'if (before.length > 0) {',
        "if (before.length > 0 && purpose !== 'delete') {",
      ),
    ],
  },
  {
    name: 'renewals need no evidence',
    seed: 2,
    says: 'after the evidence ran out',
    edits: [
      edit(
        'src/core/goal.ts',
        "if (settings.liveness.mode === 'none') return true;",
        'if (atLifeMs > 0) return true;',
      ),
    ],
  },
  {
    name: 'a time-out counts as not carried out',
    seed: 3,
    says: 'says within',
    edits: [
      edit(
        'src/core/settle.ts',
        'return outcome.maybeApplied;',
        "return outcome.maybeApplied && outcome.reason !== 'timeout';",
      ),
    ],
  },
  {
    name: 'a 401 counts as an accepted nonce',
    seed: 73,
    says: 'says within',
    wider: true,
    edits: [
      edit(
        'src/core/settle.ts',
        'else believeNotApplied(state, attempt);',
        "else {\n    if (outcome.kind === 'unauthorised')\n      market.belief.writes = market.belief.writes.filter(\n        ({ id, status }) => id >= attempt.id || status === 'confirmed',\n      );\n    believeNotApplied(state, attempt);\n  }",
      ),
    ],
  },
  {
    name: 'a confirmation counts for twice the timeout',
    seed: 1,
    says: 'longer than it is',
    edits: [
      edit(
        'src/core/belief.ts',
        'write.at.lifeMs + leastMs(write.shortestMs);',
        'write.at.lifeMs + leastMs(2 * write.shortestMs);',
      ),
    ],
  },
  {
    name: 'nonces are the time of day',
    seed: 1,
    says: '9 nonces',
    edits: [
      edit(
        'src/exchange/sign.ts',
        'last = Math.max(Math.floor(now.wallMs), last + 1);',
        'last = Math.floor(now.wallMs);',
      ),
    ],
  },
  {
    name: 'the rate is counted on the wall clock',
    seed: 16,
    says: 'requests within 10 s',
    wider: true,
    edits: [
      edit('src/core/state.ts', '(now.monoMs - state.spentAtMs)', '(now.wallMs - state.spentAtMs)'),
      edit('src/core/state.ts', 'state.spentAtMs = now.monoMs;', 'state.spentAtMs = now.wallMs;'),
    ],
  },
  {
    name: 'a retry waits for an attempt that hangs',
    seed: 3,
    says: 'did not renew it within',
    edits: [
      edit(
        'src/core/dispatch.ts',
        'const givesWay = open.length',
        'if (open.length > 0) return true;\n  const givesWay = open.length',
      ),
    ],
  },
  {
    name: "another market's success ends a streak of failures",
    seed: 1,
    says: 'failures in a row',
    edits: [
      edit(
        'src/core/settle.ts',
        'market.overdueSaid = false;',
        'market.overdueSaid = false;\n  for (const other of state.markets) other.streak = 0;',
      ),
    ],
  },
  {
    name: 'a lapse is not reported',
    seed: 13,
    says: 'after a lapse and said nothing',
    edits: [
      edit(
        'src/core/settle.ts',
        "lapse !== null && attempt.purpose !== 'trip'",
        "lapse === undefined && attempt.purpose !== 'trip'",
      ),
      edit(
        'src/core/step.ts',
        'const isLapse = (mustNotFire(market) || !market.firesOnPurpose) &&',
        'const isLapse = market.streak < 0 &&',
      ),
    ],
  },
  {
    name: 'every lapse is called possible',
    seed: 26,
    says: 'calls a lapse possible that is certain',
    edits: [
      edit(
        'src/core/belief.ts',
        "return surely && unresolved === 0 ? 'certain' : 'possible';",
        "return 'possible';",
      ),
      edit('src/core/step.ts', 'noteLapse(state, market, certainty,', "noteLapse(state, market, 'possible',"),
    ],
  },
  {
    name: 'every tenth lapse is called possible',
    seed: 97,
    says: 'calls a lapse possible that is certain',
    edits: [
      edit(
        'src/core/belief.ts',
        'return surely && unresolved === 0 ?',
        'return surely && unresolved === 0 && timer.startTime % 10 !== 0 ?',
      ),
      edit(
        'src/core/step.ts',
        'noteLapse(state, market, certainty,',
        "noteLapse(state, market, Math.floor(firedByWallMs / 1000) % 10 !== 0 ? 'certain' : 'possible',",
      ),
    ],
  },
  {
    name: 'timers are renewed every third of their timeout',
    seed: 3,
    says: 'after it was due',
    edits: [
      edit('src/core/promise.ts', 'const SHARE = 0.1;', 'const SHARE = 1 / 3;'),
      edit('src/core/promise.ts', 'const LOST_AT_MOST = 0.15;', 'const LOST_AT_MOST = 2;'),
      edit('src/core/promise.ts', 'const LONGEST_PERIOD_MS = 10_000;', 'const LONGEST_PERIOD_MS = 200_000;'),
    ],
  },
  {
    name: 'a request leaves without being asked again',
    seed: 2,
    says: 'after it had decided on it',
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
    seed: 36,
    says: 'and it is not',
    edits: [edit('src/core/time.ts', 'timebase.lifeOffsetMs += Math.max(slept, stepped, 0);', '')],
  },
  {
    name: 'the second that the exchange rounds off is not given away',
    seed: 1,
    says: 'says within',
    edits: [edit('src/core/promise.ts', 'export const ROUNDING_MS = 1000;', 'export const ROUNDING_MS = 0;')],
  },
  {
    name: 'a beat counts for twice its time',
    seed: 2,
    says: 'after the evidence ran out',
    edits: [edit('src/core/goal.ts', 'atLifeMs - bot.lastLifeMs <=', 'atLifeMs - bot.lastLifeMs <= 2 *')],
  },
  {
    name: 'the timeout that the exchange granted is not looked at',
    seed: 24,
    says: 'longer than it is',
    wider: true,
    edits: [edit('src/core/belief.ts', 'Math.max(0, Math.min(askedMs, grantedMs))', 'askedMs')],
  },
  {
    name: '`renewEverySeconds` is not looked at',
    seed: 19,
    says: 'after it was due',
    wider: true,
    edits: [edit('src/core/promise.ts', 'market.renewEveryMs ??', '')],
  },
  {
    name: 'a lapse under `onLapse: hold` is armed again',
    seed: 39,
    says: 'keeps guarding it after a lapse',
    wider: true,
    edits: [
      edit(
        'src/core/settle.ts',
        "if (state.settings.onLapse !== 'hold' || market.hold !== null) return;",
        'if (market.streak >= 0) return;',
      ),
    ],
  },
];

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** A copy of the sources and of the simulation with the bug in it. The caller removes the folder. */
export function plant({ name, edits }: Planting): string {
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
