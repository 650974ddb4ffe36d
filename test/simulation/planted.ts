import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A change of the sources that can be planted: each text must occur in its file exactly once. */
export interface Planting {
  readonly name: string;
  readonly edits: readonly { readonly file: string; readonly find: string; readonly replace: string }[];
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

/** Each edit is a file of `src`, what stands there, and what takes its place; or those that take the rule of this name out. */
function bug(
  name: string,
  shownBy: PlantedBug['shownBy'],
  says: string,
  edits: string | readonly (readonly [file: string, find: string, replace: string])[],
): PlantedBug {
  const listed =
    typeof edits === 'string'
      ? RULES.find((rule) => rule.name === edits)?.edits
      : edits.map(([file, find, replace]) => ({ file: `src/${file}.ts`, find, replace }));
  return { name, shownBy, says, edits: listed ?? [] };
}

/** Asked before the first byte of a delete. */
const MAY_DELETE = "market.goal === 'delete' && (alive || bot.state === 'goodbye')";

/** What the simulation must find. A refactoring that moves the text of a rule moves it here as well. */
export const PLANTED: readonly PlantedBug[] = [
  bug('retries follow each other without a pause', 1, 'requests within a second', [
    [
      'core/next',
      'slackMs <= 0 ? UNPROTECTED_GAP_MS : clamp(slackMs * share, leastMs, 5000)',
      '20 + 0 * slackMs',
    ],
    ['core/promise', 'SHORTEST_GAP_MS = 250', 'SHORTEST_GAP_MS = 20'],
  ]),
  bug('the pause between retries is longer than the timer', 39, 'fired although', [
    ['core/next', 'clamp(slackMs * share, leastMs, 5000)', '30_000'],
    ['core/next', '? lastMs', '? gapMs'],
  ]),
  bug(
    'words count from the first of many short stalls',
    'a-living-bot-between-many-stalls.json',
    'calls bot-0 silent',
    [['core/step', 'if (readMs > monoMs)', 'if (readMs > monoMs && readMs < monoMs)']],
  ),
  bug('the timer counts from the reply', 12, 'longer than it is', [
    ['core/belief', 'at.lifeMs +', 'at.lifeMs + (write.untilMs - write.at.monoMs) +'],
  ]),
  bug('a delete leaves beside a renewal', 14, 'wrote a delete beside a renewal in flight', [
    ['core/dispatch', 'if (before.length > 0)', "if (before.length > 0 && purpose !== 'delete')"],
  ]),
  bug('renewals need no evidence', 3, 'after the evidence ran out', [
    ['core/goal', "if (settings.liveness.mode === 'none')", 'if (atLifeMs > 0)'],
  ]),
  bug('a time-out counts as not carried out', 20, 'says within', [
    [
      'core/settle',
      'return outcome.maybeApplied;',
      "return outcome.maybeApplied && outcome.reason !== 'timeout';",
    ],
  ]),
  bug('a confirmation counts for twice the timeout', 1, 'longer than it is', [
    ['core/belief', 'at.lifeMs + leastMs(', 'at.lifeMs + leastMs(2 * '],
  ]),
  bug('nonces are the time of day', 1, '9 nonces', [
    ['exchange/sign', 'Math.max(Math.floor(now.wallMs), last + 1)', 'Math.floor(now.wallMs)'],
  ]),
  bug('a retry waits for an attempt that hangs', 39, 'fired although', [
    ['core/dispatch', 'const givesWay', 'if (open.length > 0) return true;\n  const givesWay'],
  ]),
  bug("another market's success ends a streak of failures", 1, 'failures in a row', [
    [
      'core/settle',
      'overdueSaid = false;',
      'overdueSaid = false;\n  for (const other of state.markets) other.streak = 0;',
    ],
  ]),
  bug('a lapse is not reported', 6, 'after a lapse and said nothing', [
    ['core/settle', 'lapse !== null && wasWanted', 'lapse === undefined && wasWanted'],
    ['core/step', '(market.mustNotFire || !market.firesOnPurpose)', 'market.streak < 0'],
  ]),
  bug('every lapse is called possible', 6, 'calls a lapse possible that is certain', [
    ['core/belief', "surely && unresolved === 0 ? 'certain' : 'possible'", "'possible'"],
    ['core/step', 'noteLapse(state, market, certainty', "noteLapse(state, market, 'possible'"],
  ]),
  bug('every tenth lapse is called possible', 127, 'calls a lapse possible that is certain', [
    ['core/belief', 'unresolved === 0 ?', 'unresolved === 0 && timer.startTime % 10 !== 0 ?'],
    [
      'core/step',
      'noteLapse(state, market, certainty',
      "noteLapse(state, market, Math.floor(firedByWallMs / 1000) % 10 !== 8 ? 'certain' : 'possible'",
    ],
  ]),
  bug('timers are renewed every third of their timeout', 2, 'after it was due', [
    ['core/promise', 'SHARE = 0.1;', 'SHARE = 1 / 3;'],
    ['core/promise', 'LOST_AT_MOST = 0.15;', 'LOST_AT_MOST = 2;'],
    ['core/promise', 'LONGEST_PERIOD_MS = 10_000;', 'LONGEST_PERIOD_MS = 200_000;'],
  ]),
  bug('a request leaves without being asked again', 27, 'after it had decided on it', [
    ['keeper', 'mayWrite(state, attempt, clock.now())', 'mayWrite !== undefined'],
  ]),
  bug('a suspend does not age a timer', 119, 'and it is not', [
    ['core/time', 'timebase.lifeOffsetMs += Math.max(slept, stepped, 0);', ''],
  ]),
  bug('the second that the exchange rounds off is not given away', 1, 'says within', [
    ['core/promise', 'ROUNDING_MS = 1000', 'ROUNDING_MS = 0'],
  ]),
  bug('a beat counts for twice its time', 3, 'after the evidence ran out', [
    ['core/goal', 'lastLifeMs <=', 'lastLifeMs <= 2 *'],
  ]),
  bug('a 401 counts as an accepted nonce', 263, 'says within', [
    [
      'core/settle',
      'believeNotApplied(state, attempt);',
      `{
      const { belief } = market;
      if (outcome.kind === 'unauthorised')
        belief.writes = belief.writes.filter(({ id, status }) => id >= attempt.id || status === 'confirmed');
      believeNotApplied(state, attempt);
    }`,
    ],
  ]),
  bug('the budget bounds what is written and not what arrives', 293, 'arrivals of requests', [
    ['core/state', 'settings.budget.requests - attempts.size - settledMs.length', 'settings.budget.requests'],
  ]),
  bug('a request holds its token until it is answered', 174, 'fired although', [
    ['core/state', 'bucket.burst - this.#owed', 'bucket.burst - attempts.size - this.#owed'],
  ]),
  bug(
    'new markets wait for all that have time',
    129,
    'did not arm it within',
    'what has lapsed waits for 5 s only',
  ),
  bug('a stop probes as rarely as it renews', 4, 'has not deleted it', 'a stop probes twice a second'),
  bug('the timeout that the exchange granted is not looked at', 16, 'longer than it is', [
    ['core/belief', 'Math.max(0, Math.min(askedMs, grantedMs))', 'askedMs'],
  ]),
  bug('`renewEverySeconds` is not looked at', 32, 'after it was due', [
    ['core/promise', 'market.renewEveryMs ??', ''],
  ]),
  bug('a lapse under `onLapse: hold` is armed again', 13, 'keeps guarding it after a lapse', [
    ['core/settle', "held) hold(state, market, 'lapsed', null)", 'market.streak >= 0) return'],
  ]),
  bug(
    'one refusal latches what was good',
    1,
    'gave it up after 1 refusals',
    'what was good is refused by the second answer',
  ),
  bug('a dead bot is not tripped', 33, 'did not cut it short', [
    ['core/goal', 'isDead && isToBeTripped(state, market)', 'isDead && bot === undefined'],
  ]),
  bug('timers are longer than configured', 5, 'after the latest moment promised', [
    ['core/dispatch', 'Math.round(timeoutMs', '30 + Math.round(timeoutMs'],
  ]),
  bug('a stop deletes whatever the policy says', 93, 'nobody asked it to delete', [
    ['core/goal', 'goalAtEnd(state, market, policy)', "goalAtEnd(state, market, 'delete')"],
  ]),
  bug('a stop deletes the timer of a dead bot', 4, 'deleted the timer of a dead bot', [
    [
      'core/goal',
      "if (state.settings.liveness.mode === 'none' || bot.state === 'goodbye') return true",
      'return state.settings !== null',
    ],
    ['core/step', MAY_DELETE, 'true'],
  ]),
  bug('a command deletes the timer of a dead bot', 32, 'wrote a delete for a dead bot', [
    ['core/goal', "bot.state !== 'alive') return false", "state.phase.kind === 'running') return true"],
    ['core/step', MAY_DELETE, 'true'],
  ]),
  bug('a delete leaves whatever is wanted by then', 27, 'after it had decided on it', [
    ['core/step', "'open' || at.monoMs < state.stalledMs", "'open'"],
    ['core/step', 'if (now.monoMs - state.wakeAtMs > LATE_MS) return false;', ''],
    ['core/step', 'if (observeClocks(ahead, now).length > 0) return false', 'observeClocks(ahead, now)'],
    ['core/step', MAY_DELETE, 'true'],
  ]),
  bug('a market that moves is deleted', 13, 'of what another daemon renews', [
    ['core/goal', "leaving === 'moved' ? 'handoff' : policy", 'policy'],
  ]),
  bug('what is disarmed is renewed', 12, 'renewed what it guards no longer', [
    [
      'core/goal',
      "'tripped') return 'trip';",
      "'tripped') return 'trip';\n  if (hold?.why === 'disarmed') return 'guard';",
    ],
  ]),
  bug('deletes and trips that fail go before all renewals', 71, 'fired although', [
    [
      'core/dispatch',
      'if (isEnd ? market.streak > 0 : !canBeSaved)',
      'if (isEnd) return 2 * RANK.turn - waitedMs;\n  if (!canBeSaved)',
    ],
  ]),
  bug('a trip that a stray may undo is called the last', 48, 'called a timer cut', [
    ['core/settle', 'at.monoMs >= straysUntilMs', "as === 'trip' || at.monoMs >= straysUntilMs"],
  ]),
  bug('a delete that a stray may undo is called the last', 32, 'called a timer deleted', [
    ['core/settle', 'at.monoMs >= straysUntilMs', "as === 'delete' || at.monoMs >= straysUntilMs"],
  ]),
  bug(
    'a stop calls a failed delete its policy',
    'bot-fails-with-a-delete-on-its-way.json',
    'left on purpose',
    [['core/commands', "if (mayExist && market.triedDelete) return 'unconfirmed';", '']],
  ),
  bug('a stop does not name what it leaves', 4, 'without naming the timer', [
    [
      'core/commands',
      'left.push({ market: market.settings.market, firesByWallMs, why, confirmed: isConfirmed(market.belief) });',
      '',
    ],
  ]),
  bug('a stop forgets requests of the life before', 'old-renewal-after-a-clean-stop.json', 'and a renewal', [
    ['core/commands', '(mayExist || !reached)', '(!reached)'],
  ]),
  bug('a stop counts the lifetime of a request as over', 4, 'fires later than', [
    ['core/commands', 'market.belief.notAfterMs ?? monoMs', '(market.belief.notAfterMs ?? monoMs) - 13_000'],
  ]),
  bug('a lapse is told by the clock and by the answer', 6, 'reported one gap twice', [
    ['core/step', 'belief.server = null;\n  tidy', 'tidy'],
  ]),
  bug('every lapse is called certain', 19, 'that never was', [
    ['core/belief', "surely && unresolved === 0 ? 'certain' : 'possible'", "'certain'"],
  ]),
  bug('what fires on purpose is a lapse', 32, 'nobody wanted the timer', [
    ['core/step', '(market.mustNotFire || !market.firesOnPurpose) && belief', 'belief'],
  ]),
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
