import { createHash } from 'node:crypto';
import { escapeHtml } from './escape.ts';
import { PAGE_SCRIPT } from './page-script.ts';
import { PAGE_STYLE } from './page-style.ts';
import { type PageView, type Row, viewStatus } from './page-view.ts';
import type { StatusDocument } from './status.ts';

const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#0f766e" stroke-width="2.4" stroke-linecap="round"><circle cx="12" cy="13" r="8"/><path d="M12 13V8M9 2h6"/></svg>',
)}`;
const MARK =
  '<svg class="mark" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" aria-hidden="true"><circle cx="12" cy="13" r="8"/><path d="M12 13V8M9 2h6"/></svg>';

/**
 * What the page may do: run this script, use this style sheet, ask this daemon. A place for foreign content does not
 * exist, and no other page may put this one in a frame.
 */
export const PAGE_POLICY = [
  "default-src 'none'",
  `script-src '${hashOf(PAGE_SCRIPT)}'`,
  `style-src '${hashOf(PAGE_STYLE)}'`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

/** Writes the slots of one row. `values` of a template are all empty. */
type Slots = (name: string) => string;

/** An element whose text is a slot. */
function slot(tag: string, name: string, values: Slots, attributes = ''): string {
  return `<${tag} data-f="${name}"${attributes && ` ${attributes}`}>${values(name)}</${tag}>`;
}

function badge(values: Slots): string {
  return `<span class="badge" data-a="data-tone:tone" data-tone="${values('tone')}">${slot('i', 'icon', values, 'aria-hidden="true"')}${slot('span', values('word') === '' ? 'state' : 'word', values)}</span>`;
}

function marketRow(values: Slots): string {
  return `<li class="market" data-key="${values('key')}" data-a="data-tone:tone" data-tone="${values('tone')}">
<div><div class="title">${slot('h3', 'market', values)}${badge(values)}</div>
${slot('p', 'facts', values, 'class="small"')}${slot('p', 'cadence', values, 'class="small"')}</div>
<div><div class="time">${slot('span', 'remaining', values, 'class="big"')}${slot('span', 'remainingLabel', values, 'class="small"')}</div>
<svg class="bar" viewBox="0 0 1000 6" preserveAspectRatio="none" aria-hidden="true"><rect width="1000" height="6" data-a="transform:fill" transform="${values('fill')}"/></svg></div>
<div class="slack"><svg class="plot" viewBox="0 0 120 32" role="img" data-a="aria-label:slackSpoken" aria-label="${values('slackSpoken')}"><path class="half" d="M0 16H120"/><path class="area" data-a="d:slackArea" d="${values('slackArea')}"/><path class="line" data-a="d:slackLine" d="${values('slackLine')}"/></svg>
${slot('p', 'slackLabel', values, 'class="small"')}</div>
<dl class="numbers"><div><dt>Answer</dt>${slot('dd', 'answer', values)}</div><div><dt>Renewals</dt>${slot('dd', 'renewals', values)}</div>
<div><dt>Failures</dt>${slot('dd', 'failures', values, `data-a="data-tone:failuresTone" data-tone="${values('failuresTone')}"`)}</div>
<div><dt>Lapses</dt>${slot('dd', 'lapses', values, `data-a="data-tone:lapsesTone" data-tone="${values('lapsesTone')}"`)}</div></dl>
${slot('p', 'problem', values, 'class="problem"')}
<details><summary>The promise, and what a stop does</summary>${slot('p', 'promise', values)}${slot('p', 'onStop', values)}</details></li>`;
}

function baseRow(values: Slots): string {
  return `<li data-key="${values('key')}"><div class="row">${slot('span', 'url', values, 'class="strong"')}${badge(values)}${slot('span', 'ping', values, 'class="small"')}</div>${slot('p', 'problem', values, 'class="small"')}</li>`;
}

function botRow(values: Slots): string {
  return `<li data-key="${values('key')}"><div class="row">${slot('span', 'bot', values, 'class="strong"')}${badge(values)}${slot('span', 'evidence', values, 'class="small"')}</div></li>`;
}

function stopRow(values: Slots): string {
  return `<li data-key="${values('key')}">${slot('p', 'does', values, 'class="does"')}${slot('p', 'markets', values, 'class="small"')}</li>`;
}

function eventRow(values: Slots): string {
  return `<li data-key="${values('key')}" data-a="data-tone:tone" data-tone="${values('tone')}">${slot('time', 'time', values)}${slot('i', 'icon', values, 'aria-hidden="true"')}<span>${slot('span', 'level', values, 'class="spoken"')} ${slot('span', 'text', values)}</span></li>`;
}

function reasonRow(values: Slots): string {
  return `<li data-key="${values('key')}">${slot('span', 'text', values)}</li>`;
}

const ROWS: { readonly [L in keyof PageView['lists']]: (values: Slots) => string } = {
  reasons: reasonRow,
  markets: marketRow,
  bases: baseRow,
  bots: botRow,
  stops: stopRow,
  events: eventRow,
};

function slotsOf(values: Readonly<Record<string, string>>): Slots {
  return (name) => escapeHtml(values[name] ?? '');
}

function list(name: keyof PageView['lists'], rows: readonly Row[], className: string): string {
  const row = ROWS[name];
  return `<ul role="list" class="${className}" data-list="${name}">${rows.map((values) => row(slotsOf(values))).join('')}</ul><template id="${name}-row">${row(() => '')}</template>`;
}

/** The status page with its first state: one document that asks nothing of any other host. */
export function renderPage(status: StatusDocument): string {
  const { fields, lists } = viewStatus(status, 0);
  const values = slotsOf(fields);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${values('title')}</title><link rel="icon" href="${escapeHtml(ICON)}"><style>${PAGE_STYLE}</style></head>
<body><a class="skip" href="#timers">Skip to the timers</a>
<header data-own><div class="wrap">${MARK}<span class="name">killswitchd</span>${badge(values)}${slot('span', 'uptime', values, 'class="soft"')}</div></header>
<main class="wrap"><div class="summary" data-own>${slot('h1', 'sentence', values)}${slot('p', 'next', values, 'class="soft"')}</div>
<p id="lost" role="alert"></p><p id="changes" class="spoken" aria-live="polite"></p>
${list('reasons', lists.reasons, 'reasons')}
<section aria-labelledby="timers"><h2 id="timers">Timers</h2>${list('markets', lists.markets, 'markets')}${slot('p', 'hidden', values, 'class="small" data-own')}</section>
<div class="pair"><section aria-labelledby="exchange"><h2 id="exchange">Exchange</h2>${list('bases', lists.bases, 'panel')}</section>
<section aria-labelledby="bots"><h2 id="bots">Bots</h2>${list('bots', lists.bots, 'panel')}</section></div>
<section aria-labelledby="stop"><h2 id="stop">If this daemon were stopped now</h2>${list('stops', lists.stops, 'panel')}</section>
<section aria-labelledby="events"><h2 id="events">Recent events</h2>${list('events', lists.events, 'panel events')}</section>
<footer data-own>${slot('span', 'policy', values)}<span>version ${slot('span', 'version', values)}</span><a href="/metrics">Metrics</a><a href="/readyz?verbose">Readiness</a><a href="/api/v1/status">Status as JSON</a></footer></main>
<noscript><p class="wrap small">Without JavaScript this page shows one moment; reload it for the next.</p></noscript>
<script>${PAGE_SCRIPT}</script></body></html>
`;
}
