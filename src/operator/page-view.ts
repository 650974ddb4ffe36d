import type { Cancelled, Look, Tone } from './page-words.ts';
import * as pageWords from './page-words.ts';
import type { MarketStatus, StatusDocument } from './status.ts';

// What the page shows, as HTML. These functions run on the server for the first state and, by their source text, in the
// browser for every later one: they may refer to each other, to `words` and to nothing else.

/** Under a name of this file: bundlers and test runners write imported names in another way. */
const words = pageWords;

/** HTML that may stand in HTML; every other text is escaped. */
interface Markup {
  readonly html: string;
}

type Part = string | number | Markup | readonly Markup[];

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A template whose values are escaped, unless they are markup themselves. */
export function html(texts: readonly string[], ...parts: readonly Part[]): Markup {
  const write = (part: Part): string => {
    if (typeof part !== 'object') return escapeHtml(`${part}`);
    return 'html' in part ? part.html : part.map(write).join('');
  };
  return { html: texts.map((text, index) => text + write(parts[index] ?? '')).join('') };
}

export function viewBadge(word: string, tone: Tone, look: Look): Markup {
  const shown = look.gone === null ? tone : 'idle';
  const past = look.gone === null || word === 'deleted' ? word : `was ${word}`;
  return html`<span class="badge" data-tone="${shown}"><i aria-hidden="true">${words.iconOf(shown)}</i><span>${past}</span></span>`;
}

/** How much of `full` is left; the style sheet moves a bar from one state to the next. */
export function viewBar(left: number, full: number, mark: number | null): Markup {
  const share = full <= 0 ? 0 : Math.round(Math.min(1, Math.max(0, left / full)) * 1000) / 1000;
  const due = mark === null ? '' : html`<path class="due" d="M${Math.round(1000 * mark)} 0V10"/>`;
  return html`<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true"><rect width="1000" height="10" transform="scale(${share} 1)"/>${due}</svg>`;
}

/** The plot of the slack at the last renewals: newest at the right, 100 % at the top of a box of 240 by 40. */
export function viewSlack(history: readonly number[]): Markup {
  const last = history.at(-1);
  if (last === undefined) return html`<div class="slack"></div>`;
  const yOf = (ratio: number): number => Math.round((38 - Math.min(1, Math.max(0, ratio)) * 36) * 10) / 10;
  const xOf = (index: number): number => 236 - (history.length - 1 - index) * 4;
  const line = history.map((ratio, index) => `${xOf(index)} ${yOf(ratio)}`).join('L');
  const lowest = Math.round(Math.min(...history) * 100);
  const spoken = `Slack at the last renewals, ${history.length} of them: lowest ${lowest}\u00a0%, last ${Math.round(last * 100)}\u00a0%`;
  return html`<div class="slack"><p class="small">Lowest slack ${lowest}\u00a0%</p><svg class="plot" viewBox="0 0 240 40" preserveAspectRatio="xMaxYMid meet" role="img" aria-label="${spoken}"><path class="half" d="M0 20H240"/><path class="area" d="M${xOf(0)} 39L${line}L236 39Z"/><path class="line" d="M${line}"/><circle r="3" cx="236" cy="${yOf(last)}"/></svg></div>`;
}

