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

/** What becomes of the orders then. */
export function sayRunsDown({ state, timer, firesBy }: MarketStatus, now: number): string {
  const by = `by ${sayTime(firesBy ?? now, now)}`;
  if (timer === 'unconfirmed')
    return `no timer is confirmed; one that may still run fires ${by}, else the orders stay`;
  // A stop, or a reload that takes the market out, leaves it to another daemon.
  const isLeft = state === 'armed' || state === 'retrying';
  const renewed = isLeft ? ' unless something else renews the timer' : '';
  return `orders are cancelled ${by}${timer === 'deleting' ? ' unless the delete is confirmed before' : renewed}`;
}

/** The same of all timers that nobody renews. */
export function sayRunningDown(status: StatusDocument, now: number): string {
  if (status.runningDown === null) return '';
  const { market, count, lastBy, unconfirmedCount, deletingCount } = status.runningDown;
  const name = nameOf(market, count);
  const by = `by ${sayTime(lastBy, now)}`;
  const those = count === 1 ? 'one that may still run fires' : 'those that may still run fire';
  if (unconfirmedCount === count)
    return `No timer of ${name} is confirmed; ${those} ${by}, else the orders stay`;
  const deletes = count === 1 ? 'the delete is' : 'the deletes are';
  if (deletingCount === count)
    return `Orders of ${name} are cancelled ${by} unless ${deletes} confirmed before`;
  return `Orders of ${name} ${unconfirmedCount + deletingCount > 0 ? 'are or may be' : 'are'} cancelled ${by}`;
}

/** Of a market whose bot does not live: nothing is left to cancel its orders. */
export function sayUnguarded({ state, firesBy }: MarketStatus, now: number): string {
  const isBare = state === 'suspended' && (firesBy === null || firesBy <= now);
  return isBare ? 'no timer guards its orders until its bot is heard' : '';
}

/** What follows a pause, where its bot is in this state. */
export function sayArmedAgain(botState: string): string {
  const lives = ['alive', 'not watched'].includes(botState);
  return lives ? 'then armed again' : 'then armed again once its bot is heard';
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
  const { count, lastBy, unconfirmedCount, deletingCount } = runningDown;
  const isSure = unconfirmedCount + deletingCount === 0;
  const [are, renews] =
    lastBy > now ? [isSure ? 'are' : 'may be', 'renews'] : [isSure ? 'were' : 'may have been', 'renewed'];
  return `: orders of ${nameOf(runningDown.market, count)} ${are} cancelled by ${sayTime(lastBy, now)} unless something else ${renews} the ${count === 1 ? 'timer' : 'timers'}`;
}

/** From when on orders are cancelled unless these markets are renewed: the first one that is still surely armed. */
export function sayFrom(markets: readonly MarketStatus[], now: number): string {
  const ends = markets.flatMap((market) => (market.protected ? (market.expiresAt ?? []) : []));
  return ends.length === 0 ? '' : `orders are cancelled from ${sayTime(Math.min(...ends), now)} on`;
}

/** Until when a timer of markets that the exchange refuses stands, where nothing says so already. */
export function sayStands(markets: readonly MarketStatus[], now: number): string {
  const standing = markets.filter(({ firesBy, state }) => (firesBy ?? 0) > now && state !== 'deleted');
  const lastBy = Math.max(...standing.map(({ firesBy }) => firesBy ?? now));
  if (standing.length === 0) return 'no timer guards the orders';
  const isSure = standing.every(({ timer }) => timer !== 'unconfirmed');
  const what = isSure ? 'timer' : 'timer that may still run';
  return `${standing.length === 1 ? `its ${what}` : `the last ${what}`} fires by ${sayTime(lastBy, now)}`;
}

