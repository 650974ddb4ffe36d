import { type Command, Option } from 'commander';
import { createSystemClock } from '../clock.ts';
import type { StatusDocument } from '../operator/status.ts';
import type { Clock } from '../ports.ts';
import { CommandError, conclude } from './command-error.ts';
import { addControlFlags, type ControlFlags, findReadable } from './control-address.ts';
import { type ControlClient, createControlClient, isRecord, plain, refusal } from './control-client.ts';
import { type Edge, EXIT, type ExitCode } from './edge.ts';
import { describeFacts, renderStatus } from './status-table.ts';
import { cells, paint, wantsColour } from './table.ts';

interface Flags extends ControlFlags {
  readonly web?: string;
  readonly json?: boolean;
  readonly watch?: boolean;
  readonly all?: boolean;
}

/** Markets that are shown without `--all`. */
const SHOWN = 40;
const ANSWER_WITHIN_MS = 10_000;
const EVERY_MS = 1000;

/**
 * `status`: what the running daemon says of itself. Ends with 0 whatever that is, with 69 where no daemon answers, and
 * with 77 where it refuses the token.
 */
export function registerStatus(program: Command, edge: Edge, clock: Clock = createSystemClock()): void {
  addControlFlags(
    program
      .command('status')
      .description('show what the running daemon does: every market, its timer, and what a stop would do')
      .option('--json', 'the status document as JSON')
      .option('--watch', 'go on until Ctrl-C: redraw every second on a terminal, else a line per change')
      .addOption(
        new Option('--all', `all markets instead of the ${SHOWN} worst of a longer list`).conflicts('watch'),
      )
      .option(
        '--web <address>',
        'ask at HOST:PORT of the read-only listener instead of the control listener',
      ),
  ).action((flags: Flags) =>
    conclude('status', edge, async () => {
      const { kind, ...place } = await findReadable(flags, edge.env);
      const client = createControlClient(place, clock);
      const look = () => lookAt(client, kind === 'web' ? '/api/v1/status' : '/v1/status');
      if (flags.watch === true) return await watch({ edge, clock, client, look, json: flags.json === true });
      const { text, seen } = await look();
      if (flags.json === true) edge.out(text.trimEnd());
      else {
        const width = edge.screen?.size().columns ?? Number.POSITIVE_INFINITY;
        const limit = flags.all === true ? Number.POSITIVE_INFINITY : SHOWN;
        // Only the table adapts its columns: a sentence is better wrapped than cut.
        for (const line of renderStatus(seen, { width, limit, at: client.at }))
          edge.out(paint(line, Number.POSITIVE_INFINITY, wantsColour(edge)));
      }
      return EXIT.ok;
    }),
  );
}

interface Look {
  readonly text: string;
  readonly seen: StatusDocument;
}

/** Asks for the status once; throws a `CommandError` where there is none to be had. */
export async function lookAt(client: ControlClient, path = '/v1/status'): Promise<Look> {
  const answer = await client.ask({ method: 'GET', path, withinMs: ANSWER_WITHIN_MS });
  const { json, text, status } = answer;
  const fits =
    status === 200 &&
    isRecord(json) &&
    ['markets', 'bots', 'bases', 'notReady'].every((key) => Array.isArray(json[key]));
  if (!fits) throw refusal(answer, client.at);
  // What an older daemon does not say yet. No text of the daemon may steer the terminal.
  const older = { cancellations: [], cancellationCount: 0, events: [], whatAStopWouldDo: [] };
  const clean = JSON.parse(text, (_key, value: unknown) =>
    typeof value === 'string' ? plain(value) : value,
  ) as object;
  return { text, seen: { ...older, ...clean } as unknown as StatusDocument };
}

interface Watch {
  readonly edge: Edge;
  readonly clock: Clock;
  readonly client: ControlClient;
  readonly look: () => Promise<Look>;
  readonly json: boolean;
}

/**
 * Looks every second until SIGINT or SIGTERM, or until nobody reads any more, and ends with 0. A daemon that is not
 * there at the first look ends it; one that is lost later is announced, and it goes on trying.
 */
async function watch({ edge, clock, client, look, json }: Watch): Promise<ExitCode> {
  let [ended, lost] = [false, false];
  let wake = () => {};
  const end = () => {
    ended = true;
    client.close();
    wake();
  };
  const cancels = (['SIGINT', 'SIGTERM'] as const).map((signal) => edge.onSignal(signal, end));
  const show = json ? ({ text }: Look) => edge.out(text.trimEnd()) : showChanges(edge, clock, client.at);
  const say = (text: string) =>
    json ? edge.err(`killswitchd status: ${text}`) : edge.out(`${edge.isoTime(clock.now().wallMs)} ${text}`);
  try {
    for (let looks = 0; !ended && edge.readerGone?.() !== true; looks += 1) {
      try {
        const seen = await look();
        if (ended) break;
        if (lost && !json) say('The daemon answers again.');
        lost = false;
        show(seen);
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        if (ended) break;
        if (looks === 0) throw error;
        if (!lost) say(`Lost the daemon: ${error.message}; goes on trying.`);
        lost = true;
      }
      await new Promise<void>((resolve) => {
        const cancel = clock.after(EVERY_MS, resolve);
        wake = () => {
          cancel();
          resolve();
        };
        if (ended) wake();
      });
    }
    return EXIT.ok;
  } finally {
    for (const cancel of cancels) cancel();
  }
}

const CLEAR_SCREEN = '\u001b[H\u001b[2J';

/** Redraws the status on a terminal; elsewhere writes what is different from the last look, a line each. */
function showChanges(edge: Edge, clock: Clock, at: string): (look: Look) => void {
  const { screen } = edge;
  if (screen !== undefined) {
    return ({ seen }) => {
      const { columns, rows } = screen.size();
      const view = { width: columns, at };
      const frame = renderStatus(seen, { ...view, limit: 0 }).length;
      const lines = renderStatus(seen, { ...view, limit: Math.max(1, rows - frame - 2) }).slice(0, rows - 1);
      screen.write(
        `${CLEAR_SCREEN}${lines.map((line) => `${paint(line, columns, wantsColour(edge))}\n`).join('')}`,
      );
    };
  }
  let before: ReadonlyMap<string, string> | null = null;
  return ({ seen }) => {
    const facts = describeFacts(seen);
    const last = before;
    const changed = [...facts].filter(([key, fact]) => last === null || last.get(key) !== fact);
    const gone = [...(last?.keys() ?? [])]
      .filter((key) => !facts.has(key))
      .map((key) => `${key}: no longer there`);
    for (const text of [...changed.map(([, fact]) => fact), ...gone])
      edge.out(
        paint(cells(null, `${edge.isoTime(clock.now().wallMs)} ${text}`), Number.POSITIVE_INFINITY, false),
      );
    before = facts;
  };
}