export function viewMarket(
  market: MarketStatus,
  cancelled: Cancelled | undefined,
  look: Look,
  botState: string,
): Markup {
  const { state, failureStreak, lapses } = market;
  const down = words.runsDown(market, look.now);
  const tone = look.gone !== null ? 'idle' : down || cancelled !== undefined ? 'bad' : words.toneOf(state);
  const [remaining, label] = words.sayRemaining(market, look, botState);
  // The exchange may round a second away, so that a timer is surely armed for one less than its timeout.
  const full = market.timeoutSeconds - 1;
  const left = Math.max(0, (market.guaranteedSeconds ?? 0) - look.elapsedSeconds);
  const last = words.sayProblem(look.gone === null ? market : { ...market, retryAt: null }, look.now);
  const row = failureStreak > 1 ? `${failureStreak} failures in a row, the last: ` : '';
  const problem = last === '' || state === 'armed' ? '' : row + last;
  const said = (text: string): Markup | string => (text === '' ? '' : html`<p class="said">${text}</p>`);
  const number = (what: string, value: string): Markup => html`<div><dt>${what}</dt><dd>${value}</dd></div>`;
  const answer = market.lastAnswerSeconds === null ? '–' : words.saySeconds(market.lastAnswerSeconds);
  return html`<li class="market" data-key="${market.market}" data-tone="${tone}">
<div class="who"><div class="title"><h3>${market.market}</h3>${viewBadge(state, down ? 'bad' : words.toneOf(state), look)}</div><p class="small">${market.types === null ? 'all orders' : market.types.join(', ')} · bot ${market.bot}</p></div>
<div class="time"><p><span class="big">${remaining}</span> <span class="small">${label}</span></p>${viewBar(left, full, Math.max(0, 1 - market.renewEverySeconds / full))}</div>${viewSlack(market.slackHistory)}
${cancelled === undefined ? '' : said(`Orders ${words.sayCancelled(cancelled, look.now)}.`)}${said(problem)}${said(words.sayNote(market, look, botState))}
<details><summary>Numbers, promise and stop<span class="spoken"> of ${market.market}</span></summary><dl class="numbers">${number('Timer', words.saySeconds(market.timeoutSeconds))}${number('Renewed every', words.saySeconds(market.renewEverySeconds))}${number('Survives outages of', words.saySeconds(Math.floor(market.survivesSeconds * 10) / 10))}${number('Last answer', answer)}${number('Renewals', words.sayCount(market.renewals))}${number('Failures', words.sayCount(market.failures))}${number('Lapses', words.sayCount(lapses))}</dl><p>${market.promise.join('\n')}</p><p>If this daemon were stopped now: ${market.onStop}.</p></details></li>`;
}

/** The markets: the worst first, by bot where there are several, 50 on a page. */
export function viewMarkets(status: StatusDocument, look: Look): Markup {
  const { bots, markets } = status;
  const sought = look.find.trim().toLowerCase();
  const cancelled = new Map(status.cancellations.toReversed().map((one) => [one.market, one]));
  const ranked = markets
    .filter(({ market, bot }) => sought === '' || `${market} ${bot}`.toLowerCase().includes(sought))
    .map((market) => ({ market, rank: words.rankOf(market, cancelled.has(market.market), look.now) }))
    .sort((one, other) => one.rank - other.rank);
  const groups = new Map<string, MarketStatus[]>();
  for (const { market } of ranked) groups.set(market.bot, [...(groups.get(market.bot) ?? []), market]);
  const ordered = [...groups.values()].flat();
  const perPage = 50;
  const pages = Math.max(1, Math.ceil(ordered.length / perPage));
  const page = Math.min(look.page, pages - 1);
  const shown = ordered.slice(page * perPage, (page + 1) * perPage);
  const lists = [...groups].flatMap(([name, own]) => {
    const [word] = bots.flatMap((one) => (one.bot === name ? words.stateOfBot(one) : []));
    const rows = own
      .filter((market) => shown.includes(market))
      .map((market) => viewMarket(market, cancelled.get(market.market), look, word ?? ''));
    if (rows.length === 0) return [];
    const badge = word === undefined ? '' : viewBadge(word, words.toneOf(word), look);
    const head = html`<div class="title group"><span class="strong">Bot ${name}</span>${badge}<span class="small">${words.sayCount(own.length, 'market')}</span></div>`;
    return html`<div data-key="${name}">${bots.length < 2 ? '' : head}<ul role="list" class="markets">${rows}</ul></div>`;
  });
  const hidden = (sought === '' ? status.marketCount : status.matchingCount) - markets.length;
  const are = hidden === 1 ? 'is' : 'are';
  const others = words.sayCount(hidden, 'market');
  const more = hidden > 0 ? ` The ${others} in the best state ${are} left out: search for one.` : '';
  const turn = (to: number, text: string): Markup =>
    html`<button type="button" data-page="${to}" ${to < 0 || to >= pages ? 'disabled' : ''}>${text}</button>`;
  const pager = html`<nav class="pager" aria-label="Pages of markets">${turn(page - 1, 'Back')}<span>Page ${page + 1} of ${pages}</span>${turn(page + 1, 'Next')}</nav>`;
  const isNone = shown.length === 0 && sought !== '';
  const none = isNone ? html`<p class="small">No market and no bot has this in its name.</p>` : '';
  const search = html`<label class="find"><span class="spoken">Find a market or a bot</span><input type="search" id="find" placeholder="Find a market or a bot" autocomplete="off" spellcheck="false"></label>`;
  return html`<section aria-labelledby="timers"><div class="head"><h2 id="timers">Timers</h2>${status.marketCount > 5 ? search : ''}${pages > 1 ? pager : ''}</div>
<p class="small">The worst come first. A bar is the time that a timer has left; a renewal is due when it reaches the mark.${more}</p>
<div data-dense="${shown.length > 12 ? 'yes' : 'no'}">${lists}</div>${none}</section>`;
}

