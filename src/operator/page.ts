import { hash } from 'node:crypto';
import { PAGE_SCRIPT } from './page-script.ts';
import { escapeHtml, viewPage } from './page-view.ts';
import { lookAtOnce, tabIconOf } from './page-words.ts';
import type { StatusDocument } from './status.ts';

/** The page's only style sheet, from the top of the page to its end. Colours say nothing that a word does not say too. */
export const PAGE_STYLE = `
:root { color-scheme: light dark;
  --ground: #f3f5f8; --surface: #fff; --ink: #141c26; --soft: #526071; --line: #dbe2ea; --track: #e4e9ef;
  --ok: #0b6b63; --warn: #9a4208; --bad: #b01e28; --idle: #566274; --fill: #12948a; --fill-warn: #d9730d; --fill-bad: #d22f38;
  --ok-wash: #e0f3f0; --warn-wash: #fdefd9; --bad-wash: #fde8e8; --idle-wash: #eceff4; }
@media (prefers-color-scheme: dark) { :root {
  --ground: #0b1016; --surface: #141b24; --ink: #e9eef4; --soft: #9fadbd; --line: #263140; --track: #232d3a;
  --ok: #55d6c5; --warn: #f4b65a; --bad: #ff918d; --idle: #a3b0c0; --fill: #22b3a3; --fill-warn: #e89a2f; --fill-bad: #f0545a;
  --ok-wash: #10302d; --warn-wash: #36290f; --bad-wash: #41191c; --idle-wash: #212b37; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif;
  font-variant-numeric: tabular-nums; -webkit-text-size-adjust: 100%; }
.wrap { max-width: 1760px; margin: 0 auto; padding: 0 32px; }
h1, h2, h3, p, dl, dd, ul { margin: 0; padding: 0; } ul { list-style: none; } i { font-style: normal; }
a { color: inherit; text-underline-offset: 3px; }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--ok); outline-offset: 3px; border-radius: 3px; }
.spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: -999px; z-index: 2; } .skip:focus { left: 12px; top: 12px; padding: 6px 10px; background: var(--surface); }
.small { font-size: 13px; color: var(--soft); overflow-wrap: anywhere; } .strong { font-weight: 600; }
[data-tone] { --fore: var(--idle); --wash: var(--idle-wash); --bar: var(--idle); }
[data-tone=ok] { --fore: var(--ok); --wash: var(--ok-wash); --bar: var(--fill); }
[data-tone=warn] { --fore: var(--warn); --wash: var(--warn-wash); --bar: var(--fill-warn); }
[data-tone=bad] { --fore: var(--bad); --wash: var(--bad-wash); --bar: var(--fill-bad); }
.badge { display: inline-flex; align-items: center; gap: 6px; padding: 2px 11px 2px 8px; border-radius: 99px; background: var(--wash);
  color: var(--fore); font-size: 13px; font-weight: 600; white-space: nowrap; }
.badge i { font-weight: 700; width: 1em; text-align: center; }
.bar { display: block; width: 100%; height: 12px; border-radius: 6px; background: var(--track); }
.bar rect { fill: var(--bar); transition: transform .25s linear; } .bar .due { fill: none; stroke: var(--ink); opacity: .3; stroke-width: 2; vector-effect: non-scaling-stroke; }

header[data-tone] { border-top: 4px solid var(--bar); }
header { position: sticky; top: 0; z-index: 1; border-bottom: 1px solid var(--line); background: var(--surface); }
header .wrap { display: flex; align-items: center; gap: 10px; min-height: 54px; }
.mark { width: 22px; height: 22px; flex: none; color: var(--ok); } .name { font-weight: 650; letter-spacing: -.01em; }
.link { margin-left: auto; display: flex; flex-wrap: wrap; justify-content: end; gap: 0 16px; font-size: 13px; color: var(--soft); }
.link [data-tone] { display: inline-flex; align-items: center; gap: 7px; color: var(--fore); }
.dot { width: 8px; height: 8px; border-radius: 50%; background: var(--bar); animation: breathe 2s ease-in-out infinite; }
[data-tone=bad] .dot, [data-tone=idle] .dot { animation: none; } @keyframes breathe { 50% { opacity: .35; } }
.gone { margin-top: 20px; padding: 14px 18px; border-radius: 12px; background: var(--bad-wash); color: var(--bad); font-weight: 600; }
[data-gone=ended] .gone { background: var(--idle-wash); color: var(--ink); }
.summary { padding: 26px 0 18px; } .summary[data-tone=bad] h1, .summary[data-tone=warn] h1 { color: var(--fore); } .summary p { color: var(--soft); font-size: 16px; overflow-wrap: anywhere; }
h1 { font-size: 34px; line-height: 1.15; font-weight: 680; letter-spacing: -.025em; }
h2 { font-size: 14px; font-weight: 650; color: var(--soft); margin: 30px 0 10px; } 
.cancelled { margin-bottom: 16px; padding: 4px 20px 16px; border-radius: 14px; background: var(--bad-wash); color: var(--bad); border: 1px solid var(--fill-bad); overflow-wrap: anywhere; }
.cancelled h2 { color: inherit; margin-top: 12px; } .cancelled p { margin-top: 8px; color: var(--ink); } code { font: 600 .94em ui-monospace, monospace; }
.head { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 18px; margin: 30px 0 10px; } .head h2 { margin: 0; } .head + .small { margin: -4px 0 10px; }
.find input { font: inherit; font-size: 14px; width: 240px; max-width: 100%; padding: 5px 10px; border: 1px solid var(--line); border-radius: 8px; background: var(--surface); color: var(--ink); }
.pager { display: flex; align-items: center; gap: 10px; font-size: 13px; color: var(--soft); margin-left: auto; }
.pager button { font: inherit; padding: 4px 12px; border: 1px solid var(--line); border-radius: 8px; background: var(--surface); color: var(--ink); cursor: pointer; } .pager button:disabled { opacity: .4; cursor: default; }
.find input:focus-visible, .pager button:focus-visible { outline: 2px solid var(--ok); outline-offset: 2px; }
.group { margin: 18px 0 8px; }
.reasons { margin: 6px 0 14px; } .reasons li { padding: 9px 16px; border-left: 4px solid var(--fill-warn); background: var(--surface); margin-bottom: 6px; border-radius: 4px 8px 8px 4px; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); gap: 12px; }
.tiles > div { padding: 14px 18px; background: var(--surface); border: 1px solid var(--line); border-radius: 14px; }
.tiles dt { font-size: 13px; color: var(--soft); } .tiles dd { overflow-wrap: anywhere; }
.tiles dt + dd { font-size: 30px; line-height: 1.25; font-weight: 650; letter-spacing: -.025em; }
.tiles [data-tone=warn], .tiles [data-tone=bad] { border-color: var(--bar); } .tiles [data-tone=warn] dt + dd, .tiles [data-tone=bad] dt + dd { color: var(--fore); }

.panel, .market { background: var(--surface); border: 1px solid var(--line); border-radius: 14px; }
.markets { display: grid; gap: 12px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 760px), 1fr)); }
.market { padding: 16px 22px 14px; display: grid; gap: 10px 28px; align-items: start; align-content: start;
  grid-template-columns: minmax(220px, 1fr) minmax(220px, 1.5fr) 200px; }
.market[data-tone=bad], .market[data-tone=warn] { border-color: var(--bar); box-shadow: inset 5px 0 var(--bar); }
.title { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 10px; } .who .small { margin-top: 4px; }
h3 { font-size: 19px; line-height: 1.3; font-weight: 660; letter-spacing: -.015em; overflow-wrap: anywhere; }
.big { font-size: 30px; line-height: 34px; font-weight: 650; letter-spacing: -.025em; white-space: nowrap; }
[data-tone=bad] .big, [data-tone=warn] .big { color: var(--fore); } .time .bar { margin-top: 6px; }
.time p { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 10px; }
.plot { display: block; width: 100%; height: 40px; margin-top: 4px; }
.plot .line { fill: none; stroke: var(--bar); stroke-width: 1.75; stroke-linejoin: round; stroke-linecap: round; }
.plot .area { fill: var(--bar); opacity: .14; } .plot circle { fill: var(--bar); } .plot .half { stroke: var(--line); stroke-dasharray: 2 4; }
.said { grid-column: 1 / -1; padding: 7px 12px; border-radius: 8px; background: var(--wash); color: var(--fore); font-size: 14px; overflow-wrap: anywhere; }
.numbers { display: grid; grid-template-columns: repeat(auto-fill, minmax(112px, 1fr)); gap: 8px 20px; padding-top: 10px; }
[data-dense=yes] .markets { grid-template-columns: repeat(auto-fill, minmax(min(100%, 330px), 1fr)); gap: 8px; } [data-dense=yes] .market { grid-template-columns: minmax(0, 1fr); gap: 4px; padding: 10px 16px; }
[data-dense=yes] .slack { display: none; } [data-dense=yes] .bar rect { transition-duration: 1s; } [data-dense=yes] .big { font-size: 20px; line-height: 26px; } [data-dense=yes] h3 { font-size: 16px; } [data-dense=yes] .who .small { margin-top: 0; }
.numbers dt { font-size: 12.5px; color: var(--soft); } .numbers dd { font-weight: 600; white-space: nowrap; }
details { grid-column: 1 / -1; font-size: 14px; } summary { cursor: pointer; color: var(--soft); font-size: 13px; width: fit-content; }
details p { white-space: pre-line; max-width: 78ch; margin-top: 6px; overflow-wrap: anywhere; }

.pair { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 12px; }
.panel > li { padding: 13px 22px; border-top: 1px solid var(--line); overflow-wrap: anywhere; } .panel > li:first-child { border-top: 0; }
.panel:empty::after { content: "Nothing yet."; display: block; padding: 13px 22px; color: var(--soft); }
.row { display: flex; flex-wrap: wrap; align-items: center; gap: 2px 12px; } .row .small { margin-left: auto; }
.panel .bar { height: 6px; border-radius: 3px; margin-top: 10px; }
.events { display: grid; grid-template-columns: max-content 16px minmax(0, 1fr); column-gap: 12px; }
.events > li { display: grid; grid-column: 1 / -1; grid-template-columns: subgrid; gap: 0 12px; padding-block: 8px; font-size: 14px; }
.events i { font-weight: 700; color: var(--fore); text-align: center; } .events time { color: var(--soft); white-space: nowrap; }
.events > li > span { overflow-wrap: anywhere; } .events [data-tone=bad] > span { color: var(--bad); } .does::first-letter { text-transform: uppercase; }
footer.wrap { margin-block: 34px 44px; font-size: 13px; color: var(--soft); display: flex; flex-wrap: wrap; gap: 4px 18px; }

[data-gone=lost] main, [data-gone=ended] main { --surface: var(--ground); --fill: var(--idle); --fill-warn: var(--idle); --fill-bad: var(--idle); }
[data-gone=lost] .bar rect, [data-gone=ended] .bar rect { fill: var(--idle); opacity: .45; transition: none; }
[data-gone=lost] .big, [data-gone=ended] .big, [data-gone=lost] .tiles dd, [data-gone=ended] .tiles dd { color: var(--soft); }

@media (max-width: 1020px) { .tiles { grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); } }
@media (max-width: 860px) { .wrap { padding: 0 20px; } .market { grid-template-columns: 1fr 1.4fr; } .slack { grid-column: 1 / -1; } }
@media (max-width: 640px) {
  .wrap { padding: 0 14px; } .summary { padding: 18px 0 14px; } h1 { font-size: 24px; } header .wrap { min-height: 50px; flex-wrap: wrap; gap: 4px 8px; padding-block: 6px; }
  header .link { margin-left: 0; width: 100%; justify-content: start; font-size: 12.5px; } .find, .find input { width: 100%; } .pager { margin-left: 0; }
  .tiles { grid-template-columns: 1fr 1fr; gap: 8px; } .tiles > div { padding: 10px 14px; } .tiles dt + dd { font-size: 23px; }
  .tiles > :last-child:nth-child(odd) { grid-column: 1 / -1; }
  .market { grid-template-columns: minmax(0, 1fr); padding: 16px; }
  .pair { grid-template-columns: minmax(0, 1fr); } .panel > li { padding: 11px 16px; } .row .small { margin-left: 0; width: 100%; }
  .events { display: block; } .events > li { grid-template-columns: 16px minmax(0, 1fr); gap: 0 8px; } .events time { order: 1; font-size: 13px; } .events > li > span { order: 2; grid-column: 2; } }
@media (prefers-reduced-motion: reduce) { .dot { animation: none; } .bar rect { transition: none; } }
@media print { details, header .link { display: none; } }
`;

/** The page may run this script, use this style sheet and ask this daemon; no other page may put it in a frame. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `script-src 'sha256-${hash('sha256', PAGE_SCRIPT, 'base64')}'`,
  `style-src 'sha256-${hash('sha256', PAGE_STYLE, 'base64')}'`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The status page with its first state: one document that asks nothing of any other host. */
export function renderPage(status: StatusDocument): string {
  const { summary, body } = viewPage(status, lookAtOnce(status));
  // Nothing in the JSON from which the script takes its first state may end it.
  const escape = (found: string) => `\\u00${found.charCodeAt(0).toString(16)}`;
  const first = JSON.stringify(status).replaceAll(/[<>&']/g, escape);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(summary.title)}</title><link rel="icon" href="${escapeHtml(tabIconOf(summary.tone))}"><style>${PAGE_STYLE}</style></head>
<body><a class="skip" href="#timers">Skip to the timers</a><p id="changes" class="spoken" role="status" aria-live="polite"></p>
<div id="page">${body.html}</div>
<noscript><p class="wrap small">Without JavaScript this page shows one moment; reload it for the next.</p></noscript>
<script type="application/json" id="first">${first}</script><script>${PAGE_SCRIPT}</script></body></html>
`;
}
