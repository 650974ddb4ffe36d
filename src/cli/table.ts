import type { Edge } from './edge.ts';

/** What a text means; on a terminal its colour. */
export type Tone = 'ok' | 'warn' | 'bad' | 'idle' | 'strong';

export interface Piece {
  readonly text: string;
  readonly tone?: Tone | null;
}

/** One line, piece by piece. */
export type Line = readonly Piece[];

export interface Column {
  readonly title: string;
  /** One per row. */
  readonly texts: readonly string[];
  readonly tones: readonly (Tone | null)[] | null;
  readonly right: boolean;
  /** The higher, the longer it stays where the width does not do for all. 100 and more stays always. */
  readonly keep: number;
  /** How narrow it may be made by cutting its texts; null where they are shown whole. */
  readonly least: number | null;
}

const GAP = '  ';
const ALWAYS = 100;

/** A line of one piece. */
export function cells(tone: Tone | null, text: string): Line {
  return [{ text, tone }];
}

/** Title and rows, with as many of the columns as fit into `width` characters. */
export function layOut(columns: readonly Column[], width: number): Line[] {
  const fitting = fit(columns, width);
  const title: Line = fitting.map(({ column, wide }, index) => ({
    text: gap(index) + pad(column.title, wide, column.right),
    tone: 'idle',
  }));
  const rows = (columns[0]?.texts ?? []).map(
    (_, row): Line =>
      fitting.flatMap(({ column, wide }, index) => [
        { text: gap(index) },
        { text: pad(column.texts[row] ?? '', wide, column.right), tone: column.tones?.[row] ?? null },
      ]),
  );
  return [title, ...rows];
}

interface Fitted {
  readonly column: Column;
  readonly wide: number;
}

function fit(columns: readonly Column[], width: number): readonly Fitted[] {
  let kept = columns.map((column) => ({ column, full: widest(column) }));
  const least = ({ column, full }: (typeof kept)[number]) => Math.min(full, column.least ?? full);
  const total = (of: (one: (typeof kept)[number]) => number) =>
    kept.reduce((sum, one) => sum + of(one), GAP.length * (kept.length - 1));
  while (total(least) > width) {
    const weakest = Math.min(...kept.map(({ column }) => column.keep));
    if (weakest >= ALWAYS) break;
    kept = kept.filter(({ column }) => column.keep !== weakest);
  }
  // From the right: a note is cut before a market's name is.
  let excess = total(({ full }) => full) - width;
  const fitted: Fitted[] = [];
  for (const one of kept.toReversed()) {
    const wide = excess > 0 ? Math.max(least(one), one.full - excess) : one.full;
    excess -= one.full - wide;
    fitted.unshift({ column: one.column, wide });
  }
  return fitted;
}

function widest({ title, texts }: Column): number {
  return texts.reduce((most, text) => Math.max(most, lengthOf(text)), title.length);
}

function gap(index: number): string {
  return index === 0 ? '' : GAP;
}

function pad(text: string, width: number, right: boolean): string {
  const cut = clip(text, width);
  const space = ' '.repeat(width - lengthOf(cut));
  return right ? space + cut : cut + space;
}

function charactersOf(text: string): string[] {
  return Array.from(text);
}

function lengthOf(text: string): number {
  return charactersOf(text).length;
}

function clip(text: string, width: number): string {
  const characters = charactersOf(text);
  return characters.length <= width ? text : `${characters.slice(0, Math.max(0, width - 1)).join('')}…`;
}

const COLOURS = { ok: '32', warn: '33', bad: '31', idle: '2', strong: '1' } as const satisfies Record<
  Tone,
  string
>;

/** A line as it is written: cut off at `width` characters, without white space at its end, coloured where asked for. */
export function paint(line: Line, width: number, colour: boolean): string {
  const whole = line
    .map(({ text }) => text)
    .join('')
    .trimEnd();
  const isCut = lengthOf(whole) > width;
  let room = isCut ? width - 1 : lengthOf(whole);
  let painted = '';
  for (const { text, tone } of line) {
    const part = charactersOf(text).slice(0, room).join('');
    room -= lengthOf(part);
    painted +=
      colour && tone != null && part.trim() !== '' ? `\u001b[${COLOURS[tone]}m${part}\u001b[0m` : part;
  }
  return isCut ? `${painted}…` : painted;
}

/** Colours are for terminals, and for nobody who has set NO_COLOR (no-color.org). */
export function wantsColour({ terminal, env }: Edge): boolean {
  return terminal && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
}

/** Blocks where the terminal can show them, which is to be expected unless its locale says otherwise. */
export function barFor(env: Edge['env']): { readonly full: string; readonly empty: string } {
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || 'UTF-8';
  const blocks = /utf-?8/i.test(locale) && env['TERM'] !== 'dumb' && env['TERM'] !== 'linux';
  return blocks ? { full: '█', empty: '░' } : { full: '#', empty: '.' };
}
