import type { Clock } from '../ports.ts';
import { CommandError } from './command-error.ts';
import type { ControlClient } from './control-client.ts';
import { type Edge, EXIT, type ExitCode } from './edge.ts';
import { describeChanges } from './status-changes.ts';
import type { Look, SeenStatus } from './status-document.ts';
import { renderStatus, seconds } from './status-table.ts';
import { barFor, cells, type Line, paint, wantsColour } from './table.ts';

const EVERY_MS = 1000;

export interface Watch {
  readonly edge: Edge;
  readonly clock: Clock;
  readonly client: ControlClient;
  /** Throws a `CommandError` where there is no status to be had. */
  readonly look: () => Promise<Look>;
  readonly json: boolean;
}

/** What a watcher is shown, look by look. */
interface Display {
  readonly show: (look: Look) => void;
  readonly lost: (why: string) => void;
  readonly end: () => void;
}

/**
 * Looks every second until SIGINT or SIGTERM, or until nobody reads any more, and ends with 0. A daemon that is not
 * there at the first look ends it; one that is lost later is announced, and it goes on trying.
 */
export async function watchStatus(watch: Watch): Promise<ExitCode> {
  const { edge, clock, client, look } = watch;
  const ended = createEnding(edge, client);
  const display = watch.json
    ? jsonLines(edge)
    : edge.screen === undefined
      ? changeLines(watch)
      : screen(watch, edge.screen);
  try {
    for (let looks = 0; !ended.now() && edge.readerGone?.() !== true; looks += 1) {
      const startedMs = clock.now().monoMs;
      try {
        const seen = await look();
        if (!ended.now()) display.show(seen);
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        if (ended.now()) break;
        if (looks === 0) throw error;
        display.lost(error.message);
      }
      await ended.orAfter(clock, EVERY_MS - (clock.now().monoMs - startedMs));
    }
    return EXIT.ok;
  } finally {
    display.end();
    ended.forget();
  }
}

interface Ending {
  readonly now: () => boolean;
  /** Resolves after so long, or at once when the end has come. */
  readonly orAfter: (clock: Clock, delayMs: number) => Promise<void>;
  readonly forget: () => void;
}

function createEnding(edge: Edge, client: ControlClient): Ending {
  let isOver = false;
  let wake: () => void = () => {};
  const end = () => {
    isOver = true;
    client.close();
    wake();
  };
  const cancels = (['SIGINT', 'SIGTERM'] as const).map((signal) => edge.onSignal(signal, end));
  return {
    now: () => isOver,
    orAfter: (clock, delayMs) =>
      new Promise((resolve) => {
        if (isOver) {
          resolve();
          return;
        }
        const cancel = clock.after(delayMs, resolve);
        wake = () => {
          cancel();
          resolve();
        };
      }),
    forget: () => {
      for (const cancel of cancels) cancel();
    },
  };
}

function jsonLines(edge: Edge): Display {
  let isLost = false;
  return {
    show({ answer }) {
      isLost = false;
      edge.out(answer.text.trimEnd());
    },
    lost(why) {
      if (!isLost) edge.err(`killswitchd status: ${why}; goes on trying`);
      isLost = true;
    },
    end: () => {},
  };
}

function changeLines({ edge, clock }: Watch): Display {
  let before: SeenStatus | null = null;
  let isLost = false;
  const say = (text: string) => edge.out(`${edge.isoTime(clock.now().wallMs)} ${text}`);
  return {
    show({ seen }) {
      if (isLost) say('The daemon answers again.');
      isLost = false;
      for (const change of describeChanges(before, seen)) say(change);
      before = seen;
    },
    lost(why) {
      if (!isLost) say(`Lost the daemon: ${why}; goes on trying.`);
      isLost = true;
    },
    end: () => {},
  };
}

const HOME = '\u001b[H';
const CLEAR_ALL = '\u001b[2J';
const CLEAR_REST_OF_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';

function screen({ edge, clock, client }: Watch, terminal: NonNullable<Edge['screen']>): Display {
  let last: Look | null = null;
  let heardMs = clock.now().monoMs;
  let drawn = false;
  const draw = (head: readonly Line[]) => {
    const { columns, rows } = terminal.size();
    const room = Math.max(1, rows - 1);
    const view = { width: columns, bar: barFor(edge.env), at: client.at };
    const frame = last === null ? [] : renderStatus(last.seen, { ...view, limit: 0 });
    // Titles take a line, and so do the markets that are left out, which the frame counts where there are any.
    const limit = Math.max(1, room - head.length - frame.length - 1);
    const lines = [...head, ...(last === null ? [] : renderStatus(last.seen, { ...view, limit }))];
    const text = lines
      .slice(0, room)
      .map((line) => `${paint(line, columns, wantsColour(edge))}${CLEAR_REST_OF_LINE}\n`)
      .join('');
    terminal.write(`${drawn ? '' : HIDE_CURSOR + CLEAR_ALL}${HOME}${text}${CLEAR_BELOW}`);
    drawn = true;
  };
  return {
    show(look) {
      last = look;
      heardMs = clock.now().monoMs;
      draw([]);
    },
    lost(why) {
      const since = seconds(Math.round((clock.now().monoMs - heardMs) / 1000));
      draw([
        cells('bad', `Lost the daemon ${since} ago, goes on trying. What stands below is old.`),
        cells(null, why),
        [],
      ]);
    },
    end() {
      if (drawn) terminal.write(SHOW_CURSOR);
    },
  };
}
