import * as views from './page-view.ts';
import * as words from './page-words.ts';

const NAMED = Object.entries(words).map(([name, word]) => `${name}: ${word.name}`);
/** What the browser needs to do as the server does: `viewPage(status, look)`. A bundler may have given another name. */
export const VIEW_SOURCE = [
  ...Object.values(words),
  `const words = { ${NAMED.join(', ')} };`,
  ...Object.values(views),
].join('\n');

/** The page's only script. It changes the document node by node: what somebody has opened, marked or typed stays. */
const SCRIPT = `
const TURN_MS = 250, FEW_MARKETS = 12, MANY_TURN_MS = 1000;
let status = null, facts = null, madeMs = 0, shownMs = 0, find = '', page = 0;

/** Makes one node like another, children included; those with a key are moved, not changed into each other. */
function morph(old, next) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const name of old.getAttributeNames()) if (name !== 'open' && !next.hasAttribute(name)) old.removeAttribute(name);
  const keyOf = (node) => (node.dataset === undefined ? undefined : node.dataset.key);
  const keyed = new Map([...old.children].filter(keyOf).map((child) => [keyOf(child), child]));
  let place = old.firstChild;
  for (const child of [...next.childNodes]) {
    const key = keyOf(child), match = key === undefined ? place : keyed.get(key);
    if (match && match.nodeName === child.nodeName && keyOf(match) === key) {
      if (match === place) place = place.nextSibling;
      else old.insertBefore(match, place);
      morph(match, child);
    } else old.insertBefore(child, place);
  }
  while (place !== null) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

/** What is sought, where not all markets are in the document. */
function searched() {
  return status !== null && (status.marketCount > status.markets.length) ? find.trim() : '';
}

function show() {
  shownMs = performance.now();
  const { gone, goneAtMs, heardAt, link } = connection;
  const elapsedSeconds = ((gone === null ? shownMs : goneAtMs) - madeMs) / 1000;
  const now = status.now + (shownMs - madeMs) / 1000;
  const { summary, body } = viewPage(status, { elapsedSeconds, now, gone, heardAt, link, find, page });
  if (document.title !== summary.title) document.title = summary.title;
  const icon = document.querySelector('link[rel=icon]'), href = words.tabIconOf(summary.tone);
  if (icon.getAttribute('href') !== href) icon.href = href;
  document.body.dataset.gone = gone || '';
  const template = document.createElement('template');
  template.innerHTML = '<div id="page">' + body.html + '</div>';
  morph(document.getElementById('page'), template.content.firstElementChild);
}

function announce(next) {
  const seen = new Map();
  for (const { market, state } of next.markets) seen.set('market ' + market, market + ' is ' + state);
  for (const bot of next.bots) seen.set('bot ' + bot.bot, 'bot ' + bot.bot + ' is ' + words.stateOfBot(bot));
  for (const base of next.bases) seen.set('base ' + base.url, base.url + ': ' + words.stateOfBase(base));
  seen.set('daemon', next.phase !== 'running' ? 'the daemon is ' + next.phase : next.ready ? 'the daemon is ready' : 'the daemon is not ready');
  seen.set('cancelled', next.cancellationCount === 0 ? 'no cancelled orders are left to acknowledge' : words.sayAllCancelled(next, next.now));
  const changes = facts === null ? [] : [...seen].filter(([key, fact]) => facts.has(key) && facts.get(key) !== fact).map(([, fact]) => fact);
  facts = seen;
  if (changes.length > 0) speak(changes.length > 4 ? changes.length + ' states changed. ' + changes.at(-1) : changes.join('. '));
}

function speak(text) {
  document.getElementById('changes').textContent = text + '.';
}

document.addEventListener('input', ({ target }) => {
  if (target.id !== 'find') return;
  find = target.value;
  page = 0;
  show();
  keepInTouch();
});
document.addEventListener('click', ({ target }) => {
  if (!target.dataset || target.dataset.page === undefined) return;
  page = Number(target.dataset.page);
  show();
});

// The daemon is heard by server-sent events; where those fail, or the page is hidden, it is asked: a browser opens six
// connections to a host, and hidden pages would hold them.
const LOST_MS = 5000, QUIET_STREAM_MS = 3500, GIVE_UP_MS = 4000, STREAM_AGAIN_MS = 5000;
const ASK_MS = 1000, ASK_GONE_MS = 2000, ASK_HIDDEN_MS = 10000, SLEPT_MS = 10000;
const connection = { gone: null, goneAtMs: 0, heardAt: 0, heardMs: 0, link: 'none' };
let stream = null, streamSaidMs = 0, streamFromMs = 0;
let asking = false, askFromMs = Infinity, seenMs = performance.now();

function heard(json, link) {
  const next = JSON.parse(json);
  announce(next);
  if (status === null || next.now !== status.now) madeMs = performance.now();
  status = next;
  connection.heardMs = performance.now();
  connection.heardAt = Date.now() / 1000;
  connection.link = link;
  if (connection.gone !== null) speak('The daemon answers again');
  connection.gone = null;
  show();
}

function lose(how) {
  if (connection.gone !== null) return;
  connection.gone = how;
  connection.goneAtMs = performance.now();
  askFromMs = Math.min(askFromMs, connection.goneAtMs + ASK_GONE_MS);
  show();
}

function closeStream() {
  stream?.close();
  stream = null;
}

function openStream() {
  stream = new EventSource('/api/v1/events');
  streamSaidMs = performance.now();
  stream.addEventListener('status', ({ data }) => {
    streamSaidMs = performance.now();
    heard(data, 'stream');
  });
  stream.addEventListener('end', () => {
    closeStream();
    lose('ended');
  });
  stream.addEventListener('error', failStream);
}

function failStream() {
  closeStream();
  streamFromMs = performance.now() + STREAM_AGAIN_MS;
  askFromMs = 0;
  keepInTouch();
}

async function ask() {
  asking = true;
  try {
    const asked = { signal: AbortSignal.timeout(GIVE_UP_MS), cache: 'no-store' };
    const reply = await fetch('/api/v1/status?view=page&find=' + encodeURIComponent(searched()), asked);
    if (!reply.ok) throw new Error('status ' + reply.status);
    const wasGone = connection.gone !== null;
    heard(await reply.text(), 'poll');
    if (wasGone) streamFromMs = 0;
  } catch {
    if (performance.now() - connection.heardMs > LOST_MS) lose('lost');
  }
  askFromMs = performance.now() + (document.hidden ? ASK_HIDDEN_MS : connection.gone === null ? ASK_MS : ASK_GONE_MS);
  asking = false;
}

function keepInTouch() {
  const nowMs = performance.now(), sinceHeardMs = nowMs - connection.heardMs;
  // The stream is the same for everybody: what is sought beyond it is asked for.
  const wantsStream = !document.hidden && searched() === '';
  if (stream !== null && !wantsStream) {
    closeStream();
    askFromMs = document.hidden ? nowMs + ASK_HIDDEN_MS : nowMs;
  }
  if (stream !== null && nowMs - streamSaidMs > QUIET_STREAM_MS) return failStream();
  const slept = Date.now() - connection.heardAt * 1000 - sinceHeardMs > SLEPT_MS;
  const quiet = !document.hidden && Math.min(sinceHeardMs, nowMs - seenMs) > LOST_MS;
  if (slept || quiet) lose('lost');
  if (stream === null && wantsStream && connection.gone === null && nowMs >= streamFromMs) openStream();
  if (stream === null && !asking && nowMs >= askFromMs) ask();
}

document.addEventListener('visibilitychange', () => {
  seenMs = performance.now();
  streamFromMs = 0;
  askFromMs = 0;
  keepInTouch();
});
addEventListener('pagehide', closeStream);

heard(document.getElementById('first').textContent, 'none');
keepInTouch();
setInterval(keepInTouch, TURN_MS);
setInterval(() => {
  if (status.markets.length <= FEW_MARKETS || performance.now() - shownMs > MANY_TURN_MS) show();
}, TURN_MS);
`;

export const PAGE_SCRIPT = `'use strict';\n${VIEW_SOURCE}\n${SCRIPT}`;
