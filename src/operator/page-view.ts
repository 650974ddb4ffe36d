import { MARKET_SOURCE, viewMarket } from './page-market.ts';
import { type Look, type Row, WORDS, WORDS_SOURCE, type Words } from './page-words.ts';
import type { StatusDocument } from './status.ts';

/** What the page shows: texts for its own slots, and rows for its lists. */
export interface PageView {
  readonly fields: Readonly<Record<string, string>>;
  readonly lists: Readonly<
    Record<'tiles' | 'reasons' | 'markets' | 'bases' | 'bots' | 'stops' | 'events', readonly Row[]>
  >;
}

interface Trouble {
  readonly text: string;
  readonly tone: string;
}

// These functions run in the browser too: see `page-words.ts`. They may refer to each other and to nothing else.

/** What is not as it should be, the worst first; of tone `ok` where somebody wanted it so from the beginning. */
export function viewTroubles(status: StatusDocument, say: Words): Trouble[] {
  const { marketsByState, bases, bots } = status;
  const found: Trouble[] = [];
  const add = (count: number, tone: string, text: string): void => {
    if (count > 0) found.push({ tone, text });
  };
  const states = (names: readonly ('expired' | 'rejected' | 'retrying' | 'suspended' | 'arming')[]): void => {
    for (const name of names) {
      const tone = say.tone(name);
      add(marketsByState[name], tone, `${say.count(marketsByState[name])} ${name}`);
    }
  };
  const botsThatAre = (state: string): number => bots.filter((bot) => bot.state === state).length;
  add(status.live ? 0 : 1, 'bad', 'the daemon makes no progress');
  add(status.authorised ? 0 : 1, 'bad', 'key refused');
  states(['expired', 'rejected']);
  add(botsThatAre('failed'), 'bad', `${say.count(botsThatAre('failed'), 'bot')} failed`);
  add(botsThatAre('stale'), 'bad', `${say.count(botsThatAre('stale'), 'bot')} silent`);
  const outages = bases.filter(({ outage }) => outage).length;
  add(outages, 'bad', bases.length === 1 ? 'outage' : `outage at ${outages} of ${bases.length} addresses`);
  states(['retrying', 'suspended', 'arming']);
  for (const name of ['paused', 'disarmed', 'deleted'] as const) {
    add(marketsByState[name], 'idle', `${say.count(marketsByState[name])} ${name}`);
  }
  const unwatched = bots.filter(({ mode }) => mode === 'none').length;
  add(unwatched, 'ok', bots.length === 1 ? 'bot not watched' : `${say.count(unwatched, 'bot')} not watched`);
  return found;
}

/** What the daemon is doing, as one word, one sentence and one more, and the title of the page. */
export function viewSummary(status: StatusDocument, look: Look, say: Words): Record<string, string> {
  const { marketCount, marketsByState, phase } = status;
  const troubles = viewTroubles(status, say);
  const worst = troubles.find(({ tone }) => tone !== 'ok');
  const armed = marketsByState.armed + marketsByState.retrying;
  const share = `${say.count(armed)}/${say.count(marketCount)} armed`;
  const ready = status.nothingGuarded === null ? 'ready' : 'not guarding';
  const state = phase === 'running' ? (status.ready ? ready : 'not ready') : phase;
  const seen = {
    lost: { word: 'no connection', tone: 'bad', title: 'no connection' },
    ended: { word: 'ended', tone: 'idle', title: 'ended' },
    here: {
      word: state,
      tone: state === 'not ready' && worst?.tone === 'bad' ? 'bad' : say.tone(state),
      title: phase !== 'running' ? phase : worst === undefined ? share : `${worst.text}, ${share}`,
    },
  }[look.gone ?? 'here'];
  const all = marketCount === 1 ? 'The timer is armed.' : `All ${say.count(marketCount)} timers are armed.`;
  const some =
    marketCount === 1
      ? 'The timer is not armed.'
      : `${say.count(armed)} of ${say.count(marketCount, 'timer')} ${armed === 1 ? 'is' : 'are'} armed.`;
  const unguarded = status.nothingGuarded ?? '';
  const sentence = {
    lost: 'The daemon does not answer.',
    ended: 'The daemon has ended.',
    here:
      unguarded !== ''
        ? `${unguarded.slice(0, 1).toUpperCase()}${unguarded.slice(1)}.`
        : armed === marketCount
          ? all
          : some,
  }[look.gone ?? 'here'];
  const worstTone = look.gone === null ? (seen.tone === 'ok' ? (worst?.tone ?? 'ok') : seen.tone) : seen.tone;
  return {
    word: seen.word,
    tone: seen.tone,
    icon: say.icon(seen.tone),
    worstTone,
    sentence,
    troubles:
      look.gone === null ? troubles.map(({ text }) => text).join(' · ') || 'Nothing needs attention.' : '',
    title: `${say.icon(worstTone)} ${seen.title} · killswitchd`,
  };
}

