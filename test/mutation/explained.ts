import { type Explained, explain, PASSED, PLANTED, SAME_MOMENT, SETTLED } from './explain.ts';
import { EXPLAINED_DECISIONS } from './explained-decisions.ts';

export const EXPLAINED: readonly Explained[] = [
  ...EXPLAINED_DECISIONS,
  ...explain(
    'belief.ts',
    'the rest of the function does nothing to a belief that was just forgotten',
    ['return;', 'statement', 'nothing'],
    ['if (belief.notBeforeLifeMs === null) return;', 'condition', 'false'],
    ['if (belief.notBeforeLifeMs === null) return;', 'statement', 'nothing'],
  ),
  ...explain(
    'belief.ts',
    PASSED,
    [
      'if (belief.strayUntilMs > 0) ends.push(belief.strayUntilMs + lastsAtMost(state, belief.strayLongestMs));',
      '0',
      '1',
    ],
    [
      'belief.strayLongestMs = Math.max(belief.strayUntilMs > 0 ? belief.strayLongestMs : 0, attempt.timeoutMs);',
      '0',
      '1',
    ],
    ['belief.strayCutUntilMs = 0;', '0', '1'],
    ['if (rising) belief.strayDeleteUntilMs = 0;', '0', '1'],
    ['belief.lastsAwakeMs = 0;', '0', '1'],
    ['belief.strayAwakeMs = 0;', '0', '1'],
  ),
  ...explain(
    'belief.ts',
    SETTLED,
    ['const fenced = rising && attempt.id < belief.lastAppliedId;', '<', '<='],
    ["if (attempt.id < belief.lastAppliedId && state.settings.nonce === 'increasing') {", '<', '<='],
    ['if (attempt.id < belief.lastAppliedId) {', '<', '<='],
    [
      'const unresolved = belief.unresolved + market.inFlight.filter(({ id }) => id < attempt.id).length;',
      '<',
      '<=',
    ],
    ['if (belief.lastUnresolvedId < attempt.id) belief.unresolved = 0;', '<', '<='],
    [
      'if (belief.strayUntilMs <= attempt.writtenMs || (rising && belief.lastUnresolvedId < attempt.id)) {',
      '<',
      '<=',
    ],
    ["if (other.purpose === 'delete' || (rising && other.id < confirmed.id)) continue;", '<', '<='],
  ),
  ...explain(
    'belief.ts',
    SAME_MOMENT,
    ['if (leastLifeMs < belief.notBeforeLifeMs) believeUntil(state, belief, leastLifeMs);', '<', '<='],
    ['const open = belief.strayCutUntilMs > state.now.monoMs;', '>', '>='],
    [
      'if (belief.strayUntilMs <= attempt.writtenMs || (rising && belief.lastUnresolvedId < attempt.id)) {',
      '<=',
      '<',
    ],
    ['if (belief.strayCutUntilMs > state.now.monoMs)', '>', '>='],
    ['else if (belief.strayDeleteUntilMs > state.now.monoMs) forget(belief);', '>', '>='],
    ['if (other.repliedMs <= writtenMs) continue;', '<=', '<'],
    ['market.inFlight.some((other) => other.writtenMs < repliedMs),', '<', '<='],
    ['return notAfterMs !== null && state.now.monoMs > notAfterMs;', '>', '>='],
  ),
  ...explain('belief.ts', 'a fenced attempt had no part in the upper end while it was on its way either', [
    'resolveUpperEnd(state, attempt.market);',
    'statement',
    'nothing',
  ]),
  ...explain(
    'belief.ts',
    'a timer of a millisecond is as good as none: a second is taken off it for rounding',
    ['const shortestMs = Math.max(0, Math.min(attempt.timeoutMs, grantedMs));', '0', '1'],
  ),
  ...explain('belief.ts', 'nobody asks this of an answer that came too late to count', [
    'return { lapse: null, unresolved: 0, altered, stale: true };',
    '0',
    '1',
  ]),
  ...explain(
    'belief.ts',
    PLANTED,
    [
      "const doubled = state.settings.flaw === 'belief-of-two-timeouts' ? shortestMs : 0;",
      'condition',
      'false',
    ],
    ['believeUntil(state, belief, untilLifeMs + doubled);', '+', '-'],
    [
      "return state.settings.flaw === 'deadline-from-reply' ? state.lifeMs : attempt.writtenLifeMs;",
      'condition',
      'false',
    ],
  ),
  ...explain(
    'belief.ts',
    'with rising nonces it is read by a reload only, which keeps what it knows of a market a little longer',
    ['if (rising) belief.strayDeleteUntilMs = 0;', 'statement', 'nothing'],
  ),
  ...explain(
    'belief.ts',
    'done before: when the delete was written, or by the next confirmation',
    ['forget(belief);', 'statement', 'nothing'],
    ['belief.unresolved = 0;', 'statement', 'nothing'],
    ['belief.unresolved = 0;', '0', '1'],
    ['belief.strayAwakeMs = 0;', 'statement', 'nothing'],
  ),
  ...explain('failures.ts', PLANTED, [
    "const flawed = state.settings.flaw === 'timeout-means-not-applied' && reasonOf(outcome) === 'timeout';",
    '===',
    '!==',
  ]),
  ...explain(
    'release.ts',
    PLANTED,
    ['if (state.settings.flaw !== null) return gapMs;', 'condition', 'false'],
    ["if (state.settings.flaw === 'no-sleep-in-backoff') return 1;", 'condition', 'false'],
    ["if (state.settings.flaw === 'no-sleep-in-backoff') return 1;", '1', '2'],
    ["return state.settings.flaw === 'backoff-longer-than-timer' ? 30_000 : gapMs;", 'condition', 'false'],
    ["return state.settings.flaw === 'backoff-longer-than-timer' ? 30_000 : gapMs;", '30000', '33000'],
    [
      'deadlineMs: monoMs + (waitsForHung(state) ? 10_000 : attemptDeadlineMs(slack, longestRoundTripMs)),',
      'condition',
      'false',
    ],
    [
      'deadlineMs: monoMs + (waitsForHung(state) ? 10_000 : attemptDeadlineMs(slack, longestRoundTripMs)),',
      '10000',
      '11000',
    ],
  ),
  ...explain(
    'hold.ts',
    'what stands below it finds nothing to do: the hold is none that it may end or change',
    ['break;', 'statement', 'nothing'],
  ),
  ...explain('drain.ts', SAME_MOMENT, [
    'if (notAfterMs === null || notAfterMs <= monoMs) continue;',
    '<=',
    '<',
  ]),
  ...explain(
    'evidence.ts',
    SAME_MOMENT,
    ["if (bot.state === 'starting') return atLifeMs <= bot.graceUntilLifeMs;", '<=', '<'],
    [
      'const latestMs = monoMs < state.deafUntilMs ? Math.min(monoMs, state.deafSinceMs) : monoMs;',
      '<',
      '<=',
    ],
    [
      "return bot.state === 'stale' && awakeMs(state) - bot.lastAwakeMs > state.settings.liveness.ttlMs;",
      '>',
      '>=',
    ],
  ),
];
