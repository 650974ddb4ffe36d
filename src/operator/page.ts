import { createHash } from 'node:crypto';
import { escapeHtml } from './escape.ts';
import { badge, list, slot, slotsOf } from './page-rows.ts';
import { PAGE_SCRIPT } from './page-script.ts';
import { PAGE_STYLE } from './page-style.ts';
import { viewPage } from './page-view.ts';
import type { StatusDocument } from './status.ts';

const ICON_COLOURS = { ok: '#0f766e', warn: '#c2570c', bad: '#c8232c', idle: '#64748b' } as const;
const MARK =
  '<svg class="mark" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" aria-hidden="true"><circle cx="12" cy="13" r="8"/><path d="M12 13V8M9 2h6"/></svg>';

/** The icon in the colour of each tone: of many tabs, the one in trouble is seen. */
const ICONS = Object.entries(ICON_COLOURS).map(([tone, colour]) => {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="${colour}" stroke-width="2.6" stroke-linecap="round"><circle cx="12" cy="13" r="8"/><path d="M12 13V8M9 2h6"/></svg>`;
  return { tone, href: `data:image/svg+xml,${encodeURIComponent(svg)}` };
});

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

/** JSON that nothing in it can end: the script reads its first state from it. */
function dataBlock(status: StatusDocument): string {
  const escape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return `<script type="application/json" id="first">${JSON.stringify(status).replaceAll(/[<>&'\u2028\u2029]/g, escape)}</script>`;
}

/** The status page with its first state: one document that asks nothing of any other host. */
export function renderPage(status: StatusDocument): string {
  const look = { elapsedSeconds: 0, gone: null, heardAt: status.now, link: 'none' } as const;
  const { fields, lists } = viewPage(status, look);
  const values = slotsOf(fields);
  const icons = ICONS.map(({ tone, href }) => `data-${tone}="${escapeHtml(href)}"`).join(' ');
  const icon = ICONS.find(({ tone }) => tone === fields['worstTone']) ?? ICONS[0];
  const section = (id: string, title: string, body: string): string =>
    `<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>${body}</section>`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${values('title')}</title><link rel="icon" href="${escapeHtml(icon?.href ?? '')}" ${icons}><style>${PAGE_STYLE}</style></head>
<body><a class="skip" href="#timers">Skip to the timers</a>
<header data-own><div class="wrap">${MARK}<span class="name">killswitchd</span>${badge(values, 'word')}<p class="link"><span data-a="data-tone:linkTone" data-tone="${values('linkTone')}"><i class="dot" aria-hidden="true"></i>${slot('span', 'link', values)}</span>${slot('span', 'uptime', values)}</p></div></header>
<main class="wrap"><div data-own><div role="alert">${slot('p', 'gone', values, 'class="gone"')}</div><div class="summary">${slot('h1', 'sentence', values)}${slot('p', 'troubles', values)}</div></div>
<p id="changes" class="spoken" role="status" aria-live="polite"></p>
${list('reasons', lists.reasons, 'reasons')}${list('tiles', lists.tiles, 'tiles', 'dl')}
${section('timers', 'Timers', `<p class="small">A bar is the time that a timer has left. It is due to be renewed at the mark.</p>${list('markets', lists.markets, 'markets')}<p class="small" data-own>${slot('span', 'hidden', values)}</p>`)}
<div class="pair">${section('bots', 'Bots', list('bots', lists.bots, 'panel'))}${section('exchange', 'Exchange', list('bases', lists.bases, 'panel'))}</div>
${section('stop', 'If this daemon were stopped now', list('stops', lists.stops, 'panel'))}
${section('events', 'Recent events', list('events', lists.events, 'panel events'))}</main>
<footer class="wrap" data-own>${slot('span', 'policy', values)}<span>version ${slot('span', 'version', values)}</span><a href="/metrics">Metrics</a><a href="/readyz?verbose">Readiness</a><a href="/api/v1/status">Status as JSON</a></footer>
<noscript><p class="wrap small">Without JavaScript this page shows one moment; reload it for the next.</p></noscript>
${dataBlock(status)}<script>${PAGE_SCRIPT}</script></body></html>
`;
}