/** Whether the page is up to date, and what is at the edges of it. */
export function viewFrame(status: StatusDocument, look: Look, say: Words): Record<string, string> {
  const hidden = status.marketCount - status.markets.length;
  const links = { stream: 'live', poll: 'asking every second', none: `as of ${say.time(status.now)}` };
  const heard = say.time(look.heardAt);
  const gone = {
    lost: `No answer since ${heard}. What follows is what was known then. The timers run on at the exchange and fire unless something renews them.`,
    ended: `The daemon was stopped at ${heard} and does not answer any more. What follows is its last word.`,
    here: '',
  }[look.gone ?? 'here'];
  const uptime = Math.max(1, Math.floor(status.now + look.elapsedSeconds - status.startedAt));
  return {
    gone,
    link: look.gone === null ? links[look.link] : `since ${heard}`,
    linkTone: look.gone === null ? (look.link === 'none' ? 'idle' : 'ok') : 'bad',
    uptime: look.gone === null ? `up for ${say.seconds(uptime)}` : '',
    hidden:
      hidden === 0 ? '' : `${say.count(hidden, 'market')} more in /api/v1/status; the worst come first here.`,
    version: status.version,
    policy: `Shutdown policy: ${status.shutdownPolicy}`,
  };
}

/** The few numbers to be read from across the room. */
export function viewTiles(status: StatusDocument, look: Look, say: Words): Row[] {
  const { marketCount, marketsByState, bots, bases, lapseCount } = status;
  const elapsed = look.elapsedSeconds;
  const armed = marketsByState.armed + marketsByState.retrying;
  const nearest = status.markets
    .filter(({ guaranteedSeconds }) => guaranteedSeconds !== null && guaranteedSeconds > elapsed)
    .toSorted((one, other) => (one.guaranteedSeconds ?? 0) - (other.guaranteedSeconds ?? 0))[0];
  const oldest = bots
    .filter(({ evidenceAgeSeconds, ttlSeconds }) => evidenceAgeSeconds !== null && ttlSeconds !== null)
    .toSorted((one, other) => (other.evidenceAgeSeconds ?? 0) - (one.evidenceAgeSeconds ?? 0))[0];
  const up = bases.filter((base) => base.up === true && !base.outage).length;
  const pings = bases.flatMap(({ pingSeconds }) => (pingSeconds === null ? [] : [pingSeconds]));
  const tile = (key: string, value: string, note: string, tone: string, label = key): Row => {
    return { key, label, value, note, tone: look.gone === null ? tone : 'none' };
  };
  const failed = marketsByState.expired + marketsByState.rejected;
  const waiting = marketsByState.arming + marketsByState.suspended;
  const first = nearest?.guaranteedSeconds ?? 0;
  return [
    tile(
      'Timers armed',
      `${say.count(armed)} of ${say.count(marketCount)}`,
      armed === marketCount ? 'confirmed by the exchange' : `${say.count(marketCount - armed)} not armed`,
      failed > 0 ? 'bad' : waiting > 0 ? 'warn' : 'none',
    ),
    tile(
      'Least time left',
      nearest === undefined ? '–' : say.seconds(Math.ceil(first - elapsed)),
      nearest?.market ?? 'no timer is armed',
      nearest === undefined || first - elapsed < nearest.timeoutSeconds / 3 ? 'warn' : 'none',
    ),
    tile(
      'Age of the evidence',
      oldest === undefined ? '–' : say.seconds(Math.floor((oldest.evidenceAgeSeconds ?? 0) + elapsed)),
      oldest === undefined
        ? bots.every(({ mode }) => mode === 'none')
          ? 'no bot is watched'
          : 'no bot has given any'
        : `${oldest.bot}, good for ${say.seconds(oldest.ttlSeconds ?? 0)}`,
      oldest !== undefined && oldest.state === 'stale' ? 'bad' : 'none',
    ),
    tile(
      'Ping',
      pings.length === 0 ? '–' : say.seconds(Math.max(...pings)),
      `${up} of ${bases.length} ${bases.length === 1 ? 'address' : 'addresses'} up`,
      up === bases.length ? 'none' : 'bad',
      bases.length > 1 ? 'Slowest ping' : 'Ping',
    ),
    tile(
      'Lapses',
      say.count(lapseCount),
      `since ${say.time(status.startedAt, status.now)}`,
      lapseCount > 0 ? 'bad' : 'none',
    ),
  ];
}

