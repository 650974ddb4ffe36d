import { VIEW_SOURCE } from './page-view.ts';

/** Most markets that the page asks for and shows. */
export const PAGE_MARKETS = 200;

/**
 * The page's only script. It asks for the status each second, lets the clocks run on in between, and puts text only where
 * the page has a slot for it: nothing that comes from the daemon is ever read as HTML.
 *
 * A slot is `data-f="name"` for text and `data-a="attribute:name ..."` for attributes. The page's own slots stand in
 * elements with `data-own`; a list is `data-list="name"` with a `<template>` of one row behind it.
 */
export const PAGE_SCRIPT = `'use strict';
${VIEW_SOURCE}
const EVERY_MS = 1000, GIVE_UP_MS = 4000, LOST_AFTER_MS = 5000;
let status = null, states = new Map(), receivedMs = performance.now(), lost = false;
const one = (selector) => document.querySelector(selector);

function bind(root, values) {
  for (const slot of [root, ...root.querySelectorAll('[data-f],[data-a]')]) {
    const text = values[slot.dataset.f];
    if (text !== undefined && slot.textContent !== text) slot.textContent = text;
    for (const pair of (slot.dataset.a || '').split(' ').filter(Boolean)) {
      const [attribute, name] = pair.split(':');
      if (values[name] !== undefined && slot.getAttribute(attribute) !== values[name]) slot.setAttribute(attribute, values[name]);
    }
  }
}

function fillList(list, rows) {
  const old = new Map([...list.children].map((row) => [row.dataset.key, row]));
  const template = document.getElementById(list.dataset.list + '-row');
  let place = list.firstElementChild;
  for (const values of rows) {
    let row = old.get(values.key);
    if (row === undefined) row = template.content.firstElementChild.cloneNode(true);
    old.delete(values.key);
    row.dataset.key = values.key;
    bind(row, values);
    if (row === place) place = place.nextElementSibling;
    else list.insertBefore(row, place);
  }
  for (const row of old.values()) row.remove();
}

function show() {
  if (status === null) return;
  const view = viewStatus(status, (performance.now() - receivedMs) / 1000, lost);
  document.title = view.fields.title;
  for (const own of document.querySelectorAll('[data-own]')) bind(own, view.fields);
  for (const list of document.querySelectorAll('[data-list]')) fillList(list, view.lists[list.dataset.list]);
}

function announce(next) {
  const changes = [];
  for (const { market, state } of next.markets) {
    if (states.has(market) && states.get(market) !== state) changes.push(market + ' is now ' + state);
    states.set(market, state);
  }
  if (changes.length > 0) one('#changes').textContent = changes.length > 3 ? changes.length + ' markets changed their state' : changes.join('. ');
}

function setLost(now) {
  if (now === lost) return;
  lost = now;
  one('#lost').textContent = lost ? 'No answer since ' + formatTime(Date.now() / 1000 - (performance.now() - receivedMs) / 1000) +
    '. What follows is what was known then. The timers run on at the exchange and fire unless something renews them.' : '';
}

async function poll() {
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), GIVE_UP_MS);
  try {
    const reply = await fetch('/api/v1/status?view=page', { signal: giveUp.signal, cache: 'no-store' });
    if (!reply.ok) throw new Error('status ' + reply.status);
    const next = await reply.json();
    announce(next);
    status = next;
    receivedMs = performance.now();
    setLost(false);
  } catch {
    if (performance.now() - receivedMs > LOST_AFTER_MS) setLost(true);
  }
  clearTimeout(timer);
  show();
}

(async () => {
  for (;;) {
    if (!document.hidden || status === null) await poll();
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
})();
setInterval(show, EVERY_MS);
`;
