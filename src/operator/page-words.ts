import type { MarketStatus, StatusDocument } from './status.ts';

// What the page, and `killswitchd status`, say. These functions run on the server and, by their source text, in the
// browser: they may refer to each other and to nothing else.

/** When and how the page looks at a document. */
export interface Look {
  /** The words below, also where the browser has them from their source. */
  readonly say: Words;
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
  if (whole < 120) return `${whole}\u00a0s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 120) return units(minutes, 'min', whole % 60, 's');
  const hours = Math.floor(minutes / 60);
  return hours < 48
    ? units(hours, 'h', minutes % 60, 'min')
    : units(Math.floor(hours / 24), 'd', hours % 24, 'h');
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
  if (['expired', 'rejected', 'failed', 'silent', 'down', 'outage'].includes(state)) return 'bad';
  const warns = ['retrying', 'suspended', 'paused', 'disarmed', 'not ready', 'stopping', 'not watched'];
  return warns.includes(state) ? 'warn' : 'idle';
}

/** What became of a market's orders: `were cancelled by 12:03:11: its bot was silent`. */
export function sayCancelled({ certainty, why, by, count }: Cancelled, now: number): string {
  const causes = {
    bot_stale: 'its bot was silent',
    bot_failed: 'its bot failed',
    kept: 'its timer was left to run out',
    tripped: 'an operator tripped it',
    disarmed: 'its bot was dead, so that its timer could not be deleted',
    unrenewed: 'no renewal was confirmed in time',
    deleted_late: 'its timer may have fired before it was deleted',
  };
  const what =
    certainty === 'possible' ? 'may have been cancelled' : by > now ? 'are cancelled' : 'were cancelled';
  const when = certainty === 'possible' && why === 'unrenewed' ? 'since about' : 'by';
  const times = count > 1 ? ` (${sayCount(count)} times)` : '';
  return `${what} ${when} ${sayTime(by, now)}: ${causes[why]}${times}`;
}

/** The state of a bot as the page names it. */
export function stateOfBot({ mode, state }: StatusDocument['bots'][number]): string {
  const words = {
    starting: 'not heard yet',
    stale: 'silent',
    goodbye: 'said goodbye',
    alive: 'alive',
    failed: 'failed',
  };
  return mode === 'none' ? 'not watched' : words[state];
}

/** Whether a timer runs down: nobody renews it, and the orders are cancelled when it fires. */
export function runsDown({ wanted, state, firesBy }: MarketStatus, now: number): boolean {
  return !wanted && firesBy !== null && firesBy > now && state !== 'deleted';
}

/** `BTC_USDT`, or `3 markets`. */
export function nameOf(
  markets: readonly { readonly market: string }[],
  count: number = markets.length,
): string {
  return count === 1 && markets[0] !== undefined ? markets[0].market : sayCount(count, 'market');
}

interface Trouble {
  readonly tone: Tone;
  readonly text: string;
}

/** What somebody wanted so: holds, and bots that nobody watches. */
function findHolds(status: StatusDocument): Trouble[] {
  const { marketsByState: states, bots } = status;
  const found: Trouble[] = [];
  const add = (isSo: boolean, tone: Tone, text: string): void => {
    if (isSo) found.push({ tone, text });
  };
  const unguarded = status.nothingGuarded ?? '';
  add(unguarded !== '', 'warn', unguarded.slice(0, 1).toUpperCase() + unguarded.slice(1));
  const held = states.paused + states.disarmed;
  add(unguarded === '' && held > 0, 'warn', `${sayCount(held, 'market')} paused or disarmed`);
  const unwatched = bots.filter(({ mode }) => mode === 'none').length;
  add(
    unwatched > 0,
    'ok',
    bots.length === 1 ? 'Nobody checks that the bot lives' : `${sayCount(unwatched, 'bot')} not watched`,
  );
  return found;
}

/** What is not as it should be, the worst first: the first is the headline. */
export function findTroubles(status: StatusDocument, now: number): Trouble[] {
  const { marketsByState: states, bases, bots, markets, cancellations, cancellationCount } = status;
  const found: Trouble[] = [];
  const add = (isSo: boolean, tone: Tone, text: string): void => {
    if (isSo) found.push({ tone, text });
  };
  const dead = bots.filter((bot) => ['silent', 'failed'].includes(stateOfBot(bot)));
  const why =
    dead.length > 0
      ? `: the bot ${dead[0]?.bot} ${dead[0]?.state === 'failed' ? 'has failed' : 'is silent'}`
      : '';
  const running = markets.filter((market) => runsDown(market, now));
  const last = Math.max(...running.map(({ firesBy }) => firesBy ?? 0));
  const until = running.length > 0 ? sayTime(last, now) : '';
  add(!status.live, 'bad', 'The daemon makes no progress');
  add(running.length > 0, 'bad', `Orders of ${nameOf(running)} are cancelled by ${until}${why}`);
  const [newest] = cancellations;
  if (newest !== undefined) {
    const certain = cancellations.some(({ certainty }) => certainty === 'certain') ? 'were' : 'may have been';
    const one = `Orders of ${newest.market} ${sayCancelled(newest, now)}`;
    add(
      true,
      'bad',
      cancellationCount === 1
        ? one
        : `Orders of ${sayCount(cancellationCount, 'market')} ${certain} cancelled`,
    );
  }
  add(!status.authorised, 'bad', 'The exchange refuses the API key: no timer can be renewed');
  add(
    states.expired > 0,
    'bad',
    `Orders of ${sayCount(states.expired, 'market')} may be cancelled at any moment`,
  );
  add(states.rejected > 0, 'bad', `The exchange refuses ${sayCount(states.rejected, 'market')}`);
  const outages = bases.filter(({ outage }) => outage).length;
  const first = Math.min(
    ...markets.filter((market) => market.protected).map(({ expiresAt }) => expiresAt ?? Infinity),
  );
  const from = Number.isFinite(first)
    ? `: orders are cancelled from ${sayTime(first, now)} on if it lasts`
    : '';
  add(
    outages > 0,
    'bad',
    outages === bases.length
      ? `No renewal gets through${from}`
      : `${outages} of ${bases.length} addresses get no renewal through`,
  );
  add(
    dead.length > 0 && running.length === 0,
    'bad',
    `${dead.length === 1 ? `The bot ${dead[0]?.bot} ${dead[0]?.state === 'failed' ? 'has failed' : 'is silent'}` : `${sayCount(dead.length)} bots are dead`}`,
  );
  add(
    states.retrying > 0,
    'warn',
    `${sayCount(states.retrying, 'market')} wait${states.retrying === 1 ? 's' : ''} for a renewal to succeed`,
  );
  add(
    states.arming > 0,
    'warn',
    `${sayCount(states.arming, 'market')} ${states.arming === 1 ? 'is' : 'are'} not armed yet`,
  );
  return [...found, ...findHolds(status)];
}

export interface Summary {
  readonly tone: Tone;
  readonly word: string;
  readonly sentence: string;
  readonly rest: string;
  readonly title: string;
}

/** The worst of all states as a word and a sentence; `title` is for the tab. */
export function summarise(status: StatusDocument, look: Look): Summary {
  const { marketCount, protectedCount, phase } = status;
  const all = marketCount === 1 ? 'The timer is armed' : `All ${sayCount(marketCount)} timers are armed`;
  const some = `${sayCount(protectedCount)} of ${sayCount(marketCount, 'timer')} ${protectedCount === 1 ? 'is' : 'are'} armed`;
  const armed = protectedCount === marketCount ? all : some;
  const title = (tone: Tone, text: string): string => `${iconOf(tone)} ${text} · killswitchd`;
  if (look.gone === 'lost') {
    return {
      tone: 'bad',
      word: 'no connection',
      sentence: 'The daemon does not answer',
      rest: '',
      title: title('bad', 'no connection'),
    };
  }
  if (look.gone === 'ended') {
    return {
      tone: 'idle',
      word: 'ended',
      sentence: 'The daemon has ended',
      rest: '',
      title: title('idle', 'ended'),
    };
  }
  if (phase !== 'running') {
    return {
      tone: 'warn',
      word: phase,
      sentence: `The daemon is ${phase}`,
      rest: armed,
      title: title('warn', phase),
    };
  }
  const [worst, ...others] = findTroubles(status, look.now);
  const isWell = worst === undefined || worst.tone === 'ok';
  const rest = [...(isWell && worst !== undefined ? [worst] : []), ...others].map(({ text }) => text);
  const tone = isWell ? (status.ready ? 'ok' : 'warn') : worst.tone;
  return {
    tone,
    word: status.ready ? 'ready' : 'not ready',
    sentence: isWell ? armed : worst.text,
    rest: [...(isWell ? [] : [armed]), ...rest].join(' · ') || 'Nothing needs attention',
    title: title(tone, isWell ? `${protectedCount}/${marketCount} armed` : worst.text),
  };
}

/** The symbol that goes with a tone. */
export function iconOf(tone: Tone): string {
  return { ok: '✓', warn: '!', bad: '×', idle: '–' }[tone];
}

/** What a market's timer has left, and what that means for its orders. */
export function sayRemaining(market: MarketStatus, look: Look): readonly [string, string] {
  const { guaranteedSeconds, firesBy, hold, state, wanted } = market;
  const { gone, now } = look;
  const left = Math.max(0, (guaranteedSeconds ?? 0) - look.elapsedSeconds);
  const time = guaranteedSeconds === null ? '–' : saySeconds(Math.ceil(left));
  if (gone !== null && firesBy !== null && state !== 'deleted') {
    const at = sayTime(firesBy, now);
    if (firesBy > now)
      return [time, `left then; orders are cancelled by ${at} unless something else renews the timer`];
    return [
      '0\u00a0s',
      `its time was up at ${at}: unless something else renewed the timer, the orders were cancelled`,
    ];
  }
  if (firesBy !== null && firesBy > now && !wanted && state !== 'deleted')
    return [saySeconds(Math.ceil(firesBy - now)), `orders are cancelled by ${sayTime(firesBy, now)}`];
  if (guaranteedSeconds === null || state === 'deleted' || (!wanted && left <= 0)) {
    const ends = hold?.untilAt ?? null;
    if (ends === null || gone !== null) return ['–', 'no timer'];
    return [saySeconds(Math.max(0, Math.ceil(ends - now))), 'until it is armed again'];
  }
  if (left <= 0)
    return [
      '0\u00a0s',
      firesBy !== null && firesBy > now
        ? `orders may be cancelled any moment, and are by ${sayTime(firesBy, now)}`
        : 'orders were cancelled if the timer was not renewed',
    ];
  return [time, state === 'armed' ? 'left on the timer' : 'left, unless a renewal succeeds'];
}

/** Why a market is not guarded, and what ends that. */
export function sayNote({ hold, leaving }: MarketStatus, now: number): string {
  const until = hold?.untilAt ?? null;
  const notes = {
    none: '',
    disarmed: 'Disarmed by an operator. Arm it: killswitchd arm.',
    paused:
      until === null
        ? 'Paused by an operator.'
        : `Paused by an operator until ${sayTime(until, now)}, then armed again.`,
    tripped: 'Tripped by an operator: its orders are cancelled. Arm it: killswitchd arm.',
    lapsed: 'Not armed again after its orders were cancelled (onLapse: hold). Arm it: killswitchd arm.',
  };
  const left = leaving ? 'No longer configured; shown until its timer is gone.' : '';
  return [notes[hold?.why ?? 'none'], left].filter((note) => note !== '').join(' ');
}

/** The place of a market among all, the worst first. */
export function rankOf(market: MarketStatus, isCancelled: boolean, now: number): number {
  const order = ['expired', 'rejected', 'cancelled', 'suspended', 'retrying', 'arming', 'paused', 'disarmed'];
  const place = order.indexOf(market.state);
  const isWell = place < 0;
  // Those that are well keep their places: they would change them with every renewal.
  const left = isWell ? 0 : Math.min(0.9, Math.max(0, market.guaranteedSeconds ?? 0) / 100_000);
  if (runsDown(market, now)) return left;
  const own = place < 0 ? order.length : place;
  return 1 + (isCancelled ? Math.min(own, 2) : own) + left;
}

/** Handed to every view. */
export const WORDS = {
  saySeconds,
  sayTime,
  sayCount,
  toneOf,
  iconOf,
  sayCancelled,
  stateOfBot,
  runsDown,
  nameOf,
  findHolds,
  findTroubles,
  summarise,
  sayRemaining,
  sayNote,
  rankOf,
} as const;
export type Words = typeof WORDS;

/** The words as source text for the browser, with `say` for all of them. */
export const WORDS_SOURCE = `${Object.values(WORDS).map(String).join('\n')}\nconst say = { ${Object.keys(WORDS).join(', ')} };`;

/** How a document is looked at that was made this moment. */
export function lookAtOnce({ now }: Pick<StatusDocument, 'now'>): Look {
  return {
    elapsedSeconds: 0,
    now,
    gone: null,
    heardAt: now,
    link: 'none',
    find: '',
    page: 0,
    say: WORDS,
  };
}
