import type { Clock } from '../ports.ts';
import type { Edge } from './edge.ts';
import { cells, type Line, paint, type Tone, wantsColour } from './table.ts';

/** Tells a story line by line, each with the seconds since its begin. */
export interface Timeline {
  /** Lines without time, set off from those before: a title, or closing words. */
  readonly title: (...texts: readonly string[]) => void;
  readonly say: (who: string, text: string, tone?: Tone) => void;
  /** What goes on between two lines: redrawn in place on a terminal, a line every few seconds elsewhere. */
  readonly meter: (who: string, text: () => string) => void;
}

const CLEAR_LINE = '\r\u001b[K';
const REDRAW_MS = 200;
const REPEAT_MS = 2000;
const WHO_WIDTH = 10;
const TIME_WIDTH = 8;

export function createTimeline(edge: Edge, clock: Clock): Timeline {
  const { screen } = edge;
  const startedMs = clock.now().monoMs;
  const colour = wantsColour(edge);
  let meteredMs = Number.NEGATIVE_INFINITY;
  let drawn = false;

  function out(line: Line): void {
    if (drawn) screen?.write(CLEAR_LINE);
    drawn = false;
    edge.out(paint(line, Number.POSITIVE_INFINITY, colour));
  }
  function stamp(): string {
    return `${((clock.now().monoMs - startedMs) / 1000).toFixed(1).padStart(TIME_WIDTH - 4)} s  `;
  }
  function say(who: string, text: string, tone: Tone | null = null): void {
    const width = (screen?.size().columns ?? Number.POSITIVE_INFINITY) - TIME_WIDTH - WHO_WIDTH;
    wrap(text, width).forEach((part, index) => {
      const head = index === 0 ? stamp() : ' '.repeat(TIME_WIDTH);
      const name = (index === 0 ? who : '').padEnd(WHO_WIDTH);
      out([
        { text: head, tone: 'idle' },
        { text: name, tone: 'strong' },
        { text: part, tone },
      ]);
    });
    meteredMs = clock.now().monoMs;
  }
  return {
    title(...texts) {
      out([]);
      const width = screen?.size().columns ?? Number.POSITIVE_INFINITY;
      for (const part of texts.flatMap((text) => wrap(text, width))) out(cells('strong', part));
    },
    say,
    meter(who, text) {
      const { monoMs } = clock.now();
      if (monoMs - meteredMs < (screen === undefined ? REPEAT_MS : REDRAW_MS)) return;
      if (screen === undefined) {
        say(who, text());
        return;
      }
      meteredMs = monoMs;
      const line: Line = [
        { text: stamp(), tone: 'idle' },
        { text: who.padEnd(WHO_WIDTH), tone: 'strong' },
        { text: text() },
      ];
      // A full line would make the cursor go on to the next one, where it cannot be cleared any more.
      screen.write(CLEAR_LINE + paint(line, screen.size().columns - 1, colour));
      drawn = true;
    },
  };
}

/** Lines of at most `width` characters, broken between words. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && longer.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = longer;
    }
  }
  return [...lines, line];
}
