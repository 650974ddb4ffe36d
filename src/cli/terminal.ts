import { Help } from 'commander';
import type { Edge } from './edge.ts';

/** What a piece of text means; on a terminal its colour. */
export type Tone = 'ok' | 'warn' | 'bad' | 'idle' | 'strong';

const COLOURS: Readonly<Record<Tone, string>> = { ok: '32', warn: '33', bad: '31', idle: '2', strong: '1' };

/** A piece of a line in the colour of its tone. `paint` takes the colour off again where none is wanted. */
export const toned = (text: string, tone: Tone | null) =>
  tone === null || text.trim() === '' ? text : `\u001b[${COLOURS[tone]}m${text}\u001b[0m`;

/** What `toned` puts before and after a text. */
const COLOUR = /(\p{Cc}\[\d+m)/gu;

/** A column of a table: its title, its place, and what it says of a row in which tone. */
export type Column<Row> = readonly [
  title: string,
  /** `keep`: the higher, the longer it stays in a narrow table; left out: always. `cut`: its texts may be cut for that. */
  shape: { readonly right?: boolean; readonly keep?: number; readonly cut?: boolean },
  textOf: (row: Row) => string,
  toneOf?: (row: Row) => Tone | null,
];

const GAP = '  ';
/** How narrow a column may be made by cutting its texts. */
const LEAST = 10;

/** Titles and rows: as many columns that say something as fit into `width`; the last are cut first. */
export function layOut<Row>(rows: readonly Row[], width: number, columns: readonly Column<Row>[]): string[] {
  let kept = columns
    .map(([title, { right, keep = Number.POSITIVE_INFINITY, cut }, textOf, toneOf]) => {
      const cells = rows.map((row) => ({ text: textOf(row), tone: toneOf?.(row) ?? null }));
      const wide = cells.reduce((most, { text }) => Math.max(most, lengthOf(text)), title.length);
      const least = cut === true ? Math.min(wide, LEAST) : wide;
      return { cells: [{ text: title, tone: 'idle' as const }, ...cells], wide, least, right, keep };
    })
    .filter(({ cells }) => cells.slice(1).some(({ text }) => text !== ''));
  const excess = (of: 'wide' | 'least') =>
    kept.reduce((sum, one) => sum + one[of], GAP.length * (kept.length - 1)) - width;
  while (excess('least') > 0) {
    const weakest = Math.min(...kept.map(({ keep }) => keep));
    if (weakest === Number.POSITIVE_INFINITY) break;
    kept = kept.filter(({ keep }) => keep !== weakest);
  }
  for (const one of kept.toReversed()) one.wide = Math.max(one.least, one.wide - Math.max(0, excess('wide')));
  const lines = kept.map(({ cells, wide, right }) =>
    cells.map(({ text, tone }) => {
      const space = ' '.repeat(Math.max(0, wide - lengthOf(text)));
      const shown = paint(text, false, wide);
      return toned(right === true ? space + shown : shown + space, tone);
    }),
  );
  return ['', ...rows].map((_row, at) => lines.map((column) => column[at]).join(GAP));
}

const lengthOf = (text: string) => Array.from(text).length;

/** A line as it is written: cut off at `width` characters, without white space at its end, coloured where asked for. */
export function paint(line: string, colour: boolean, width = Number.POSITIVE_INFINITY): string {
  const whole = lengthOf(line.replaceAll(COLOUR, '').trimEnd());
  let room = whole > width ? width - 1 : whole;
  const cut = line.split(COLOUR).map((part, at) => {
    // Every other part is a colour.
    if (at % 2 === 1) return colour ? part : '';
    const shown = Array.from(part).slice(0, room);
    room -= shown.length;
    return shown.join('');
  });
  return cut.join('') + (whole > width ? '…' : '');
}

/** Colours are for terminals, and for nobody who has set NO_COLOR (no-color.org). */
export function wantsColour({ screen, env }: Edge): boolean {
  return screen !== undefined && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
}

/** Blocks where the terminal can show them, which is to be expected unless its locale says otherwise. */
export function barFor(env: Edge['env']): { readonly full: string; readonly empty: string } {
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || 'UTF-8';
  const blocks = /utf-?8/i.test(locale) && env['TERM'] !== 'dumb' && env['TERM'] !== 'linux';
  return blocks ? { full: '█', empty: '░' } : { full: '#', empty: '.' };
}

export const CLEAR_LINE = '\r\u001b[K';
const REDRAW_MS = 200;
const REPEAT_MS = 2000;
const WHO_WIDTH = 10;
const TIME_WIDTH = 8;

export type Timeline = ReturnType<typeof createTimeline>;

/** Tells a story line by line, each with who speaks and the seconds since its begin. */
export function createTimeline(edge: Edge) {
  const { screen, clock } = edge;
  const startedMs = clock.now().monoMs;
  const colour = wantsColour(edge);
  let meteredMs = Number.NEGATIVE_INFINITY;
  const columns = () => screen?.size().columns ?? Number.POSITIVE_INFINITY;
  const stamp = () => `${((clock.now().monoMs - startedMs) / 1000).toFixed(1).padStart(TIME_WIDTH - 4)} s  `;
  const lineOf = (time: string, who: string, text: string, tone: Tone | null) =>
    toned(time, 'idle') + toned(who.padEnd(WHO_WIDTH), 'strong') + toned(text, tone);
  function out(line: string): void {
    screen?.write(CLEAR_LINE);
    edge.out(paint(line, colour));
  }
  function say(who: string, text: string, tone: Tone | null = null): void {
    const [first = '', ...others] = wrap(text, columns() - TIME_WIDTH - WHO_WIDTH);
    out(lineOf(stamp(), who, first, tone));
    for (const part of others) out(lineOf(' '.repeat(TIME_WIDTH), '', part, tone));
    meteredMs = clock.now().monoMs;
  }
  const speaker = (who: string) => (text: string, tone?: Tone) => say(who, text, tone);
  return {
    /** Lines without time, set off from those before: a title, or closing words. */
    title(...texts: readonly string[]): void {
      out('');
      for (const part of texts.flatMap((text) => wrap(text, columns()))) out(toned(part, 'strong'));
    },
    exchange: speaker('Exchange'),
    daemon: speaker('Daemon'),
    bot: speaker('Bot'),
    demo: speaker('Demo'),
    /** Shows what goes on between two lines: redrawn in place on a terminal, a line every few seconds elsewhere. */
    meter(who: string, text: () => string): void {
      const { monoMs } = clock.now();
      if (monoMs - meteredMs < (screen === undefined ? REPEAT_MS : REDRAW_MS)) return;
      if (screen === undefined) return say(who, text());
      meteredMs = monoMs;
      // A full line would make the cursor go on to the next one, where it cannot be cleared any more.
      screen.write(CLEAR_LINE + paint(lineOf(stamp(), who, text(), null), colour, columns() - 1));
    },
  };
}

const wrap = (text: string, width: number) => new Help().boxWrap(text, width).split('\n');
