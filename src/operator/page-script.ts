import { BARS_SOURCE } from './page-bars.ts';
import { LINK_SOURCE } from './page-link.ts';
import { VIEW_SOURCE } from './page-view.ts';

/** Most markets that the page asks for and shows. */
export const PAGE_MARKETS = 200;

/**
 * The page's only script. It takes each new status, lets the clocks run on in between, and puts text only where the page
 * has a slot for it: nothing that comes from the daemon is ever read as HTML.
 *
 * A slot is `data-f="name"` for text and `data-a="attribute:name ..."` for attributes. The page's own slots stand in
 * elements with `data-own`; a list is `data-list="name"` with a `<template>` of one row behind it.
 */
export const PAGE_SCRIPT = `'use strict';
${VIEW_SOURCE}
const TURN_MS = 250, FEW_MARKETS = 20, MANY_TURN_MS = 1400;
let status = null, facts = null, madeMs = 0, shownMs = 0;

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
    for (const bar of row.querySelectorAll('[data-bar]')) moveBar(bar, Number(values.share), Number(values.rate));
    if (row === place) place = place.nextElementSibling;
    else list.insertBefore(row, place);
  }
  for (const row of old.values()) row.remove();
}

function show() {
  shownMs = performance.now();
  const { gone, goneAtMs, heardAt, link } = connection;
  const elapsedSeconds = ((gone === null ? shownMs : goneAtMs) - madeMs) / 1000;
  const { fields, lists } = viewStatus(status, { elapsedSeconds, gone, heardAt, link }, say, viewMarket);
  if (document.title !== fields.title) document.title = fields.title;
  const icon = document.querySelector('link[rel=icon]');
  if (icon.getAttribute('href') !== icon.dataset[fields.worstTone]) icon.href = icon.dataset[fields.worstTone];
  document.body.dataset.gone = gone || '';
  for (const own of document.querySelectorAll('[data-own]')) bind(own, fields);
  for (const list of document.querySelectorAll('[data-list]')) fillList(list, lists[list.dataset.list]);
}

function announce(next) {
  const seen = new Map();
  for (const { market, state } of next.markets) seen.set('market ' + market, market + ' is ' + state);
  for (const { bot, state } of next.bots) seen.set('bot ' + bot, 'bot ' + bot + ' is ' + state);
  for (const { url, up, outage } of next.bases) seen.set('base ' + url, url + (outage ? ' is in outage' : up === false ? ' is down' : ' is up'));
  seen.set('daemon', next.phase !== 'running' ? 'the daemon is ' + next.phase : next.ready ? 'the daemon is ready' : 'the daemon is not ready');
  const changes = facts === null ? [] : [...seen].filter(([key, fact]) => facts.has(key) && facts.get(key) !== fact).map(([, fact]) => fact);
  facts = seen;
  if (changes.length > 0) speak(changes.length > 4 ? changes.length + ' states changed. ' + changes.at(-1) : changes.join('. '));
}

function speak(text) {
  document.getElementById('changes').textContent = text + '.';
}

function take(next) {
  announce(next);
  if (status === null || next.now !== status.now) madeMs = performance.now();
  status = next;
}
${BARS_SOURCE}
${LINK_SOURCE}
take(JSON.parse(document.getElementById('first').textContent));
show();
keepInTouch();
setInterval(keepInTouch, TURN_MS);
setInterval(() => {
  if (status.markets.length <= FEW_MARKETS || performance.now() - shownMs > MANY_TURN_MS) show();
}, TURN_MS);
`;
