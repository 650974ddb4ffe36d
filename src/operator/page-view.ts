import type { MarketStatus, StatusDocument } from './status.ts';

/** Texts and attribute values of one row, by the name of the slot they go into. `key` tells rows of a list apart. */
export type Row = Readonly<Record<string, string>> & { readonly key: string };

/** What the page shows: texts for its own slots, and rows for its lists. */
export interface PageView {
  readonly fields: Readonly<Record<string, string>>;
  readonly lists: Readonly<
    Record<'reasons' | 'markets' | 'bases' | 'bots' | 'stops' | 'events', readonly Row[]>
  >;
}

// The functions of this file run on the server for the first state and, by their source text, in the browser for every
// later one (see `page-script.ts`). They may refer to each other and to nothing else.

/** Seconds as `12 ms`, `2.5 s`, `54 s`, `4 min 10 s` or `2 h 5 min`, with spaces that do not break. */
export function formatSeconds(seconds: number): string {
  const units = (big: number, bigUnit: string, small: number, smallUnit: string): string =>
    small === 0 ? `${big}\u00a0${bigUnit}` : `${big}\u00a0${bigUnit}\u00a0${small}\u00a0${smallUnit}`;
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)}\u00a0ms`;
  if (seconds < 10) return `${Math.round(seconds * 10) / 10}\u00a0s`;
  const whole = Math.floor(seconds);
  if (whole < 120) return `${whole}\u00a0s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 120) return units(minutes, 'min', whole % 60, 's');
  const hours = Math.floor(minutes / 60);
  return hours < 48
    ? units(hours, 'h', minutes % 60, 'min')
    : units(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

/** Unix seconds as a time of day, in the time zone of whoever runs this. */
export function formatTime(unixSeconds: number): string {
  const parts = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const;
  return new Intl.DateTimeFormat('en-GB', parts).format(unixSeconds * 1000);
}

/** `1 market`, `1,200 markets`. */
export function formatCount(count: number, what: string): string {
  return `${count.toLocaleString('en-GB')} ${what}${count === 1 ? '' : 's'}`;
}

/** The name of the colour and symbol for a state; the state itself is always there as a word too. */
export function toneOf(state: string): string {
  if (['armed', 'alive', 'up', 'ready'].includes(state)) return 'ok';
  if (['expired', 'rejected', 'failed', 'stale', 'down'].includes(state)) return 'bad';
  if (['retrying', 'suspended', 'not ready', 'stopping'].includes(state)) return 'warn';
  return 'idle';
}

/** The symbol that goes with a tone. */
export function iconOf(tone: string): string {
  return { ok: '✓', warn: '!', bad: '×' }[tone] ?? '–';
}

/** The plot of the slack at the last renewals: newest at the right, 100 % at the top of a box of 120 by 32. */
export function viewSlack(history: readonly number[]): { line: string; area: string; label: string } {
  if (history.length === 0) return { line: '', area: '', label: 'no slack yet' };
  const points = history.map((ratio, index) => {
    const x = 119 - (history.length - 1 - index) * 2;
    const y = 31 - Math.min(1, Math.max(0, ratio)) * 30;
    return `${x} ${Math.round(y * 10) / 10}`;
  });
  const firstX = 119 - (history.length - 1) * 2;
  const lowest = Math.round(Math.min(...history) * 100);
  return {
    line: `M${points.join('L')}${history.length === 1 ? 'h.1' : ''}`,
    area: `M${firstX} 32L${points.join('L')}L119 32Z`,
    label: `lowest slack ${lowest} %`,
  };
}

/** How long a market's orders are safe from cancellation, in words. */
export function viewRemaining(
  market: MarketStatus,
  elapsed: number,
  lost: boolean,
): { time: string; label: string } {
  if (market.guaranteedSeconds === null) return { time: '–', label: 'no timer' };
  const left = market.guaranteedSeconds - elapsed;
  if (left > 0) {
    const label = market.state === 'armed' && !lost ? 'left on the timer' : 'until its orders are cancelled';
    return { time: formatSeconds(Math.ceil(left)), label };
  }
  if (market.firesBy === null) return { time: '0\u00a0s', label: 'no timer is left' };
  return { time: '0\u00a0s', label: `orders cancelled by ${formatTime(market.firesBy)}, unless renewed` };
}

/** One market `elapsed` seconds after the document was made; `lost` where nothing newer can be had. */
export function viewMarket(market: MarketStatus, elapsed: number, lost: boolean): Row {
  const tone = lost ? 'idle' : toneOf(market.state);
  const slack = viewSlack(market.slackHistory);
  const remaining = viewRemaining(market, elapsed, lost);
  const left = Math.max(0, (market.guaranteedSeconds ?? 0) - elapsed);
  const streak = market.failureStreak > 1 ? `${market.failureStreak} failures in a row, the last: ` : '';
  return {
    key: market.market,
    market: market.market,
    state: lost ? `was ${market.state}` : market.state,
    tone,
    icon: iconOf(tone),
    facts: `${market.types === null ? 'all orders' : market.types.join(', ')} · bot ${market.bot}`,
    cadence: `timer ${formatSeconds(market.timeoutSeconds)} · renewed every ${formatSeconds(market.renewEverySeconds)}`,
    remaining: remaining.time,
    remainingLabel: remaining.label,
    fill: `scale(${Math.round(Math.min(1, left / market.timeoutSeconds) * 1000) / 1000} 1)`,
    slackLine: slack.line,
    slackArea: slack.area,
    slackLabel: slack.label,
    slackSpoken: `Time that was left at the last ${market.slackHistory.length} renewals: ${slack.label}`,
    answer: market.lastAnswerSeconds === null ? '–' : formatSeconds(market.lastAnswerSeconds),
    renewals: market.renewals.toLocaleString('en-GB'),
    failures: market.failures.toLocaleString('en-GB'),
    failuresTone: market.failureStreak > 0 ? 'warn' : 'idle',
    lapses: market.lapses.toLocaleString('en-GB'),
    lapsesTone: market.lapses > 0 ? 'bad' : 'idle',
    problem: market.lastProblem === null || tone === 'ok' ? '' : streak + market.lastProblem,
    promise: market.promise.join('\n'),
    onStop: `If this daemon were stopped now: ${market.onStop}.`,
  };
}

/** What the daemon is doing, as one word, one sentence and one more. */
export function viewSummary(status: StatusDocument, elapsed: number, lost: boolean): Record<string, string> {
  const { marketCount, marketsByState, phase } = status;
  const seen = phase === 'running' ? (status.ready ? 'ready' : 'not ready') : phase;
  const word = lost ? 'no connection' : seen;
  const tone = lost ? 'bad' : toneOf(word);
  const { armed } = marketsByState;
  const all =
    marketCount === 1
      ? 'The timer is armed.'
      : `All ${marketCount.toLocaleString('en-GB')} timers are armed.`;
  const some =
    marketCount === 1
      ? 'The timer is not armed.'
      : `${armed.toLocaleString('en-GB')} of ${formatCount(marketCount, 'timer')} ${armed === 1 ? 'is' : 'are'} armed.`;
  const sentence = lost ? 'The daemon does not answer.' : armed === marketCount ? all : some;
  const nearest = status.markets
    .filter(({ guaranteedSeconds }) => guaranteedSeconds !== null && guaranteedSeconds > elapsed)
    .toSorted((one, other) => (one.guaranteedSeconds ?? 0) - (other.guaranteedSeconds ?? 0))[0];
  const next =
    lost || nearest === undefined
      ? ''
      : `${nearest.market} has the least time left: ${formatSeconds(Math.ceil((nearest.guaranteedSeconds ?? 0) - elapsed))}.`;
  const hidden = marketCount - status.markets.length;
  return {
    word,
    tone,
    icon: iconOf(tone),
    sentence,
    next,
    hidden:
      hidden === 0
        ? ''
        : `${formatCount(hidden, 'market')} more in /api/v1/status; the worst come first here.`,
    uptime: lost
      ? ''
      : `up for ${formatSeconds(Math.max(1, Math.floor(status.now + elapsed - status.startedAt)))}`,
    version: status.version,
    policy: `Shutdown policy: ${status.shutdownPolicy}`,
    title: lost
      ? '(!) no connection · killswitchd'
      : `${word === 'ready' ? '' : '(!) '}${armed}/${marketCount} armed · killswitchd`,
  };
}

/** Why the daemon is not ready; of many reasons the first ones. */
export function viewReasons({ ready, notReady }: StatusDocument): Row[] {
  const shown = ready ? [] : notReady.slice(0, 5).map((text) => ({ key: text, text }));
  const more = notReady.length - shown.length;
  return ready || more === 0
    ? shown
    : [...shown, { key: 'more', text: `${formatCount(more, 'reason')} more` }];
}

/** Everything around the markets. */
export function viewSurroundings(
  status: StatusDocument,
  elapsed: number,
): Omit<PageView['lists'], 'markets'> {
  return {
    reasons: viewReasons(status),
    bases: status.bases.map(({ url, up, pingSeconds, outage, lastProblem }) => {
      const state = outage ? 'down' : up === null ? 'not known yet' : up ? 'up' : 'down';
      const tone = toneOf(state);
      const ping = pingSeconds === null ? 'no answer yet' : `ping ${formatSeconds(pingSeconds)}`;
      const problem = state === 'up' ? '' : (lastProblem ?? '');
      return { key: url, url, state: outage ? 'outage' : state, tone, icon: iconOf(tone), ping, problem };
    }),
    bots: status.bots.map(({ bot, mode, state, evidenceAgeSeconds, ttlSeconds }) => {
      const tone = mode === 'none' ? 'warn' : toneOf(state);
      const age =
        evidenceAgeSeconds === null
          ? 'no evidence yet'
          : `last evidence ${formatSeconds(Math.floor(evidenceAgeSeconds + elapsed))} ago`;
      const watched = ttlSeconds === null ? age : `${age}, good for ${formatSeconds(ttlSeconds)}`;
      return mode === 'none'
        ? {
            key: bot,
            bot,
            state: 'not watched',
            tone,
            icon: iconOf(tone),
            evidence: 'nobody checks that it lives',
          }
        : { key: bot, bot, state, tone, icon: iconOf(tone), evidence: `${watched} (${mode})` };
    }),
    stops: status.whatAStopWouldDo.map(({ does, count, markets }) => {
      const more = count > markets.length ? ` and ${count - markets.length} more` : '';
      return { key: does, does, markets: markets.join(', ') + more };
    }),
    events: status.events.slice(0, 50).map(({ at, level, event, text }) => {
      const tone = level === 'error' ? 'bad' : level === 'warn' ? 'warn' : 'idle';
      return { key: `${at} ${event} ${text}`, time: formatTime(at), level, tone, icon: iconOf(tone), text };
    }),
  };
}

/** The whole page `elapsed` seconds after the document was made; `lost` where nothing newer can be had. */
export function viewStatus(status: StatusDocument, elapsed: number, lost = false): PageView {
  const markets = status.markets.map((market) => viewMarket(market, elapsed, lost));
  return {
    fields: viewSummary(status, elapsed, lost),
    lists: { ...viewSurroundings(status, elapsed), markets },
  };
}

/** The functions above as source text for the browser. */
export const VIEW_SOURCE = [
  formatSeconds,
  formatTime,
  formatCount,
  toneOf,
  iconOf,
  viewSlack,
  viewRemaining,
  viewMarket,
  viewSummary,
  viewReasons,
  viewSurroundings,
  viewStatus,
]
  .map((view) => view.toString())
  .join('\n');
