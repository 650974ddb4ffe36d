import { readFileSync } from 'node:fs';
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

/** A planted bug that this many seeds do not show is one that the simulation would not find either. */
export const SEEDS = 300;

/** A bug of lease keepers. */
export interface PlantedBug extends Planting {
  /** The first seed that shows it, by what the test prints where another one does; or a kept plan, where a seed hardly does. */
  readonly shownBy: number | `${string}.json`;
  /** Words of the first promise that is broken. */
  readonly says: string;
}

/** The rules of the core that `npm run rule-cost` takes out, one after the other. */
export const RULES: readonly Planting[] = JSON.parse(
  readFileSync(new URL('rule-cost.json', import.meta.url), 'utf8'),
);

/** Each edit is a file, what stands there, and what takes its place; or those that take the rule of this name out. */
const bug = (
  name: string,
  shownBy: PlantedBug['shownBy'],
  says: string,
  edits: string | readonly (readonly [file: string, find: string, replace: string])[],
): PlantedBug => ({
  name,
  shownBy,
  says,
  edits:
    typeof edits === 'string'
      ? (RULES.find((rule) => rule.name === edits)?.edits ?? [])
      : edits.map(([file, find, replace]) => ({ file, find, replace })),
});

/** Asked before the first byte of a delete. */
const MAY_DELETE =
  "return market.goal === 'delete' && (alive || bot.state === 'goodbye' || state.phase.kind === 'stopping');";
const LEFT_BY = 'wallAt(state, market.belief.notAfterMs ?? monoMs);';

