import type { MarketStatus, StatusDocument } from './status.ts';

// What the page, and `killswitchd status`, say. These functions run on the server and, by their source text, in the
// browser: they may refer to each other and to nothing else.

export interface Look {
  /** Since the document was made; stands still once the daemon is gone. */
  readonly elapsedSeconds: number;
  /** Unix seconds by the daemon's clock; runs on when the daemon is gone. */
  readonly now: number;
  /** `lost`: it does not answer any more. `ended`: it said so before. */
  readonly gone: 'lost' | 'ended' | null;
  /** Unix seconds of the reader's clock: when the daemon was heard of last. */
  readonly heardAt: number;
  /** How the page is kept up to date. */
  readonly link: 'stream' | 'poll' | 'none';
  /** Only markets and bots whose name contains this. */
  readonly find: string;
  /** Counted from 0. */
  readonly page: number;
}

export type Tone = 'ok' | 'warn' | 'bad' | 'idle';
export type Cancelled = StatusDocument['cancellations'][number];

/** Seconds as `0 s`, `12 ms`, `2.5 s`, `54 s`, `4 min 10 s` or `2 h 5 min`, with spaces that do not break. */
export function saySeconds(seconds: number): string {
  const units = (big: number, bigUnit: string, small: number, smallUnit: string): string =>
    small === 0 ? `${big}\u00a0${bigUnit}` : `${big}\u00a0${bigUnit}\u00a0${small}\u00a0${smallUnit}`;
  if (seconds > 0 && seconds < 0.9995) return `${Math.round(seconds * 1000)}\u00a0ms`;
  if (seconds < 10) return `${Math.round(seconds * 10) / 10}\u00a0s`;
  const whole = Math.floor(seconds);
  const minutes = Math.floor(whole / 60);
  const hours = Math.floor(minutes / 60);
  if (whole < 120) return `${whole}\u00a0s`;
  if (minutes < 120) return units(minutes, 'min', whole % 60, 's');
  if (hours < 48) return units(hours, 'h', minutes % 60, 'min');
  return units(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

/** Unix seconds as a time of day in UTC, with the date where `near` is more than 20 hours away. */
export function sayTime(unixSeconds: number, near: number = unixSeconds): string {
  const time = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const;
  const day = Math.abs(near - unixSeconds) > 72_000 ? ({ day: 'numeric', month: 'short' } as const) : {};
  const format = new Intl.DateTimeFormat('en-GB', { ...day, ...time, timeZone: 'UTC' });
  return `${format.format(unixSeconds * 1000)} UTC`;
}

/** `1 market`, `1,200 markets`; without `what` the number alone. */
export function sayCount(count: number, what: string = ''): string {
  const number = count.toLocaleString('en-GB');
  return what === '' ? number : `${number} ${what}${count === 1 ? '' : 's'}`;
}

/** The name of the colour and symbol of a state; the state itself is always there as a word too. */
export function toneOf(state: string): Tone {
  if (['armed', 'alive', 'up', 'ready'].includes(state)) return 'ok';
  if (['expired', 'rejected', 'failed', 'silent', 'outage'].includes(state)) return 'bad';
  const warns = ['retrying', 'suspended', 'paused', 'disarmed', 'stopping', 'not watched', 'answers no ping'];
  return warns.includes(state) ? 'warn' : 'idle';
}

export function sayCause(why: Cancelled['why'], isMany: boolean): string {
  const [its, timer, was, it, they] = isMany
    ? ['the', 'timers', 'were', 'them', 'they']
    : ['its', 'timer', 'was', 'it', 'it'];
  return {
    bot_stale: `${its} bot was silent`,
    bot_failed: `${its} bot failed`,
    kept: `${its} ${timer} ${was} left to run out`,
    tripped: `an operator tripped ${it}`,
    disarmed: `${its} bot had not been heard, so that ${its} ${timer} could not be deleted`,
    unrenewed: 'no renewal was confirmed in time',
    deleted_late: `${its} ${timer} may have fired before ${they} ${was} deleted`,
  }[why];
}

/** What became of a market's orders: `were cancelled by 12:03:11: its bot was silent`. */
export function sayCancelled({ certainty, why, by, count }: Cancelled, now: number): string {
  const what =
    certainty === 'possible' ? 'may have been cancelled' : by > now ? 'are cancelled' : 'were cancelled';
  const when = certainty === 'possible' && why === 'unrenewed' ? 'since about' : 'by';
  const times = count > 1 ? ` (${sayCount(count)} times)` : '';
  return `${what} ${when} ${sayTime(by, now)}: ${sayCause(why, false)}${times}`;
}

export function sayAllCancelled({ cancellations, cancellationCount }: StatusDocument, now: number): string {
  const [newest] = cancellations;
  if (newest === undefined) return '';
  if (cancellationCount === 1) return `Orders of ${newest.market} ${sayCancelled(newest, now)}`;
  const certain = cancellations.filter(({ certainty }) => certainty === 'certain').length;
  const moments = cancellations.map(({ by }) => by);
  const last = Math.max(...moments);
  const isAllPossible = certain === 0 && cancellations.length === cancellationCount;
  const isSameCause = cancellations.every(({ why }) => why === newest.why);
  const isOverdue = isAllPossible && isSameCause && newest.why === 'unrenewed' && last <= now;
  const certainly = certain < cancellationCount ? 'were or may have been' : last > now ? 'are' : 'were';
  const what = isAllPossible ? 'may have been' : certainly;
  const when = isOverdue ? `since about ${sayTime(Math.min(...moments), now)}` : `by ${sayTime(last, now)}`;
  const cause = isSameCause ? `: ${sayCause(newest.why, true)}` : '';
  return `Orders of ${sayCount(cancellationCount, 'market')} ${what} cancelled ${when}${cause}`;
}

export function stateOfBase({ up, outage }: StatusDocument['bases'][number]): string {
  return outage ? 'outage' : up === null ? 'no ping yet' : up ? 'up' : 'answers no ping';
}

export function stateOfBot({ mode, state }: StatusDocument['bots'][number]): string {
  const others = { starting: 'not heard yet', stale: 'silent', goodbye: 'said goodbye' };
  if (mode === 'none') return 'not watched';
  return state === 'alive' || state === 'failed' ? state : others[state];
}

/** Whether a timer runs down: nobody renews it, and the orders are cancelled when it fires. */
export function runsDown(
  { wanted, state, firesBy }: Pick<MarketStatus, 'wanted' | 'state' | 'firesBy'>,
  now: number,
): boolean {
  return !wanted && firesBy !== null && firesBy > now && state !== 'deleted';
}

/** What becomes of the orders then. A stop, or a reload that takes the market out, may still delete its timer. */
export function sayRunsDown({ state, firesBy }: MarketStatus, now: number): string {
  const unless = state === 'armed' || state === 'retrying' ? ' unless the timer is deleted before' : '';
  return `orders are cancelled by ${sayTime(firesBy ?? now, now)}${unless}`;
}

/** `BTC_USDT`, or `3 markets`. */
export function nameOf(market: string | undefined, count: number): string {
  return count === 1 && market !== undefined ? market : sayCount(count, 'market');
}

/** The markets in a state. Where not all of them are in the document, those that are tell no first and no last moment. */
export function marketsIn(status: StatusDocument, state: MarketStatus['state']) {
  const count = status.marketsByState[state];
  const known = status.markets.filter((market) => market.state === state);
  const name = nameOf(known[0]?.market, count);
  return { count, known, isWhole: known.length === count, name, are: count === 1 ? 'is' : 'are' };
}

type Trouble = readonly [isSo: boolean, tone: Tone, text: string];

/** What somebody wanted so: holds, and bots that nobody watches. */
export function findHolds(status: StatusDocument): readonly Trouble[] {
  const { bots, now } = status;
  const unguarded = status.nothingGuarded ?? '';
  const paused = marketsIn(status, 'paused');
  const ends = paused.known.flatMap(({ hold }) => hold?.untilAt ?? []);
  const last = paused.count === 1 ? ' until' : ', the last until';
  const until = ends.length > 0 && paused.isWhole ? `${last} ${sayTime(Math.max(...ends), now)}` : '';
  const disarmed = marketsIn(status, 'disarmed');
  const untilArmed = `${disarmed.name} ${disarmed.are} not guarded until somebody runs killswitchd arm`;
  const unwatched = bots.filter(({ mode }) => mode === 'none').length;
  const some =
    bots.length === 1 ? 'Nobody checks that the bot lives' : `${sayCount(unwatched, 'bot')} not watched`;
  return [
    [unguarded !== '', 'warn', startSentence(unguarded)],
    [paused.count > 0, 'warn', `${paused.name} ${paused.are} paused${until}: new orders are not guarded`],
    [disarmed.count > 0, 'warn', untilArmed],
    [unwatched > 0, 'ok', some],
  ];
}

export function startSentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** What becomes of the timers once nobody is left to renew them. */
export function sayLeftAlone({ nextExpiry, runningDown }: StatusDocument, now: number): string {
  if (nextExpiry !== null) {
    const first = Math.min(nextExpiry.expiresAt, runningDown?.firstBy ?? nextExpiry.expiresAt);
    return first > now
      ? `: orders are cancelled from ${sayTime(first, now)} on unless something else renews the timers`
      : `: orders may have been cancelled since ${sayTime(first, now)}`;
  }
  if (runningDown === null) return '';
  const { count, lastBy } = runningDown;
  const [are, renews] = lastBy > now ? ['are', 'renews'] : ['were', 'renewed'];
  return `: orders of ${nameOf(runningDown.market, count)} ${are} cancelled by ${sayTime(lastBy, now)} unless something else ${renews} the ${count === 1 ? 'timer' : 'timers'}`;
}

/** From when on orders are cancelled unless these markets are renewed: the first one that is still surely armed. */
export function sayFrom(markets: readonly MarketStatus[], now: number): string {
  const ends = markets.flatMap((market) => (market.protected ? (market.expiresAt ?? []) : []));
  return ends.length === 0 ? '' : `orders are cancelled from ${sayTime(Math.min(...ends), now)} on`;
}

/** What is wrong with single markets, the worst first. */
export function findMarketTroubles(status: StatusDocument, now: number): readonly Trouble[] {
  const onRecord = new Set(status.cancellations.map(({ market }) => market));
  const expired = marketsIn(status, 'expired');
  const unsaid = expired.count - expired.known.filter(({ market }) => onRecord.has(market)).length;
  const refused = marketsIn(status, 'rejected');
  const refusedFrom = sayFrom(refused.known, now);
  const unless = refusedFrom === '' ? ': no timer guards the orders' : `: ${refusedFrom} if it lasts`;
  const refuses = `The exchange refuses ${refused.name}${refused.isWhole ? unless : ''}`;
  const retrying = marketsIn(status, 'retrying');
  const retryFrom = retrying.isWhole ? sayFrom(retrying.known, now) : '';
  const retried = `${retrying.name} ${retrying.count === 1 ? 'waits' : 'wait'} for a renewal to succeed`;
  const arming = marketsIn(status, 'arming');
  return [
    [unsaid > 0, 'bad', `Orders of ${sayCount(unsaid, 'market')} may be cancelled at any moment`],
    [refused.count > 0 && status.authorised, 'bad', refuses],
    [retrying.count > 0, 'warn', retryFrom === '' ? retried : `${retried}; else ${retryFrom}`],
    [arming.count > 0, 'warn', `${arming.name} ${arming.are} not armed yet`],
  ];
}

/** All troubles, the worst first: the first is the headline. */
export function findTroubles(status: StatusDocument, now: number): readonly Trouble[] {
  const { bases, bots, protectedCount, nextExpiry, runningDown, authorised } = status;
  const dead = bots.filter((bot) => ['silent', 'failed'].includes(stateOfBot(bot)));
  const lost =
    dead.length === 1
      ? `the bot ${dead[0]?.bot} ${dead[0]?.state === 'failed' ? 'has failed' : 'is silent'}`
      : `${sayCount(dead.length)} bots are dead`;
  const unrenewed = `${startSentence(lost)}: ${dead.length === 1 ? 'its' : 'their'} timers are not renewed`;
  const { market = '', count = 0, lastBy = 0 } = runningDown ?? {};
  const runs = lastBy > now;
  const ofDead = new Set(dead.map(({ bot }) => bot));
  const isTheirs = status.markets.every((one) => !runsDown(one, now) || ofDead.has(one.bot));
  const because = dead.length > 0 && isTheirs ? `: ${lost}` : '';
  const ending = `Orders of ${nameOf(market, count)} are cancelled by ${sayTime(lastBy, now)}${because}`;
  const cancelled = sayAllCancelled(status, now);
  const fromWhen = `are cancelled from ${sayTime(nextExpiry?.expiresAt ?? now, now)} on`;
  const from = nextExpiry === null ? '' : `orders of ${sayCount(protectedCount, 'market')} ${fromWhen}`;
  const keyless = `The exchange refuses the API key: no timer can be renewed${from === '' ? '' : `, and ${from}`}`;
  const outages = bases.filter(({ outage }) => outage).length;
  const isOut = outages > 0 && outages === bases.filter(({ used }) => used).length;
  const out = isOut
    ? `No renewal gets through${from === '' ? '' : `: ${from} if it lasts`}`
    : `${outages} of ${bases.length} addresses get no renewal through`;
  const silent = bases.filter((base) => stateOfBase(base) === 'answers no ping');
  // A general trouble says already that each market waits.
  const isGeneral = !authorised || isOut;
  const found: readonly Trouble[] = [
    [!status.live, 'bad', 'The daemon makes no progress'],
    [runs, 'bad', ending],
    [cancelled !== '', 'bad', cancelled],
    [!authorised, 'bad', keyless],
    [outages > 0, 'bad', out],
    [dead.length > 0 && !(runs && isTheirs), 'bad', unrenewed],
    ...findMarketTroubles(status, now).filter(([, tone]) => tone === 'bad' || !isGeneral),
    ...silent.map(({ url }): Trouble => [true, 'warn', `${url} answers no ping`]),
    ...findHolds(status),
  ];
  // The sort is stable: what is bad comes before what is only to be watched.
  return found
    .filter(([isSo]) => isSo)
    .toSorted(([, one], [, other]) => Number(other === 'bad') - Number(one === 'bad'));
}

/** The worst of all states as a word and a sentence; `title` is for the tab. */
export function summarise(status: StatusDocument, look: Look) {
  const { marketCount, protectedCount, phase } = status;
  const isAll = protectedCount === marketCount;
  const all = marketCount === 0 ? 'No timer is armed' : `All ${sayCount(marketCount)} timers are armed`;
  const of = `${sayCount(protectedCount)} of ${sayCount(marketCount, 'timer')}`;
  const several = isAll ? all : `${of} ${protectedCount === 1 ? 'is' : 'are'} armed`;
  const armed = marketCount === 1 ? `The timer is ${isAll ? '' : 'not '}armed` : several;
  const make = (tone: Tone, word: string, sentence: string, rest: string, inTab: string) => {
    return { tone, word, sentence, rest, title: `${iconOf(tone)} ${inTab} · killswitchd` };
  };
  const left = look.gone === null ? '' : sayLeftAlone(status, look.now);
  if (look.gone === 'lost')
    return make('bad', 'no connection', `The daemon does not answer${left}`, '', 'no connection');
  if (look.gone === 'ended')
    return make(left === '' ? 'idle' : 'bad', 'ended', `The daemon has ended${left}`, '', 'ended');
  if (phase !== 'running') return make('warn', phase, `The daemon is ${phase}`, '', phase);
  const troubles = findTroubles(status, look.now);
  const [worst = 'Nothing needs attention', ...others] = troubles.map(([, , text]) => text);
  const tone = troubles[0]?.[1] ?? 'ok';
  const word = status.ready ? 'ready' : 'not ready';
  if (tone !== 'ok') return make(tone, word, worst, [armed, ...others].join(' · '), worst);
  const rest = [worst, ...others].join(' · ');
  return make(status.ready ? 'ok' : 'warn', word, armed, rest, `${protectedCount}/${marketCount} armed`);
}

export function iconOf(tone: Tone): string {
  return { ok: '✓', warn: '!', bad: '×', idle: '–' }[tone];
}

/** The icon of the tab in the colour of a tone: of many tabs, the one in trouble is seen. */
export function tabIconOf(tone: Tone): string {
  const colour = { ok: '#0f766e', warn: '#c2570c', bad: '#c8232c', idle: '#64748b' }[tone];
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="${colour}" stroke-width="2.6" stroke-linecap="round"><circle cx="12" cy="13" r="8"/><path d="M12 13V8M9 2h6"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

export function sayRemaining(market: MarketStatus, look: Look): readonly [string, string] {
  const { guaranteedSeconds, firesBy, expiresAt, hold, state, wanted } = market;
  const { gone, now } = look;
  const none = '0\u00a0s';
  const left = Math.max(0, (guaranteedSeconds ?? 0) - look.elapsedSeconds);
  const time = guaranteedSeconds === null ? '–' : saySeconds(Math.ceil(left));
  const runs = firesBy !== null && state !== 'deleted';
  const by = runs ? sayTime(firesBy, now) : '';
  if (gone !== null && runs) {
    if (firesBy > now)
      return [time, `left then; orders are cancelled by ${by} unless something else renews the timer`];
    const unless = 'unless something else renewed the timer, the orders were cancelled';
    return [none, `its time was up at ${by}: ${unless}`];
  }
  if (runs && firesBy > now) {
    if (!wanted) return [saySeconds(Math.ceil(firesBy - now)), sayRunsDown(market, now)];
    if (left <= 0 && state === 'arming')
      return ['–', `no timer is confirmed; one that may still run fires by ${by}`];
    if (left <= 0)
      return [none, `orders may have been cancelled, and are by ${by} unless a renewal succeeds`];
  }
  if (guaranteedSeconds === null || state === 'deleted' || (!wanted && left <= 0)) {
    const ends = hold?.untilAt ?? null;
    if (ends === null || gone !== null) return ['–', 'no timer'];
    return [saySeconds(Math.max(0, Math.ceil(ends - now))), 'until it is armed again'];
  }
  if (left <= 0) return [none, 'orders were cancelled unless a renewal succeeded'];
  if (state === 'armed') return [time, 'left on the timer'];
  const from = expiresAt === null ? '' : `; orders are cancelled from ${sayTime(expiresAt, now)} on`;
  return [time, `left${from} unless a renewal succeeds`];
}

export function sayNote({ hold, leaving }: MarketStatus, now: number): string {
  const until = hold?.untilAt ?? null;
  const notes = {
    none: '',
    disarmed: 'Disarmed by an operator. Arm it: killswitchd arm.',
    paused: `Paused by an operator${until === null ? '' : ` until ${sayTime(until, now)}, then armed again`}.`,
    tripped: 'Tripped by an operator, to have its orders cancelled. Arm it: killswitchd arm.',
    lapsed: 'Not armed again after its orders were cancelled (onLapse: hold). Arm it: killswitchd arm.',
  };
  const left = leaving ? 'No longer configured; shown until its timer is gone.' : '';
  return [notes[hold?.why ?? 'none'], left].filter((note) => note !== '').join(' ');
}

/** What the last attempt came to, and when the next one is made of a market that the exchange refuses. */
export function sayProblem({ lastProblem, retryAt }: MarketStatus, now: number): string {
  const again = retryAt === null || retryAt <= now ? '' : `; tried again at ${sayTime(retryAt, now)}`;
  return lastProblem === null ? '' : `${lastProblem}${again}`;
}

/** The smaller, the worse; a cancellation counts as a state. What is well, or a state of another version, comes last. */
export function urgencyOf(state: string, isCancelled: boolean): number {
  const worst = ['expired', 'rejected', 'cancelled', 'suspended', 'retrying', 'arming', 'paused', 'disarmed'];
  const place = worst.indexOf(state);
  const own = place < 0 ? worst.length : place;
  return isCancelled ? Math.min(own, worst.indexOf('cancelled')) : own;
}

export function rankOf(market: MarketStatus, isCancelled: boolean, now: number): number {
  // Those that are well keep their places: they would change them with every renewal.
  const isWell = urgencyOf(market.state, false) === urgencyOf('armed', false);
  const left = isWell ? 0 : Math.min(0.9, Math.max(0, market.guaranteedSeconds ?? 0) / 100_000);
  return runsDown(market, now) ? left : 1 + urgencyOf(market.state, isCancelled) + left;
}

/** How a document is looked at that was made this moment. */
export function lookAtOnce({ now }: Pick<StatusDocument, 'now'>): Look {
  return { elapsedSeconds: 0, now, gone: null, heardAt: now, link: 'none', find: '', page: 0 };
}
