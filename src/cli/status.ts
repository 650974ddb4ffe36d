import { type Command, Option } from 'commander';
import {
  lookAtOnce,
  nameOf,
  rankOf,
  runsDown,
  sayArmedAgain,
  sayCancelled,
  sayCount,
  sayProblem,
  sayRemaining,
  sayRunsDown,
  saySeconds,
  sayTime,
  sayUnguarded,
  stateOfBase,
  stateOfBot,
  summarise,
  toneOf,
} from '../operator/page-words.ts';
import type { MarketStatus, StatusDocument } from '../operator/status.ts';
import { isoTime } from '../util/text.ts';
import { addReadingFlags, type ControlFlags, findReadable } from './control-address.ts';
import { type ControlClient, createControlClient, refusal } from './control-client.ts';
import { CommandError, type Edge, EXIT, onStopSignal, pause } from './edge.ts';
import type { Given } from './flags.ts';
import { type Column, layOut, paint, toned, wantsColour } from './terminal.ts';

type Flags = ControlFlags & Given<'web', 'json' | 'watch' | 'all'>;

const SHOWN = 40;
const ANSWER_WITHIN_MS = 10_000;
const EVERY_MS = 1000;

/** `status`: what the running daemon says of itself. Ends with 0 whatever that is. */
export function register(program: Command, edge: Edge): void {
  const all = new Option('--all', `all markets instead of the ${SHOWN} worst of a longer list`);
  addReadingFlags(
    program
      .command('status')
      .description('show what the running daemon does: every market, its timer, and what a stop would do')
      .option('--json', 'the status document as JSON')
      .option('--watch', 'go on until Ctrl-C: redraw every second on a terminal, else a line per change')
      .addOption(all.conflicts('watch')),
  ).action(async (flags: Flags) => {
    const find = async () => createControlClient(await findReadable(flags, edge.env), edge);
    if (flags.watch === true) return watch(find, flags, edge);
    const client = await find();
    const { text, seen } = await lookAt(client);
    if (flags.json === true) return edge.out(text.trimEnd());
    const width = edge.screen?.size().columns ?? Number.POSITIVE_INFINITY;
    const limit = flags.all === true ? Number.POSITIVE_INFINITY : SHOWN;
    // Only the table adapts its columns: a sentence is better wrapped than cut.
    for (const line of renderStatus(seen, client.at, width, limit)) edge.out(paint(line, wantsColour(edge)));
  });
}

/** Asks for the status once; throws a `CommandError` where there is none to be had. */
export async function lookAt(client: ControlClient) {
  const path = client.kind === 'web' ? '/api/v1/status' : '/v1/status';
  const answer = await client.ask(path, ANSWER_WITHIN_MS);
  const { said, text, status } = answer;
  const isThere = (key: string) => Array.isArray(said?.[key]);
  const lists = ['markets', 'bots', 'bases', 'notReady', 'cancellations', 'whatAStopWouldDo'];
  if (status !== 200 || !lists.every(isThere)) throw refusal(answer, client.at);
  return { text, seen: said as unknown as StatusDocument };
}

/**
 * Looks every second until SIGINT or SIGTERM, or until nobody reads any more, and ends with 0. A daemon that is not
 * there at the first look ends it; one that is lost later is announced, and it goes on trying.
 */
async function watch(find: () => Promise<ControlClient>, { json }: Flags, edge: Edge): Promise<void> {
  onStopSignal(edge, () => edge.exitNow(EXIT.ok));
  let client = await find();
  const tell = (text: string) => edge.out(`${isoTime(edge.clock.now().wallMs)} ${text}`.trimEnd());
  let before: ReadonlyMap<string, string> = new Map();
  /** Redraws the status on a terminal; elsewhere writes what is different from the last look, a line each. */
  const show = ({ text, seen }: Awaited<ReturnType<typeof lookAt>>) => {
    if (json === true) return edge.out(text.trimEnd());
    if (edge.screen !== undefined) return redraw(seen, client.at, edge.screen, wantsColour(edge));
    const facts = describeFacts(seen);
    // The headline may repeat another fact: each sentence is written once.
    const changed = [...facts].filter(([key, fact]) => before.get(key) !== fact);
    for (const fact of new Set(changed.map(([, fact]) => fact))) tell(fact);
    for (const key of before.keys()) if (!facts.has(key)) tell(`${key}: no longer there`);
    before = facts;
  };
  let lost = false;
  for (let looks = 0; !edge.readerGone(); looks += 1) {
    try {
      // Its token or address may have been changed.
      if (lost) client = await find();
      const look = await lookAt(client);
      if (lost && json !== true) tell('The daemon answers again.');
      lost = false;
      show(look);
    } catch (error) {
      if (!(error instanceof CommandError) || looks === 0) throw error;
      const text = `Lost the daemon: ${error.message}; goes on trying.`;
      if (!lost && json === true) edge.err(`killswitchd status: ${text}`);
      else if (!lost) tell(text);
      lost = true;
    }
    await pause(edge.clock, EVERY_MS);
  }
}