/** The few numbers to be read from across the room; each shows the worst of its kind. */
export function viewTiles(status: StatusDocument, look: Look): Markup {
  const { marketCount, protectedCount, bots, bases, cancellationCount } = status;
  const elapsed = look.elapsedSeconds;
  const tile = (label: string, value: string, note: string, tone: Tone): Markup =>
    html`<div data-tone="${look.gone === null ? tone : 'idle'}"><dt>${label}</dt><dd>${value}</dd><dd class="small">${note}</dd></div>`;
  const { nextExpiry: next, runningDown } = status;
  const isKnown = runningDown !== null && runningDown.unconfirmedCount !== runningDown.count;
  const down = isKnown && runningDown.firstBy > look.now ? runningDown : null;
  const expired = status.markets.find(({ state }) => state === 'expired');
  const first = down === null || (next?.expiresAt ?? Infinity) < down.firstBy ? next : null;
  const least = expired ?? first ?? down;
  const ends = expired === undefined ? (first?.expiresAt ?? down?.firstBy ?? look.now) : look.now;
  const left = Math.max(0, ends - (look.gone === null ? look.now : status.now + elapsed));
  const isShort = first !== null && left < first.timeoutSeconds / 3;
  const ageOf = ({ evidenceAgeSeconds, ttlSeconds }: (typeof bots)[number]): number =>
    (evidenceAgeSeconds ?? -1) / (ttlSeconds ?? 1);
  const [worst] = bots.toSorted(
    (one, other) => severityOf(one) - severityOf(other) || ageOf(other) - ageOf(one),
  );
  const age = worst?.evidenceAgeSeconds ?? null;
  const baseState = (base: (typeof bases)[number]): number =>
    ['up', 'no ping yet', 'answers no ping', 'outage'].indexOf(words.stateOfBase(base));
  const [slowest] = bases.toSorted(
    (one, other) => baseState(other) - baseState(one) || (other.pingSeconds ?? 0) - (one.pingSeconds ?? 0),
  );
  const ping = slowest === undefined ? 'up' : words.stateOfBase(slowest);
  const botState = worst === undefined ? 'not watched' : words.stateOfBot(worst);
  return html`<dl class="tiles">
${tile('Timers armed', `${words.sayCount(protectedCount)} of ${words.sayCount(marketCount)}`, protectedCount === marketCount ? 'confirmed by the exchange' : `${words.sayCount(marketCount - protectedCount)} not armed`, protectedCount === marketCount ? 'ok' : 'warn')}
${tile('Least time left', least === null ? '–' : words.saySeconds(Math.ceil(left)), least?.market ?? 'no timer is armed', least === null ? 'warn' : first === null || expired !== undefined ? 'bad' : isShort ? 'warn' : 'ok')}
${tile(bots.length > 1 ? 'Worst bot' : 'Bot', age === null ? botState : `${botState === 'alive' ? '' : `${botState}, `}${words.saySeconds(Math.floor(age + elapsed))}`, worst === undefined ? 'no bot' : age === null ? worst.bot : `since ${worst.bot} gave a sign, good for ${words.saySeconds(worst.ttlSeconds ?? 0)}`, words.toneOf(botState))}
${tile(bases.length > 1 ? 'Worst address' : 'Exchange', ping === 'up' && slowest?.pingSeconds != null ? words.saySeconds(slowest.pingSeconds) : ping, slowest?.url ?? '', words.toneOf(ping))}
${tile('Orders cancelled', cancellationCount === 0 ? 'none' : words.sayCount(cancellationCount, 'market'), cancellationCount === 0 ? 'left to acknowledge' : 'not acknowledged yet', cancellationCount === 0 ? 'ok' : 'bad')}</dl>`;
}

