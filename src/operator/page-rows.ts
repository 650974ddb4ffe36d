import { escapeHtml } from './escape.ts';
import type { PageView } from './page-view.ts';
import type { Row } from './page-words.ts';

/** Writes the slots of one row, ready to stand in HTML. The values of a template are all empty. */
export type Slots = (name: string) => string;
export type ListName = keyof PageView['lists'];

const EMPTY: Slots = () => '';

export function slotsOf(values: Readonly<Record<string, string>>): Slots {
  return (name) => escapeHtml(values[name] ?? '');
}

/** An element whose text is a slot. */
export function slot(tag: string, name: string, values: Slots, attributes = ''): string {
  return `<${tag} data-f="${name}"${attributes && ` ${attributes}`}>${values(name)}</${tag}>`;
}

/** An attribute that is a slot, and what tells the script so. */
function attribute(pairs: Readonly<Record<string, string>>, values: Slots): string {
  const names = Object.entries(pairs);
  const bound = names.map(([name, from]) => `${name}:${from}`).join(' ');
  return `data-a="${bound}" ${names.map(([name, from]) => `${name}="${values(from)}"`).join(' ')}`;
}

/** A state as colour, symbol and word. */
export function badge(values: Slots, word = 'state'): string {
  return `<span class="badge" ${attribute({ 'data-tone': 'tone' }, values)}>${slot('i', 'icon', values, 'aria-hidden="true"')}${slot('span', word, values)}</span>`;
}

/** A bar that the script keeps moving between two states; what it says stands beside it in words. */
function bar(values: Slots, marks = ''): string {
  return `<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true"><rect width="1000" height="10" data-bar ${attribute({ transform: 'fill' }, values)}/>${marks}</svg>`;
}

function number(label: string, name: string, values: Slots, tone = ''): string {
  const toned = tone === '' ? '' : attribute({ 'data-tone': tone }, values);
  return `<div><dt>${label}</dt>${slot('dd', name, values, toned)}</div>`;
}

function tileRow(values: Slots): string {
  return `<div data-key="${values('key')}" ${attribute({ 'data-tone': 'tone' }, values)}>${slot('dt', 'label', values)}${slot('dd', 'value', values)}${slot('dd', 'note', values, 'class="small"')}</div>`;
}

function marketRow(values: Slots): string {
  const due = `<path class="due" ${attribute({ d: 'due' }, values)}/>`;
  const plot = `<svg class="plot" viewBox="0 0 240 40" preserveAspectRatio="xMaxYMid meet" role="img" ${attribute({ 'aria-label': 'slackSpoken' }, values)}><path class="half" d="M0 20H240"/><path class="area" ${attribute({ d: 'slackArea' }, values)}/><path class="line" ${attribute({ d: 'slackLine' }, values)}/><circle r="3" ${attribute({ cx: 'slackX', cy: 'slackY' }, values)}/></svg>`;
  return `<li class="market" data-key="${values('key')}" ${attribute({ 'data-tone': 'tone' }, values)}>
<div class="who"><div class="title">${slot('h3', 'market', values)}${badge(values)}</div>${slot('p', 'facts', values, 'class="small"')}</div>
<div class="time"><p>${slot('span', 'remaining', values, 'class="big"')} ${slot('span', 'remainingLabel', values, 'class="small"')}</p>${bar(values, due)}</div>
<div class="slack">${slot('p', 'slackLabel', values, 'class="small"')}${plot}</div>
${slot('p', 'lapsed', values, 'class="said" data-tone="bad"')}${slot('p', 'problem', values, 'class="said"')}${slot('p', 'note', values, 'class="said"')}
<dl class="numbers">${number('Timer', 'timer', values)}${number('Renewed every', 'cadence', values)}${number('Survives outages of', 'survives', values)}${number('Last answer', 'answer', values)}${number('Renewals', 'renewals', values)}${number('Failures', 'failures', values, 'failuresTone')}${number('Lapses', 'lapses', values, 'lapsesTone')}</dl>
<details><summary>The promise<span class="spoken"> for ${slot('span', 'market', values)}</span>, and what a stop does</summary>${slot('p', 'promise', values)}${slot('p', 'onStop', values)}</details></li>`;
}

function baseRow(values: Slots): string {
  return `<li data-key="${values('key')}"><div class="row">${slot('span', 'url', values, 'class="strong"')}${badge(values)}${slot('span', 'ping', values, 'class="small"')}</div>${slot('p', 'problem', values, 'class="small"')}</li>`;
}

function botRow(values: Slots): string {
  return `<li data-key="${values('key')}" ${attribute({ 'data-tone': 'tone', 'data-meter': 'meter' }, values)}><div class="row">${slot('span', 'bot', values, 'class="strong"')}${badge(values)}${slot('span', 'evidence', values, 'class="small"')}</div>${bar(values)}</li>`;
}

function stopRow(values: Slots): string {
  return `<li data-key="${values('key')}">${slot('p', 'does', values, 'class="does"')}${slot('p', 'markets', values, 'class="small"')}</li>`;
}

function eventRow(values: Slots): string {
  return `<li data-key="${values('key')}" ${attribute({ 'data-tone': 'tone' }, values)}>${slot('time', 'time', values)}${slot('i', 'icon', values, 'aria-hidden="true"')}<span>${slot('span', 'level', values, 'class="spoken"')} ${slot('span', 'text', values)}</span></li>`;
}

function reasonRow(values: Slots): string {
  return `<li data-key="${values('key')}">${slot('span', 'text', values)}</li>`;
}

const ROWS: { readonly [L in ListName]: (values: Slots) => string } = {
  tiles: tileRow,
  reasons: reasonRow,
  markets: marketRow,
  bases: baseRow,
  bots: botRow,
  stops: stopRow,
  events: eventRow,
};

/** A list with its rows, and behind it the empty row that the script makes new ones from. */
export function list(name: ListName, rows: readonly Row[], className: string, tag = 'ul'): string {
  const row = ROWS[name];
  const role = tag === 'ul' ? ' role="list"' : '';
  const filled = rows.map((values) => row(slotsOf(values))).join('');
  return `<${tag}${role} class="${className}" data-list="${name}">${filled}</${tag}><template id="${name}-row">${row(EMPTY)}</template>`;
}
