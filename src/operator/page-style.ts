/** The page's only style sheet. Colours say nothing that a word beside them does not say too. */
export const PAGE_STYLE = `
:root { color-scheme: light dark;
  --ground: #f4f6f8; --surface: #fff; --ink: #17202b; --soft: #566273; --line: #dde3ea; --track: #e6ebf0;
  --ok: #0f766e; --warn: #a3480b; --bad: #b4232a; --idle: #5b6879;
  --ok-wash: #e3f4f1; --warn-wash: #fdf0dd; --bad-wash: #fdeaea; --idle-wash: #edf0f4; }
@media (prefers-color-scheme: dark) { :root {
  --ground: #0e1319; --surface: #161d26; --ink: #e8edf3; --soft: #9eabba; --line: #27313d; --track: #26303b;
  --ok: #4fd1c0; --warn: #f2b152; --bad: #ff8a86; --idle: #9eabba;
  --ok-wash: #12302e; --warn-wash: #362812; --bad-wash: #3c1b1d; --idle-wash: #222b36; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif;
  font-variant-numeric: tabular-nums; -webkit-text-size-adjust: 100%; }
.wrap { max-width: 1120px; margin: 0 auto; padding: 0 20px; }
h1, h2, h3, p, dl, dd, ul, ol { margin: 0; padding: 0; }
ul, ol { list-style: none; }
a { color: inherit; text-underline-offset: 3px; }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--ok); outline-offset: 3px; border-radius: 3px; }
.spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: -999px; } .skip:focus { left: 12px; top: 12px; padding: 6px 10px; background: var(--surface); }
[data-f]:empty { display: none; }
.soft { color: var(--soft); }

[data-tone=ok] { --tone: var(--ok); --wash: var(--ok-wash); } [data-tone=warn] { --tone: var(--warn); --wash: var(--warn-wash); }
[data-tone=bad] { --tone: var(--bad); --wash: var(--bad-wash); } [data-tone=idle] { --tone: var(--idle); --wash: var(--idle-wash); }
.badge { display: inline-flex; align-items: center; gap: 6px; padding: 2px 10px 2px 8px; border-radius: 99px; background: var(--wash);
  color: var(--tone); font-size: 13px; font-weight: 600; white-space: nowrap; }
.badge i { font-style: normal; font-weight: 700; width: 1em; text-align: center; }

header { border-bottom: 1px solid var(--line); background: var(--surface); }
header .wrap { display: flex; align-items: center; gap: 10px; min-height: 56px; }
.mark { width: 22px; height: 22px; flex: none; color: var(--ok); }
.name { font-weight: 650; letter-spacing: -.01em; }
header .soft { font-size: 13px; margin-left: auto; text-align: right; }
.summary { padding: 28px 0 16px; }
h1 { font-size: 28px; line-height: 1.2; font-weight: 650; letter-spacing: -.02em; }
h2 { font-size: 13px; font-weight: 650; color: var(--soft); margin: 28px 0 10px; letter-spacing: .01em; }
#lost, .reasons { border-radius: 10px; }
#lost { padding: 12px 16px; background: var(--bad-wash); color: var(--bad); font-weight: 600; margin-bottom: 16px; }
#lost:empty { display: none; }
.reasons li { padding: 8px 16px; border-left: 3px solid var(--warn); background: var(--surface); margin-bottom: 6px; border-radius: 0 8px 8px 0; overflow-wrap: anywhere; }

.panel, .market { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; }
.markets { display: grid; gap: 10px; }
.market { padding: 16px 20px; display: grid; gap: 8px 24px; align-items: start;
  grid-template-columns: minmax(190px, 1.1fr) minmax(210px, 1.5fr) 124px minmax(248px, 1.1fr); }
.market[data-tone=bad] { border-color: var(--bad); } .market[data-tone=warn] { border-color: var(--warn); }
.title { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 10px; }
h3 { font-size: 16px; font-weight: 650; letter-spacing: -.01em; overflow-wrap: anywhere; }
.small { font-size: 13px; color: var(--soft); overflow-wrap: anywhere; }
.big { font-size: 24px; line-height: 28px; font-weight: 600; letter-spacing: -.02em; white-space: nowrap; }
.time { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 10px; }
.bar { display: block; width: 100%; height: 6px; border-radius: 3px; margin-top: 8px; background: var(--track); }
.bar rect { fill: var(--tone); transition: transform 1s linear; }
.plot { display: block; width: 120px; height: 32px; overflow: visible; }
.plot .line { fill: none; stroke: var(--tone); stroke-width: 1.5; stroke-linejoin: round; stroke-linecap: round; }
.plot:has(.line[d=""]) { visibility: hidden; }
.plot .area { fill: var(--tone); opacity: .12; } .plot .half { stroke: var(--line); stroke-dasharray: 2 3; }
.numbers { display: grid; grid-template-columns: repeat(4, auto); gap: 0 12px; justify-content: space-between; }
.numbers dt { font-size: 12px; color: var(--soft); } .numbers dd { font-weight: 600; white-space: nowrap; }
.numbers dd[data-tone=bad], .numbers dd[data-tone=warn] { color: var(--tone); }
.problem { grid-column: 1 / -1; padding: 6px 10px; border-radius: 6px; background: var(--wash); color: var(--tone); font-size: 14px; overflow-wrap: anywhere; }
details { grid-column: 1 / -1; font-size: 14px; } summary { cursor: pointer; color: var(--soft); font-size: 13px; width: fit-content; }
details p { white-space: pre-line; max-width: 78ch; margin-top: 6px; overflow-wrap: anywhere; }

.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 0 20px; } .pair > * { min-width: 0; }
.panel > li { padding: 12px 20px; border-top: 1px solid var(--line); overflow-wrap: anywhere; } .panel > li:first-child { border-top: 0; }
.panel:empty::after { content: "Nothing yet."; display: block; padding: 12px 20px; color: var(--soft); }
.row { display: flex; flex-wrap: wrap; align-items: center; gap: 2px 12px; } .row .small { margin-left: auto; }
.strong { font-weight: 600; }
.events > li { display: grid; grid-template-columns: 72px 16px minmax(0, 1fr); gap: 0 8px; padding-block: 8px; font-size: 14px; }
.events i { font-style: normal; font-weight: 700; color: var(--tone); text-align: center; }
.events time { color: var(--soft); white-space: nowrap; } .events > li > span { overflow-wrap: anywhere; }
.does::first-letter { text-transform: uppercase; } .events [data-tone=bad] { color: var(--bad); }
footer { margin: 32px 0 40px; font-size: 13px; color: var(--soft); display: flex; flex-wrap: wrap; gap: 4px 18px; }

@media (max-width: 940px) { .market { grid-template-columns: 1fr 1fr; } }
@media (max-width: 640px) { .plot:has(.line[d=""]) { display: none; }
  .wrap { padding: 0 14px; } .summary { padding: 20px 0 12px; } h1 { font-size: 23px; }
  .market { grid-template-columns: minmax(0, 1fr); padding: 14px; gap: 12px; } .pair { grid-template-columns: minmax(0, 1fr); }
  .slack { display: flex; align-items: center; gap: 14px; }
  .panel > li { padding: 10px 14px; } .row .small { margin-left: 0; width: 100%; }
  .events > li { grid-template-columns: 66px 14px minmax(0, 1fr); } }
@media (prefers-reduced-motion: reduce) { .bar rect { transition: none; } }
@media print { details { display: none; } }
`;