export function viewCancellations({ cancellations, cancellationCount }: StatusDocument, look: Look) {
  if (cancellationCount === 0) return '';
  const shown = cancellations.slice(0, 5);
  const more = cancellationCount - shown.length;
  const rows = shown.map((one) => {
    const what = words.sayCancelled(one, look.now);
    return html`<li data-key="${one.market} ${one.why}"><span class="strong">${one.market}</span>: orders ${what}.</li>`;
  });
  const ofOne = html`<code>killswitchd ack ${shown[0]?.market ?? ''}</code>`;
  const ofAll = html`<code>killswitchd ack</code>, or for one of them ${ofOne}`;
  const command = cancellationCount === 1 ? ofOne : ofAll;
  return html`<section class="cancelled" aria-labelledby="cancelled"><h2 id="cancelled">Orders cancelled</h2><ul role="list">${rows}${more > 0 ? html`<li>and ${words.sayCount(more, 'more market')}</li>` : ''}</ul>
<p>Check the orders at the exchange.${look.gone === null ? html` Then take this off the page: ${command}. Without <code>control.listen</code> only a restart does.` : ''}</p></section>`;
}

export function severityOf(bot: StatusDocument['bots'][number]): number {
  return ['failed', 'silent', 'not heard yet'].indexOf(words.stateOfBot(bot)) >>> 0;
}

