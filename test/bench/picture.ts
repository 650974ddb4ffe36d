import { type Rows, spreadOf } from './book.ts';
import { FLEET_SIZES } from './fleets.ts';
import { ANSWERS } from './slow.ts';

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [400, 260, 56, 376, 34, 216];
const COLOURS = { daemon: '#2f81f7', undici: '#d4762c', floor: '#8b949e', ccxt: '#a371f7' } as const;
const SHOWN = Object.keys(COLOURS) as (keyof typeof COLOURS)[];
const STYLE =
  'text{fill:#57606a}.grid{stroke:#8b949e;stroke-opacity:.3}@media(prefers-color-scheme:dark){text{fill:#b1bac4}}';

interface Panel {
  readonly title: string;
  readonly xLabel: string;
  readonly xTicks: readonly number[];
  readonly yTicks: readonly number[];
  readonly yLog?: boolean;
  readonly at: readonly number[];
  readonly row: (at: number) => string;
}

/** CPU and memory over the number of markets. */
export function drawCosts(rows: Rows): string {
  const over = { xLabel: 'markets', xTicks: [1, 10, 100, 1000, 10_000], at: FLEET_SIZES };
  const cpu = { ...over, title: 'CPU, % of a core', yTicks: [0.1, 1, 10, 100], yLog: true };
  const memory = { ...over, title: 'Memory, MB', yTicks: [0, 100, 200, 300, 400, 500] };
  return draw(rows, [
    { ...cpu, row: (markets) => `core/${markets}` },
    { ...memory, row: (markets) => `rss/${markets}` },
  ]);
}

/** What is left of a timer when it is renewed, over how long the exchange takes to answer. */
export function drawSlack(rows: Rows): string {
  const axes = { xTicks: [0.05, 0.2, 0.5, 1, 2, 5], yTicks: [0, 20, 40, 60, 80, 100], at: ANSWERS };
  const title = 'Least slack, % of T (20 markets, T = 5 s)';
  return draw(rows, [{ ...axes, title, xLabel: 'answer time, s', row: (s) => `slack/T=5, ${s} s` }]);
}

function draw(rows: Rows, panels: readonly Panel[]): string {
  const drawn = panels.map(
    (panel, at) => `<g transform="translate(${at * WIDTH} 0)">${drawPanel(rows, panel)}</g>`,
  );
  const box = `viewBox="0 0 ${panels.length * WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${box}>\n<style>${STYLE}</style>\n${drawn.join('\n')}\n</svg>\n`;
}

function drawPanel(rows: Rows, { title, xLabel, xTicks, yTicks, yLog = false, at, row }: Panel): string {
  const toX = scaleOf(xTicks, true, LEFT, RIGHT);
  const toY = scaleOf(yTicks, yLog, BOTTOM, TOP);
  const text = (x: number, y: number, said: string, anchor: string, style = '') =>
    `<text x="${x}" y="${y}" text-anchor="${anchor}" style="${style}">${said}</text>`;
  const grid = yTicks.map((tick) => {
    const y = toY(tick);
    return `<path class="grid" d="M${LEFT} ${y}H${RIGHT}"/>${text(LEFT - 6, y + 4, tick.toLocaleString('en'), 'end')}`;
  });
  const lines = SHOWN.map((name, place) => {
    const points = at.flatMap((x) => {
      const y = spreadOf(rows, row(x), name)?.median;
      return y === undefined ? [] : `${toX(x)} ${toY(y)}`;
    });
    if (points.length === 0) return '';
    const dots = `<path d="M${points.join('h0M')}h0" stroke-width="6" stroke-linecap="round"/>`;
    const line = `<path d="M${points.join('L')}"/>${dots}`;
    const legend = text(LEFT + 8 + place * 64, TOP + 14, name, 'start', `fill:${COLOURS[name]}`);
    return `<g fill="none" stroke="${COLOURS[name]}" stroke-width="2">${line}</g>${legend}`;
  });
  const ticks = xTicks.map((tick) => text(toX(tick), BOTTOM + 16, tick.toLocaleString('en'), 'middle'));
  const head = text(LEFT, 18, title, 'start', 'font-weight:bold');
  return [head, text(220, HEIGHT - 8, xLabel, 'middle'), ...grid, ...ticks, ...lines].join('\n');
}

/** Values beyond the ends of an axis are drawn at its ends. */
function scaleOf(
  ticks: readonly number[],
  log: boolean,
  from: number,
  to: number,
): (value: number) => number {
  const [least = 0, most = 1] = [ticks[0], ticks.at(-1)];
  const scale = (value: number) => (log ? Math.log(value) : value);
  return (value) => {
    const within = scale(Math.min(Math.max(value, least), most));
    return Math.round(from + ((to - from) * (within - scale(least))) / (scale(most) - scale(least)));
  };
}