/** What the simulation must find. A refactoring that moves the text of a rule moves it here as well. */
export const PLANTED: readonly PlantedBug[] = [
  bug('retries follow each other without a pause', 1, 'requests within a second', [
    [
      'src/core/next.ts',
      'return slackMs <= 0 ? UNPROTECTED_GAP_MS : clamp(slackMs / 4, SHORTEST_GAP_MS, 5000);',
      'return 20 + 0 * slackMs;',
    ],
    ['src/core/promise.ts', 'export const SHORTEST_GAP_MS = 250;', 'export const SHORTEST_GAP_MS = 20;'],
  ]),
  bug('the pause between retries is longer than the timer', 29, 'fired although', [
    ['src/core/next.ts', 'clamp(slackMs / 4, SHORTEST_GAP_MS, 5000);', '30_000;'],
    ['src/core/next.ts', '? lastMs : gapMs;', '? gapMs : gapMs;'],
  ]),
  bug('the timer counts from the reply', 12, 'longer than it is', [
    [
      'src/core/belief.ts',
      'let lifeMs = write.at.lifeMs +',
      'let lifeMs = write.at.lifeMs + (write.untilMs - write.at.monoMs) +',
    ],
  ]),
  bug('a delete leaves beside a renewal', 14, 'wrote a delete beside a renewal in flight', [
    ['src/core/dispatch.ts', 'if (before.length > 0) {', "if (before.length > 0 && purpose !== 'delete') {"],
  ]),
  bug('renewals need no evidence', 3, 'after the evidence ran out', [
    [
      'src/core/goal.ts',
      "if (settings.liveness.mode === 'none') return true;",
      'if (atLifeMs > 0) return true;',
    ],
  ]),
  bug('a time-out counts as not carried out', 4, 'says within', [
    [
      'src/core/settle.ts',
      'return outcome.maybeApplied;',
      "return outcome.maybeApplied && outcome.reason !== 'timeout';",
    ],
  ]),
  bug('a confirmation counts for twice the timeout', 1, 'longer than it is', [
    [
      'src/core/belief.ts',
      'write.at.lifeMs + leastMs(write.shortestMs);',
      'write.at.lifeMs + leastMs(2 * write.shortestMs);',
    ],
  ]),
  bug('nonces are the time of day', 1, '9 nonces', [
    [
      'src/exchange/sign.ts',
      'last = Math.max(Math.floor(now.wallMs), last + 1);',
      'last = Math.floor(now.wallMs);',
    ],
  ]),
  bug('a retry waits for an attempt that hangs', 39, 'fired although', [
    [
      'src/core/dispatch.ts',
      'const givesWay = open.length',
      'if (open.length > 0) return true;\n  const givesWay = open.length',
    ],
  ]),
  bug("another market's success ends a streak of failures", 1, 'failures in a row', [
    [
      'src/core/settle.ts',
      'market.overdueSaid = false;',
      'market.overdueSaid = false;\n  for (const other of state.markets) other.streak = 0;',
    ],
  ]),
  bug('a lapse is not reported', 10, 'after a lapse and said nothing', [
    ['src/core/settle.ts', 'if (lapse !== null && wasWanted)', 'if (lapse === undefined && wasWanted)'],
    [
      'src/core/step.ts',
      'const isLapse = (mustNotFire(market) || !market.firesOnPurpose) &&',
      'const isLapse = market.streak < 0 &&',
    ],
  ]),
  bug('every lapse is called possible', 23, 'calls a lapse possible that is certain', [
    [
      'src/core/belief.ts',
      "return surely && unresolved === 0 ? 'certain' : 'possible';",
      "return 'possible';",
    ],
    ['src/core/step.ts', 'noteLapse(state, market, certainty,', "noteLapse(state, market, 'possible',"],
  ]),
  bug('every tenth lapse is called possible', 153, 'calls a lapse possible that is certain', [
    [
      'src/core/belief.ts',
      'return surely && unresolved === 0 ?',
      'return surely && unresolved === 0 && timer.startTime % 10 !== 0 ?',
    ],
    [
      'src/core/step.ts',
      'noteLapse(state, market, certainty,',
      "noteLapse(state, market, Math.floor(firedByWallMs / 1000) % 10 !== 0 ? 'certain' : 'possible',",
    ],
  ]),
  bug('timers are renewed every third of their timeout', 2, 'after it was due', [
    ['src/core/promise.ts', 'const SHARE = 0.1;', 'const SHARE = 1 / 3;'],
    ['src/core/promise.ts', 'const LOST_AT_MOST = 0.15;', 'const LOST_AT_MOST = 2;'],
    ['src/core/promise.ts', 'const LONGEST_PERIOD_MS = 10_000;', 'const LONGEST_PERIOD_MS = 200_000;'],
  ]),
  bug('a request leaves without being asked again', 27, 'after it had decided on it', [
    [
      'src/keeper.ts',
      'mayWrite: () => mayWrite(state, attempt, clock.now())',
      'mayWrite: () => mayWrite !== undefined',
    ],
  ]),
  bug('a suspend does not age a timer', 119, 'and it is not', [
    ['src/core/time.ts', 'timebase.lifeOffsetMs += Math.max(slept, stepped, 0);', ''],
  ]),
  bug('the second that the exchange rounds off is not given away', 1, 'says within', [
    ['src/core/promise.ts', 'export const ROUNDING_MS = 1000;', 'export const ROUNDING_MS = 0;'],
  ]),
  bug('a beat counts for twice its time', 3, 'after the evidence ran out', [
    ['src/core/goal.ts', 'atLifeMs - bot.lastLifeMs <=', 'atLifeMs - bot.lastLifeMs <= 2 *'],
  ]),
  bug('a 401 counts as an accepted nonce', 3, 'says within', [
    [
      'src/core/settle.ts',
      'else believeNotApplied(state, attempt);',
      "else {\n    if (outcome.kind === 'unauthorised')\n      market.belief.writes = market.belief.writes.filter(\n        ({ id, status }) => id >= attempt.id || status === 'confirmed',\n      );\n    believeNotApplied(state, attempt);\n  }",
    ],
  ]),
  bug('the rate is counted on the wall clock', 15, 'requests within 10 s', [
    ['src/core/state.ts', '(now.monoMs - spentAtMs)', '(now.wallMs - spentAtMs)'],
    [
      'src/core/state.ts',
      'state.spent = owed(state) + 1;\n  state.spentAtMs = state.now.monoMs;',
      'state.spent = owed(state) + 1;\n  state.spentAtMs = state.now.wallMs;',
    ],
  ]),
  bug('the timeout that the exchange granted is not looked at', 2, 'longer than it is', [
    ['src/core/belief.ts', 'Math.max(0, Math.min(askedMs, grantedMs))', 'askedMs'],
  ]),
  bug('`renewEverySeconds` is not looked at', 32, 'after it was due', [
    ['src/core/promise.ts', 'market.renewEveryMs ??', ''],
  ]),
  bug('a lapse under `onLapse: hold` is armed again', 13, 'keeps guarding it after a lapse', [
    [
      'src/core/settle.ts',
      "if (held) hold(state, market, 'lapsed', null, out);",
      'if (market.streak >= 0) return;',
    ],
  ]),
  bug(
    'one refusal latches what was good',
    1,
    'gave it up after 1 refusals',
    'what was good is refused by the second answer',
  ),
  bug('a dead bot is not tripped', 179, 'did not cut it short', [
    [
      'src/core/goal.ts',
      'if (isDead && isToBeTripped(state, market, bot))',
      'if (isDead && bot === undefined)',
    ],
  ]),
  bug('timers are longer than configured', 5, 'after the latest moment promised', [
    ['src/core/dispatch.ts', 'Math.round(timeoutMs / 1000)', '30 + Math.round(timeoutMs / 1000)'],
  ]),
  bug('a stop deletes whatever the policy says', 93, 'nobody asked it to delete', [
    [
      'src/core/goal.ts',
      ': goalAtEnd(state, market, bot, policy);',
      ": goalAtEnd(state, market, bot, 'delete');",
    ],
  ]),
  bug('a stop deletes the timer of a dead bot', 59, 'deleted the timer of a dead bot', [
    [
      'src/core/goal.ts',
      "if (state.settings.liveness.mode === 'none' || bot.state === 'goodbye') return true;",
      'return state.settings !== null;',
    ],
    ['src/core/step.ts', MAY_DELETE, 'return true;'],
  ]),
  bug('a command deletes the timer of a dead bot', 77, 'wrote a delete for a dead bot', [
    [
      'src/core/goal.ts',
      "if (bot.state !== 'alive') return false;",
      "if (state.phase.kind === 'running') return true;",
    ],
    ['src/core/step.ts', MAY_DELETE, 'return true;'],
  ]),
  bug('a delete leaves whatever is wanted by then', 27, 'after it had decided on it', [
    [
      'src/core/step.ts',
      "if (status !== 'open' || at.monoMs < state.stalledMs) return false;",
      "if (status !== 'open') return false;",
    ],
    ['src/core/step.ts', 'if (now.monoMs - state.wakeAtMs > LATE_MS) return false;', ''],
    [
      'src/core/step.ts',
      'if (observeClocks(probe, now).length > 0) return false;',
      'observeClocks(probe, now);',
    ],
    ['src/core/step.ts', MAY_DELETE, 'return true;'],
  ]),
  bug('a market that moves is deleted', 13, 'of what another daemon renews', [
    ['src/core/goal.ts', "leaving === 'moved' ? 'handoff' : policy", 'policy'],
  ]),
  bug('what is disarmed is renewed', 12, 'renewed what it guards no longer', [
    [
      'src/core/goal.ts',
      "if (hold?.why === 'tripped') return 'trip';",
      "if (hold?.why === 'tripped') return 'trip';\n  if (hold?.why === 'disarmed') return 'guard';",
    ],
  ]),
  bug('a trip does not wait for strays', 27, 'could still arrive behind it', 'a delete waits for strays'),
  bug(
    'a stop calls a failed delete its policy',
    'bot-fails-with-a-delete-on-its-way.json',
    'left on purpose',
    [['src/core/commands.ts', "if (mayExist && market.triedDelete) return 'unconfirmed';", '']],
  ),
  bug('a stop does not name what it leaves', 25, 'without naming the timer', [
    ['src/core/commands.ts', 'left.push({ market: market.settings.market, firesByWallMs, why });', ''],
  ]),
  bug('a stop forgets requests of the life before', 'old-renewal-after-a-clean-stop.json', 'and a renewal', [
    [
      'src/core/commands.ts',
      "if (mayExist || !reached) return 'unconfirmed';",
      "if (!reached) return 'unconfirmed';",
    ],
  ]),
  bug('a stop counts the lifetime of a request as over', 36, 'fires later than', [
    ['src/core/commands.ts', LEFT_BY, 'wallAt(state, (market.belief.notAfterMs ?? monoMs) - 13_000);'],
  ]),
  bug('a lapse is told by the clock and by the answer', 23, 'reported one gap twice', [
    ['src/core/step.ts', 'belief.server = null;\n  tidy', 'tidy'],
  ]),
  bug('every lapse is called certain', 23, 'that never was', [
    ['src/core/belief.ts', "surely && unresolved === 0 ? 'certain' : 'possible';", "'certain';"],
  ]),
  bug(
    'what fires on purpose is a lapse',
    'held-up-until-a-silent-bot-has-lost-its-timer.json',
    'nobody wanted the timer',
    [['src/core/step.ts', '(mustNotFire(market) || !market.firesOnPurpose) && belief', 'belief']],
  ),
  bug(
    'renewals leave in the order of the configuration',
    208,
    'which ends sooner',
    'what ends sooner goes first',
  ),
];

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The text of each file that is changed, by its path in the repository. Throws where a text is not there exactly once. */
export function plant({ name, edits }: Planting): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { file, find, replace } of edits) {
    const parts = (texts.get(file) ?? readFileSync(join(ROOT, file), 'utf8')).split(find);
    if (parts.length !== 2) throw new Error(`"${name}": ${file} has ${parts.length - 1} times: ${find}`);
    texts.set(file, parts.join(replace));
  }
  return texts;
}