const CLEAR_SCREEN = '\u001b[H\u001b[2J';

function redraw(seen: StatusDocument, at: string, screen: NonNullable<Edge['screen']>, colour: boolean) {
  const { columns, rows } = screen.size();
  const frame = renderStatus(seen, at, columns, 0).length;
  const lines = renderStatus(seen, at, columns, Math.max(1, rows - frame - 2)).slice(0, rows - 1);
  screen.write(`${CLEAR_SCREEN}${lines.map((line) => `${paint(line, colour, columns)}\n`).join('')}`);
}

const REASONS_SHOWN = 3;
const NAMES_SHOWN = 5;

/** A status document as lines: what it is and how it is, `limit` markets in `width`, and what a stop would do. */
function renderStatus(seen: StatusDocument, at: string, width: number, limit: number): string[] {
  const { markets, now } = seen;
  const cancelled = new Set(seen.cancellations.map(({ market }) => market));
  const rank = (one: MarketStatus) => rankOf(one, cancelled.has(one.market), now);
  const isLong = markets.length > limit;
  const ranked = isLong ? markets.toSorted((one, other) => rank(one) - rank(other)) : markets;
  const shown = ranked.slice(0, limit);
  const leftOut = markets.length - shown.length;
  const left = `${sayCount(leftOut)} more ${leftOut === 1 ? 'market is' : 'markets are'} left out`;
  const stop = seen.whatAStopWouldDo.map(({ does, count, markets }) => {
    return `  ${does}: ${nameMarkets(markets, count)}`;
  });
  if (stop.length > 0) stop.unshift(`A stop now (policy ${seen.shutdownPolicy}):`);
  return [
    ...describeDaemon(seen, at),
    '',
    ...(shown.length === 0 ? [] : layOut(shown, width, columnsOf(seen))),
    ...(leftOut === 0 ? [] : [toned(`${left}, in no worse state than these; --all shows them.`, 'idle')]),
    '',
    ...stop,
  ];
}

function describeDaemon(seen: StatusDocument, at: string): string[] {
  const { tone, sentence, rest } = summarise(seen, lookAtOnce(seen));
  const [first, ...others] = seen.ready ? [] : seen.notReady.slice(0, REASONS_SHOWN);
  const more = seen.notReady.length - REASONS_SHOWN;
  const shown = seen.cancellations.slice(0, NAMES_SHOWN);
  const unnamed = sayCount(seen.cancellationCount - shown.length, 'more market');
  const only = seen.cancellationCount === 1 ? ` ${shown[0]?.market}` : '';
  const advice = `Check the orders, then: killswitchd ack${only} (without control.listen: restart the daemon)`;
  const states = Object.entries(Object.groupBy(seen.markets, ({ state }) => state)).map(([state, markets]) =>
    toned(`${sayCount(markets.length)} ${state}`, toneOf(state)),
  );
  return [
    `${toned(`killswitchd ${seen.version}`, 'strong')}, up ${seconds(seen.now - seen.startedAt)}, at ${at}`,
    `${toned(`${sentence}.`, tone)}${rest === '' ? '' : ` ${rest}.`}`,
    seen.ready ? toned('Ready', 'ok') : `${toned('Not ready', 'bad')}: ${first ?? 'it does not say why'}`,
    ...others.map((reason) => `  ${reason}`),
    ...(more > 0 ? [`  and ${sayCount(more, 'more reason')}`] : []),
    ...shown.map((one) => toned(`Orders of ${one.market} ${sayCancelled(one, seen.now)}`, 'bad')),
    ...(seen.cancellationCount > shown.length ? [toned(`  and ${unnamed}`, 'bad')] : []),
    ...(seen.cancellationCount > 0 ? [advice] : []),
    ...seen.bases.map((base) => {
      const word = stateOfBase(base);
      const ping = base.pingSeconds === null ? '' : `, ping ${seconds(base.pingSeconds)}`;
      const why = base.lastProblem === null ? '' : `: ${base.lastProblem}`;
      return `Exchange ${base.url}: ${toned(word, toneOf(word))}${word === 'up' ? ping : why}`;
    }),
    `${sayCount(seen.markets.length, 'market')}${states.length === 0 ? '' : ': '}${states.join(', ')}`,
  ];
}