/** Why the daemon is not ready; of many reasons the first ones. */
export function viewReasons({ ready, notReady }: StatusDocument, say: Words): Row[] {
  const shown = ready ? [] : notReady.slice(0, 5).map((text) => ({ key: text, text }));
  const more = notReady.length - shown.length;
  return ready || more === 0 ? shown : [...shown, { key: 'more', text: `${say.count(more, 'reason')} more` }];
}

/** The addresses of the exchange, and how fast they answer. */
export function viewBases({ bases }: StatusDocument, look: Look, say: Words): Row[] {
  return bases.map(({ url, up, pingSeconds, outage, lastProblem }) => {
    const state = outage ? 'outage' : up === null ? 'not known yet' : up ? 'up' : 'down';
    const tone = look.gone === null ? say.tone(state) : 'idle';
    const ping = pingSeconds === null ? 'no answer yet' : `ping ${say.seconds(pingSeconds)}`;
    const problem = state === 'up' ? '' : (lastProblem ?? '');
    const word = look.gone === null ? state : `was ${state}`;
    return { key: url, url, state: word, tone, icon: say.icon(tone), ping, problem };
  });
}

/** The bots; the age of their evidence goes on counting until something newer is heard. */
export function viewBots({ bots }: StatusDocument, look: Look, say: Words): Row[] {
  return bots.map(({ bot, mode, state, evidenceAgeSeconds, ttlSeconds }) => {
    const watched = mode === 'none' ? 'not watched' : state;
    const tone = look.gone === null ? say.tone(watched) : 'idle';
    const age = evidenceAgeSeconds === null ? null : evidenceAgeSeconds + look.elapsedSeconds;
    const last = age === null ? 'no evidence yet' : `last evidence ${say.seconds(Math.floor(age))} ago`;
    const ttl = ttlSeconds ?? 0;
    const share = age === null || ttl === 0 ? 0 : Math.round(Math.min(1, age / ttl) * 1000) / 1000;
    return {
      key: bot,
      bot,
      state: look.gone === null ? watched : `was ${watched}`,
      tone,
      icon: say.icon(tone),
      evidence:
        mode === 'none'
          ? 'nobody checks that it lives'
          : `${last}${ttl === 0 ? '' : `, good for ${say.seconds(ttl)}`} (${mode})`,
      meter: mode === 'none' ? 'none' : 'age',
      fill: `scale(${share} 1)`,
      share: String(share),
      rate: look.gone !== null || share === 0 || share === 1 ? '0' : String(1 / ttl),
    };
  });
}

/** What a stop would do now, and what happened of late. */
export function viewRest(
  { whatAStopWouldDo, events, now }: StatusDocument,
  say: Words,
): Pick<PageView['lists'], 'stops' | 'events'> {
  return {
    stops: whatAStopWouldDo.map(({ does, count, markets }) => {
      const more = count > markets.length ? ` and ${say.count(count - markets.length)} more` : '';
      return { key: does, does, markets: markets.join(', ') + more };
    }),
    events: events.slice(0, 50).map(({ at, level, event, text }) => {
      const tone = level === 'error' ? 'bad' : level === 'warn' ? 'warn' : 'idle';
      return {
        key: `${at} ${event} ${text}`,
        time: say.time(at, now),
        level,
        tone,
        icon: say.icon(tone),
        text,
      };
    }),
  };
}

/** The whole page. */
export function viewStatus(
  status: StatusDocument,
  look: Look,
  say: Words,
  marketRow: typeof viewMarket,
): PageView {
  const now = status.now + look.elapsedSeconds;
  return {
    fields: { ...viewSummary(status, look, say), ...viewFrame(status, look, say) },
    lists: {
      tiles: viewTiles(status, look, say),
      reasons: look.gone === null ? viewReasons(status, say) : [],
      markets: status.markets.map((market) => marketRow(market, look, now, say)),
      bases: viewBases(status, look, say),
      bots: viewBots(status, look, say),
      ...viewRest(status, say),
    },
  };
}

/** The whole page, as the server renders it. */
export function viewPage(status: StatusDocument, look: Look): PageView {
  return viewStatus(status, look, WORDS, viewMarket);
}

/** Everything that the browser needs to do the same: `viewStatus(status, look, say, viewMarket)`. */
export const VIEW_SOURCE = [
  WORDS_SOURCE,
  MARKET_SOURCE,
  ...[
    viewTroubles,
    viewSummary,
    viewFrame,
    viewTiles,
    viewReasons,
    viewBases,
    viewBots,
    viewRest,
    viewStatus,
  ].map((view) => view.toString()),
].join('\n');