export function viewRest({ bots, bases, whatAStopWouldDo, events, now }: StatusDocument, look: Look): Markup {
  const worstFirst = bots.toSorted((one, other) => severityOf(one) - severityOf(other));
  const shown = bots.length > 100 ? worstFirst.slice(0, 100) : bots;
  const botRows = shown.map((bot) => {
    const word = words.stateOfBot(bot);
    const ttl = bot.ttlSeconds ?? 0;
    const age = bot.evidenceAgeSeconds === null ? null : bot.evidenceAgeSeconds + look.elapsedSeconds;
    const ago = `${words.saySeconds(Math.floor(age ?? 0))} ${look.gone === null ? 'ago' : 'earlier'}`;
    const last = age === null ? 'no sign of life yet' : `last sign of life ${ago}`;
    const until = bot.graceEndsAt == null ? '' : words.sayTime(bot.graceEndsAt, look.now);
    const good =
      until !== ''
        ? `: its timers are not renewed from ${until} on`
        : age === null || ttl === 0
          ? ''
          : `, good for ${words.saySeconds(ttl)}`;
    const sign = bot.mode === 'none' ? 'nobody checks that it lives' : `${last}${good} (${bot.mode})`;
    const tone = look.gone === null ? words.toneOf(word) : 'idle';
    return html`<li data-key="${bot.bot}" data-tone="${tone}"><div class="row"><span class="strong">${bot.bot}</span>${viewBadge(word, words.toneOf(word), look)}<span class="small">${sign}</span></div>${bot.mode === 'none' ? '' : viewBar(age === null ? 0 : ttl - age, ttl, null)}</li>`;
  });
  const more = bots.length - shown.length;
  if (more > 0)
    botRows.push(
      html`<li data-key=" more"><p class="small">and ${words.sayCount(more, 'more bot')}</p></li>`,
    );
  const baseRows = bases.map((base) => {
    const { url, up, pingSeconds, lastProblem } = base;
    const word = words.stateOfBase(base);
    const silence = word === 'outage' ? 'no renewal gets through' : '';
    const ping = up === true && pingSeconds !== null ? `ping ${words.saySeconds(pingSeconds)}` : silence;
    return html`<li data-key="${url}"><div class="row"><span class="strong">${url}</span>${viewBadge(word, words.toneOf(word), look)}<span class="small">${ping}</span></div>${word === 'up' || lastProblem === null ? '' : html`<p class="small">${lastProblem}</p>`}</li>`;
  });
  const stops = whatAStopWouldDo.map(({ does, count, markets }) => {
    const more = count > markets.length ? ` and ${words.sayCount(count - markets.length)} more` : '';
    return html`<li data-key="${does}"><p class="does">${does}</p><p class="small">${markets.join(', ')}${more}</p></li>`;
  });
  const eventRows = events.slice(0, 50).map(({ at, level, event, text }) => {
    const tone = level === 'error' ? 'bad' : level === 'warn' ? 'warn' : 'idle';
    return html`<li data-key="${at} ${event} ${text}" data-tone="${tone}"><time>${words.sayTime(at, now)}</time><i aria-hidden="true">${words.iconOf(tone)}</i><span><span class="spoken">${level}</span> <span>${text}</span></span></li>`;
  });
  const section = (id: string, title: string, className: string, rows: readonly Markup[]): Markup =>
    html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2><ul role="list" class="${className}">${rows}</ul></section>`;
  return html`<div class="pair">${section('bots', 'Bots', 'panel', botRows)}${section('exchange', 'Exchange', 'panel', baseRows)}</div>
${look.gone === null ? section('stop', 'If this daemon were stopped now', 'panel', stops) : ''}${section('events', 'Recent events', 'panel events', eventRows)}`;
}

export function viewPage(status: StatusDocument, look: Look) {
  const summary = words.summarise(status, look);
  const heard = words.sayTime(look.heardAt);
  const asOf = `as of ${words.sayTime(status.now)}`;
  const link = { stream: 'live', poll: 'asking every second', none: asOf }[look.link];
  const gone = {
    lost: `No answer since ${heard}. What follows is what was known then. The timers run on at the exchange and fire unless something else renews them.`,
    ended: `The daemon was stopped at ${heard} and does not answer any more. What follows is its last word.`,
  };
  const linkTone = look.gone !== null ? 'bad' : look.link === 'none' ? 'idle' : 'ok';
  const upSeconds = Math.max(1, Math.floor(look.now - status.startedAt));
  const uptime = look.gone === null ? `up for ${words.saySeconds(upSeconds)}` : '';
  const reasons = look.gone === null && !status.ready ? status.notReady.slice(0, 5) : [];
  const others = reasons.length === 0 ? 0 : status.notReady.length - reasons.length;
  const why = reasons.map((text) => html`<li data-key="${text}">${text}</li>`);
  const mark =
    '<svg class="mark" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" aria-hidden="true"><circle cx="12" cy="13" r="8"/><path d="M12 13V8M9 2h6"/></svg>';
  const body = html`<header data-tone="${summary.tone}"><div class="wrap">${{ html: mark }}<span class="name">killswitchd</span>${viewBadge(summary.word, summary.word === 'ready' && summary.tone !== 'ok' ? 'idle' : summary.tone, { ...look, gone: null })}<p class="link"><span data-tone="${linkTone}"><i class="dot" aria-hidden="true"></i>${look.gone === null ? link : `since ${heard}`}</span><span>${uptime}</span></p></div></header>
<main class="wrap"><div role="alert">${look.gone === null ? '' : html`<p class="gone">${gone[look.gone]}</p>`}</div><div class="summary" data-tone="${summary.tone}"><h1>${summary.sentence}.</h1><p>${summary.rest}${summary.rest === '' ? '' : '.'}</p></div>
${viewCancellations(status, look)}${why.length === 0 ? '' : html`<p class="small">Not ready, because:</p><ul role="list" class="reasons">${why}${others > 0 ? html`<li>and ${words.sayCount(others, 'more reason')}</li>` : ''}</ul>`}${viewTiles(status, look)}
${viewMarkets(status, look)}${viewRest(status, look)}</main>
<footer class="wrap"><span>Shutdown policy: ${status.shutdownPolicy}</span><span>version ${status.version}</span><a href="/metrics">Metrics</a><a href="/readyz?verbose">Readiness</a><a href="/api/v1/status">Status as JSON</a></footer>`;
  return { summary, body };
}
