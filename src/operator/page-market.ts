import type { Look, Row, Words } from './page-words.ts';
import type { MarketStatus } from './status.ts';

// These functions run in the browser too: see `page-words.ts`. They may refer to each other and to nothing else.

/** The plot of the slack at the last renewals: newest at the right, 100 % at the top of a box of 240 by 40. */
export function viewSlack(history: readonly number[]): Record<string, string> {
  const last = history.at(-1);
  if (last === undefined) {
    const none = 'No renewal yet';
    return { slackLine: '', slackArea: '', slackX: '0', slackY: '0', slackLabel: none, slackSpoken: none };
  }
  const yOf = (ratio: number): number => Math.round((38 - Math.min(1, Math.max(0, ratio)) * 36) * 10) / 10;
  const xOf = (index: number): number => 236 - (history.length - 1 - index) * 4;
  const points = history.map((ratio, index) => `${xOf(index)} ${yOf(ratio)}`);
  const lowest = Math.round(Math.min(...history) * 100);
  return {
    slackLine: `M${points.join('L')}`,
    slackArea: `M${xOf(0)} 39L${points.join('L')}L236 39Z`,
    slackX: '236',
    slackY: String(yOf(last)),
    slackLabel: `Lowest slack ${lowest}\u00a0%`,
    slackSpoken: `Slack at the last renewals, ${history.length} of them: lowest ${lowest}\u00a0%, last ${Math.round(last * 100)}\u00a0%`,
  };
}

/** How long a market's orders are safe from cancellation, in words. */
export function viewRemaining(market: MarketStatus, look: Look, now: number, say: Words): [string, string] {
  const { guaranteedSeconds, firesBy, hold, state } = market;
  if (guaranteedSeconds === null) {
    const pauseEnds = hold?.untilAt ?? null;
    if (pauseEnds !== null && look.gone === null) {
      return [say.seconds(Math.max(0, Math.ceil(pauseEnds - now))), 'until it is armed again'];
    }
    return ['–', hold === null ? 'no timer' : 'no timer: left alone'];
  }
  const left = guaranteedSeconds - look.elapsedSeconds;
  const fires = firesBy === null ? '' : `orders cancelled by ${say.time(firesBy)} unless renewed`;
  if (left <= 0) return ['0\u00a0s', fires === '' ? 'no timer is left' : fires];
  const time = say.seconds(Math.ceil(left));
  if (look.gone !== null) return [time, fires === '' ? 'left then' : `left then; ${fires}`];
  if (state === 'armed') return [time, 'left on the timer'];
  return [time, state === 'retrying' ? 'left, unless renewed' : 'until its orders are cancelled'];
}

/** Why a market is out of guard on purpose, and what ends that. */
export function viewNote(market: MarketStatus, now: number, say: Words): string {
  const { hold, leaving, handedOverInSeconds: handedOver } = market;
  const until = hold?.untilAt ?? null;
  const notes = {
    none: '',
    disarmed: 'Disarmed by an operator: left alone until somebody arms it.',
    paused:
      until === null
        ? 'Paused by an operator: left alone until somebody resumes it.'
        : `Paused by an operator until ${say.time(until, now)}; armed again by itself then.`,
    tripped:
      'Tripped by an operator: its orders are cancelled, and it is not armed again until somebody does.',
    lapsed: 'Held after a lapse (onLapse: hold): not armed again until somebody does.',
  };
  const left = leaving ? 'No longer configured; shown until its timer is gone.' : '';
  const moved =
    handedOver === null
      ? ''
      : `Belongs to another shard now; guarded here as well for another ${say.seconds(handedOver)}.`;
  return [notes[hold?.why ?? 'none'], moved === '' ? left : moved].filter((note) => note !== '').join(' ');
}

/** The promise and the record of a market, in numbers. */
export function viewNumbers(market: MarketStatus, say: Words): Record<string, string> {
  const { lastAnswerSeconds, failureStreak, lapses } = market;
  return {
    timer: say.seconds(market.timeoutSeconds),
    cadence: say.seconds(market.renewEverySeconds),
    survives: say.seconds(market.survivesSeconds),
    answer: lastAnswerSeconds === null ? '–' : say.seconds(lastAnswerSeconds),
    renewals: say.count(market.renewals),
    failures: say.count(market.failures),
    failuresTone: failureStreak > 0 ? 'warn' : 'none',
    lapses: say.count(lapses),
    lapsesTone: lapses > 0 ? 'bad' : 'none',
    lapsed:
      lapses === 0
        ? ''
        : `${say.count(lapses, 'lapse')} since the daemon started: its orders were cancelled, or may have been.`,
  };
}

/** One market as a row. `share` is how full its bar is, `rate` how much of it goes each second. */
export function viewMarket(market: MarketStatus, look: Look, now: number, say: Words): Row {
  const { state, timeoutSeconds, guaranteedSeconds, failureStreak, lastProblem } = market;
  const gone = look.gone !== null;
  const tone = gone ? 'idle' : say.tone(state);
  const [remaining, remainingLabel] = viewRemaining(market, look, now, say);
  const left = Math.max(0, (guaranteedSeconds ?? 0) - look.elapsedSeconds);
  // The exchange may round a second away, so that a timer is surely armed for one less than its timeout.
  const full = timeoutSeconds - 1;
  const share = Math.round(Math.min(1, left / full) * 1000) / 1000;
  const due = Math.round(1000 * Math.max(0, 1 - market.renewEverySeconds / full));
  const streak = failureStreak > 1 ? `${failureStreak} failures in a row, the last: ` : '';
  const ending = look.gone === 'ended' && state === 'deleted';
  return {
    key: market.market,
    market: market.market,
    state: gone && !ending ? `was ${state}` : state,
    tone,
    icon: say.icon(tone),
    facts: `${market.types === null ? 'all orders' : market.types.join(', ')} · bot ${market.bot}`,
    remaining,
    remainingLabel,
    fill: `scale(${share} 1)`,
    share: String(share),
    rate: gone || left === 0 ? '0' : String(-1 / full),
    due: `M${due} 0V10`,
    ...viewSlack(market.slackHistory),
    ...viewNumbers(market, say),
    note: viewNote(market, now, say),
    problem: lastProblem === null || state === 'armed' ? '' : streak + lastProblem,
    promise: market.promise.join('\n'),
    onStop: `If this daemon were stopped now: ${market.onStop}.`,
  };
}

/** The functions above as source text for the browser. */
export const MARKET_SOURCE = [viewSlack, viewRemaining, viewNote, viewNumbers, viewMarket]
  .map((view) => view.toString())
  .join('\n');