function columnsOf(seen: StatusDocument): readonly Column<MarketStatus>[] {
  const { now } = seen;
  const bots = new Map(seen.bots.map((bot) => [bot.bot, stateOfBot(bot)]));
  const stateOf = (bot: string) => bots.get(bot) ?? '';
  /** How long the timer is surely armed, or until its orders are cancelled. The note has the end of a pause. */
  const leftOf = (market: MarketStatus) =>
    market.hold?.why === 'paused' && !runsDown(market, now)
      ? '–'
      : plainSpaces(sayRemaining(market, lookAtOnce(seen), stateOf(market.bot))[0]);
  const percent = (ratio: number | null) => (ratio === null ? '-' : `${Math.round(ratio * 100)} %`);
  const sayBot = ({ bot }: MarketStatus) =>
    stateOf(bot) === 'alive' ? bot : `${bot} ${stateOf(bot)}`.trimEnd();
  const right = true;
  return [
    ['MARKET', { cut: true }, ({ market }) => market],
    ['STATE', {}, ({ state }) => state, (one) => (runsDown(one, now) ? 'bad' : toneOf(one.state))],
    ['LEFT', { right }, leftOf],
    ['TIMEOUT', { right, keep: 2 }, ({ timeoutSeconds }) => seconds(timeoutSeconds)],
    ['EVERY', { right, keep: 1 }, ({ renewEverySeconds }) => seconds(renewEverySeconds)],
    ['SLACK', { right, keep: 5 }, ({ lastSlackRatio }) => percent(lastSlackRatio)],
    ['BOT', { keep: 6 }, sayBot, ({ bot }) => toneOf(stateOf(bot))],
    ['LAPSES', { right, keep: 7 }, (one) => sayCount(one.lapses), (one) => (one.lapses > 0 ? 'bad' : null)],
    ['FAILED', { right, keep: 4 }, ({ failures }) => sayCount(failures)],
    ['NOTE', { keep: 8, cut: true }, (market) => noteOf(market, now, stateOf(market.bot))],
  ];
}

/** What somebody must know of this market beyond its figures. */
function noteOf(market: MarketStatus, now: number, botState: string): string {
  const { hold, leaving } = market;
  const ends = hold?.untilAt == null ? null : sayTime(hold.untilAt, now);
  const until = ends === null ? 'it is armed' : `${ends}, ${sayArmedAgain(botState)}`;
  const notes = [
    runsDown(market, now) ? sayRunsDown(market, now) : '',
    leaving ? 'no longer configured' : '',
    hold === null ? '' : `${hold.why === 'lapsed' ? 'held after a lapse' : hold.why} until ${until}`,
    sayUnguarded(market, now),
    sayProblem(market, now),
  ];
  return notes.filter((note) => note !== '').join('; ');
}

/** The facts that `--watch` compares: a sentence for each subject, by its name. */
function describeFacts(seen: StatusDocument): ReadonlyMap<string, string> {
  const { bases, bots, cancellations, markets, notReady, now, ready } = seen;
  const whyOf = ({ state, lastProblem }: MarketStatus) =>
    lastProblem === null || state === 'armed' ? '' : `: ${lastProblem}`;
  const facts = new Map([
    ['daemon', `${summarise(seen, lookAtOnce(seen)).sentence}.`],
    ['ready', ready ? 'Ready.' : `Not ready: ${(notReady[0] ?? 'it does not say why').replace(/\.$/, '')}.`],
  ]);
  for (const one of markets) facts.set(one.market, `${one.market}: ${one.state}${whyOf(one)}`);
  for (const one of cancellations)
    facts.set(
      `Cancelled orders of ${one.market}: ${one.why}`,
      `Orders of ${one.market} ${sayCancelled(one, now)}.`,
    );
  for (const bot of bots) facts.set(`bot ${bot.bot}`, `Bot ${bot.bot}: ${stateOfBot(bot)}`);
  for (const base of bases) facts.set(base.url, `Exchange ${base.url}: ${stateOfBase(base)}`);
  return facts;
}

/** `BTC_USDT`, `3 markets (A, B, C)`, `9,000 markets (A, B, C, D, E and 8,995 more)`. */
export function nameMarkets(markets: readonly string[], count: number = markets.length): string {
  if (count === 1 || markets.length === 0) return nameOf(markets[0], count);
  const named = markets.slice(0, count === NAMES_SHOWN + 1 ? count : NAMES_SHOWN);
  const more = count - named.length;
  return `${sayCount(count, 'market')} (${named.join(', ')}${more > 0 ? ` and ${sayCount(more)} more` : ''})`;
}

const plainSpaces = (text: string) => text.replaceAll('\u00a0', ' ');
/** `1.2 s`, `54 s`, `4 min 10 s`. */
const seconds = (value: number) => plainSpaces(saySeconds(Math.max(0, value)));