/** What is wrong with single markets, the worst first. */
export function findMarketTroubles(status: StatusDocument, now: number): readonly Trouble[] {
  const onRecord = new Set(status.cancellations.map(({ market }) => market));
  const expired = marketsIn(status, 'expired');
  const unsaid = expired.count - expired.known.filter(({ market }) => onRecord.has(market)).length;
  const refused = marketsIn(status, 'rejected');
  const refusedFrom = sayFrom(refused.known, now);
  const unless = refusedFrom === '' ? `: ${sayStands(refused.known, now)}` : `: ${refusedFrom} if it lasts`;
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

/** Why timers run down that nobody renews, where all of them do for one reason; they may be unknown where some are not shown. */
export function sayWhy(
  { markets, runningDown }: StatusDocument,
  dead: ReadonlySet<string>,
  lost: string,
  now: number,
): string {
  const falling = markets.filter((market) => runsDown(market, now));
  if (falling.length > 0 && falling.every(({ hold }) => hold?.why === 'tripped'))
    return `: ${sayCause('tripped', falling.length > 1)}`;
  const isTheirs = falling.every(({ bot, hold }) => hold === null && dead.has(bot));
  const isSure = runningDown?.unconfirmedCount !== runningDown?.count;
  return dead.size > 0 && isTheirs && isSure ? `: ${lost}` : '';
}

/** The bots in their start-up grace, and when that ends. */
export function findUnheard({ bots }: StatusDocument, now: number): readonly Trouble[] {
  const unheard = bots.filter(({ graceEndsAt }) => graceEndsAt != null);
  if (unheard.length === 0) return [];
  const first = Math.min(...unheard.map(({ graceEndsAt }) => graceEndsAt ?? now));
  const [who, its] =
    unheard.length === 1
      ? [`The bot ${unheard[0]?.bot} is`, 'its']
      : [`${sayCount(unheard.length, 'bot')} are`, 'their'];
  const ends = `${its} timers are not renewed from ${sayTime(first, now)} on, and fire`;
  return [[true, 'warn', `${who} not heard yet: without a sign of life ${ends}`]];
}

/** All troubles, the worst first: the first is the headline. */
export function findTroubles(status: StatusDocument, now: number): readonly Trouble[] {
  const { bases, bots, protectedCount, nextExpiry, runningDown, authorised } = status;
  const dead = bots.filter((bot) => ['silent', 'failed'].includes(stateOfBot(bot)));
  const lost =
    dead.length === 1
      ? `the bot ${dead[0]?.bot} ${dead[0]?.state === 'failed' ? 'has failed' : 'is silent'}`
      : `${sayCount(dead.length)} bots are dead`;
  const ofDead = new Set(dead.map(({ bot }) => bot));
  const theirs = status.markets.filter(({ bot, hold }) => ofDead.has(bot) && hold === null);
  const isBare = theirs.length > 0 && theirs.every((one) => sayUnguarded(one, now) !== '');
  const its = dead.length === 1 ? 'its' : 'their';
  const unrenewed = `${startSentence(lost)}: ${isBare ? `no timer guards ${its} orders` : `${its} timers are not renewed`}`;
  const runs = runningDown !== null && runningDown.lastBy > now;
  const because = runs ? sayWhy(status, ofDead, lost, now) : '';
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
    [runs, 'bad', `${sayRunningDown(status, now)}${because}`],
    [cancelled !== '', 'bad', cancelled],
    [!authorised, 'bad', keyless],
    [outages > 0, 'bad', out],
    [dead.length > 0 && because !== `: ${lost}`, 'bad', unrenewed],
    ...findMarketTroubles(status, now).filter(([, tone]) => tone === 'bad' || !isGeneral),
    ...silent.map(({ url }): Trouble => [true, 'warn', `${url} answers no ping`]),
    ...findUnheard(status, now),
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
  if (phase !== 'running') {
    const running = status.runningDown !== null && status.runningDown.lastBy > look.now;
    const [left, rest] = running
      ? [status.runningDown?.count ?? 0, sayRunningDown(status, look.now)]
      : [0, ''];
    const until =
      status.stopEndsAt == null ? '' : `, until ${sayTime(status.stopEndsAt, look.now)} at the latest`;
    const { deleted } = status.marketsByState;
    const came = `${sayCount(deleted, 'timer')} ${deleted === 1 ? 'is' : 'are'} deleted, ${sayCount(left)} may still fire`;
    return make('warn', phase, `The daemon is ${phase}${until}: ${came}`, rest, phase);
  }
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

export function sayRemaining(market: MarketStatus, look: Look, botState: string): readonly [string, string] {
  const { guaranteedSeconds, firesBy, expiresAt, hold, state, timer, wanted } = market;
  const { gone, now } = look;
  const none = '0\u00a0s';
  const left = Math.max(0, (guaranteedSeconds ?? 0) - look.elapsedSeconds);
  const time = guaranteedSeconds === null ? '–' : saySeconds(Math.ceil(left));
  const runs = firesBy !== null && state !== 'deleted';
  const by = runs ? sayTime(firesBy, now) : '';
  if (gone !== null && runs) {
    const isSure = timer !== 'unconfirmed' && timer !== 'deleting';
    const [are, were] = isSure ? ['are', 'were'] : ['may be', 'may have been'];
    if (firesBy > now)
      return [time, `left then; orders ${are} cancelled by ${by} unless something else renews the timer`];
    const unless = `unless something else renewed the timer, the orders ${were} cancelled`;
    return [none, `its time was up at ${by}: ${unless}`];
  }
  if (runs && firesBy > now) {
    if (timer === 'unconfirmed' && state !== 'expired') return ['–', sayRunsDown(market, now)];
    if (!wanted) return [saySeconds(Math.ceil(firesBy - now)), sayRunsDown(market, now)];
    if (left <= 0)
      return [none, `orders may have been cancelled, and are by ${by} unless a renewal succeeds`];
  }
  if (guaranteedSeconds === null || state === 'deleted' || (!wanted && left <= 0)) {
    const ends = hold?.untilAt ?? null;
    if (ends === null || gone !== null) return ['–', 'no timer'];
    return [
      saySeconds(Math.max(0, Math.ceil(ends - now))),
      `until the pause is over, ${sayArmedAgain(botState)}`,
    ];
  }
  if (left <= 0) return [none, 'orders were cancelled unless a renewal succeeded'];
  if (state === 'armed') return [time, 'left on the timer'];
  const from = expiresAt === null ? '' : `; orders are cancelled from ${sayTime(expiresAt, now)} on`;
  return [time, `left${from} unless a renewal succeeds`];
}

export function sayNote(market: MarketStatus, { now, gone }: Look, botState: string): string {
  const { hold, leaving } = market;
  const unguarded = gone === null ? sayUnguarded(market, now) : '';
  const until = hold?.untilAt ?? null;
  const notes = {
    none: unguarded === '' ? '' : `${startSentence(unguarded)}.`,
    disarmed: 'Disarmed by an operator. Arm it: killswitchd arm.',
    paused: `Paused by an operator${until === null ? '' : ` until ${sayTime(until, now)}, ${sayArmedAgain(botState)}`}.`,
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
