import { Argument, type Command, Option } from 'commander';
import type { CommandName, Progress } from '../core/events.ts';
import { sayCount } from '../operator/page-words.ts';
import { LOG_LEVELS } from '../ports.ts';
import { isRecord } from '../util/text.ts';
import { addControlFlags, type ControlFlags, findControl } from './control-address.ts';
import { type Answer, type ControlClient, createControlClient, refusal, textsOf } from './control-client.ts';
import { CommandError, type Edge, EXIT, type ExitCode, misconfigured, misuse } from './edge.ts';
import { type Given, offer, readDuration, readWait } from './flags.ts';
import { lookAt, nameMarkets } from './status.ts';
import { CLEAR_LINE } from './terminal.ts';

type Flags = ControlFlags & Given<'wait' | 'for' | 'reason', 'yes' | 'json'>;

/** What the control listener takes in one request. */
const MOST_BYTES = 64 * 1024;
const ANSWER_WITHIN_MS = 10_000;

const UNGUARDED =
  'This deletes the timers of {markets}. The orders stay, and nothing cancels them if the bot dies, until';

/** What each command is for, and what a dangerous one must be confirmed for; `{markets}` stands for the markets. */
const OPERATIONS: Readonly<Record<CommandName, readonly [purpose: string, danger?: string]>> = {
  arm: ['arm markets: also those that were disarmed, tripped, paused, refused, or held after a lapse'],
  disarm: [
    'delete the timers and leave the markets alone until they are armed; the orders stay',
    `${UNGUARDED} the markets are armed again.`,
  ],
  pause: [
    'delete the timers for a while, for planned maintenance; ends by itself',
    `${UNGUARDED} the pause is over.`,
  ],
  resume: ['end a pause before its time'],
  trip: [
    'have the orders cancelled now: timers to 5 s, then left alone until the markets are armed',
    'This has the exchange cancel the orders that the timers of {markets} cover, in about 6 s, and leaves the markets without a timer until they are armed again.',
  ],
};

/** The commands that change something in the running daemon. They return when it has happened in every market. */
export function register(program: Command, edge: Edge): void {
  const markets = new Argument('[markets...]', 'which markets; all of them where none is named');
  const wait = new Option('--wait <seconds>', 'how long to wait for the exchange to confirm it, 0 to 60');
  const reason = new Option('--reason <text>', "why, for the daemon's log: 1 to 200 printable characters");
  const json = new Option('--json', 'the reply as JSON');
  const add = (name: string, purpose: string) => program.command(name).description(purpose);
  const addCommandFlags = (command: Command) =>
    addControlFlags(command.addOption(wait.default('15')).addOption(reason).addOption(json));
  for (const does of Object.keys(OPERATIONS) as CommandName[]) {
    const [purpose, danger] = OPERATIONS[does];
    const command = add(does, purpose).addArgument(markets);
    if (does === 'pause')
      command.requiredOption('--for <duration>', 'for how long: 1s to 24h, such as 90s, 10m or 1.5h');
    if (danger !== undefined) command.option('--yes', 'do not ask; needed where there is no terminal');
    addCommandFlags(command).action((named: readonly string[], flags: Flags) =>
      operate(does, [...new Set(named)], flags, edge),
    );
  }
  const ack = 'say that you have seen whose orders were cancelled; takes it off status and status page';
  addControlFlags(add('ack', ack).addArgument(markets).addOption(reason)).action(
    (named: readonly string[], flags: Flags) => acknowledge(named, flags, edge),
  );
  const reads = 'have the running daemon read its configuration again; a wrong one changes nothing';
  addCommandFlags(add('reload', reads)).action((flags: Flags) => reload(flags, edge));
  const level = add('log-level', "set the level of the running daemon's log, or print the one in force")
    .addArgument(offer(new Argument('[level]', 'which level'), LOG_LEVELS))
    .option('--for <duration>', 'for so long, 1s to 24h; then the configured level is back');
  addControlFlags(level.addOption(reason)).action((named: string | undefined, flags: Flags) =>
    changeLevel(named, flags, edge),
  );
}

/** The body of a request: the markets, for how long, why, and how long to wait. */
const bodyOf = (flags: Flags, markets: readonly string[] = []) => ({
  markets: markets.length === 0 ? undefined : markets,
  forSeconds: flags.for === undefined ? undefined : readDuration(flags.for),
  reason: flags.reason,
  waitSeconds: flags.wait === undefined ? undefined : readWait(flags.wait),
});
type Body = ReturnType<typeof bodyOf>;

const connect = async (flags: Flags, edge: Edge) =>
  createControlClient(await findControl(flags, edge.env), edge);

async function operate(does: CommandName, markets: readonly string[], flags: Flags, edge: Edge) {
  const body = bodyOf(flags, markets);
  const client = await connect(flags, edge);
  const fewer = 'more than fit into one request; name fewer at a time, or none for all of them';
  if (Buffer.byteLength(JSON.stringify(body)) > MOST_BYTES)
    throw misuse(`found ${markets.length} markets, ${fewer}`);
  const [, danger] = OPERATIONS[does];
  if (danger !== undefined && flags.yes !== true) await confirm(danger, markets, client, edge);
  const answer = await carryOut(client, `/v1/${does}`, body, flags, edge);
  const progress = readProgress(answer, client.at);
  if (flags.json !== true && progress.length === 0)
    edge.out('No market is guarded by this daemon: there was nothing to do.');
  edge.finish(reportProgress(does, progress, flags, edge));
}

/** Asks whoever sits at the terminal. Throws where there is nobody, or no yes. */
async function confirm(danger: string, markets: readonly string[], client: ControlClient, edge: Edge) {
  if (edge.ask === undefined)
    throw misuse('nobody can be asked here whether it is meant: add --yes; nothing was changed');
  const guarded = async () => (await lookAt(client)).seen.markets.filter(({ leaving }) => !leaving);
  const meant = markets.length > 0 ? markets : (await guarded()).map(({ market }) => market);
  const named = `${markets.length === 0 && meant.length !== 1 ? 'all ' : ''}${nameMarkets(meant)}`;
  edge.err(`${danger.replace('{markets}', () => named)} The daemon is the one at ${client.at}.`);
  const answer = await edge.ask('Go on? [y/N] ');
  if (answer !== null && /^\s*y(es)?\s*$/i.test(answer)) return;
  throw misuse('not confirmed with yes; nothing was changed');
}

/** Sends a command and waits for the answer; a terminal shows for how long already, and programs get it as it came. */
async function carryOut(client: ControlClient, path: string, body: Body, { json }: Flags, edge: Edge) {
  const { screen, clock } = edge;
  const { waitSeconds = 0 } = body;
  let cancel = () => {};
  const count = (waited: number) => {
    const text = `Waiting for the exchange to confirm it: ${waited} s of at most ${waitSeconds} s`;
    if (waited > 0) screen?.write(`${CLEAR_LINE}${text}`);
    cancel = clock.after(1000, () => count(waited + 1));
  };
  count(0);
  // The daemon answers when its wait is over; a little later it is given up.
  const asked = client.ask(path, waitSeconds * 1000 + ANSWER_WITHIN_MS, body);
  const answer = await asked.finally(() => {
    cancel();
    screen?.write(CLEAR_LINE);
  });
  if (json === true && (answer.said ?? answer.error) !== null) edge.out(answer.text.trimEnd());
  return answer;
}

/** The markets of a reply; throws what the daemon says where it refused the command as a whole. */
function readProgress(answer: Answer, at: string) {
  const markets = answer.said?.['markets'];
  if (!Array.isArray(markets)) throw refusal(answer, at);
  const states = ['done', 'waiting', 'impossible'];
  const isKnown = (entry: unknown) =>
    isRecord(entry) && states.includes(String(entry['state'])) && typeof entry['says'] === 'string';
  if (!markets.every(isKnown)) throw unknownAnswer(at);
  return markets as readonly Progress[];
}

const unknownAnswer = (at: string) =>
  new CommandError(EXIT.internal, `the daemon at ${at} answered in a way unknown to this version`);

/** Prints a sentence per market, those that are not done last and on standard error, and counts them. Returns the exit code. */
function reportProgress(
  what: CommandName | 'reload',
  progress: readonly Progress[],
  { json, wait }: Flags,
  edge: Edge,
): ExitCode {
  const { done = [], waiting = [], impossible = [] } = Object.groupBy(progress, ({ state }) => state);
  if (json !== true) {
    for (const { says } of done) edge.out(says);
    for (const { says } of [...waiting, ...impossible]) edge.err(says);
  }
  const say = ({ length }: readonly Progress[], words: string) => {
    if (length > 0)
      edge.err(`killswitchd ${what}: ${length} of ${sayCount(progress.length, 'market')} ${words}`);
  };
  say(waiting, `not confirmed within ${Number(wait)} s; the daemon goes on trying`);
  const isReload = what === 'reload';
  say(
    impossible,
    isReload ? 'not guarded; the configuration is in force' : 'not done as things stand: see above',
  );
  // A market that cannot be armed before its bot beats is no fault of a reload.
  if (impossible.some(({ refused }) => refused === true || !isReload)) return EXIT.unreachable;
  return waiting.length > 0 ? EXIT.unconfirmed : EXIT.ok;
}

/** Sends a command that waits for no timer. Returns the reply, which says something under `key`. */
async function send(path: string, body: object, key: string, flags: Flags, edge: Edge) {
  const client = await connect(flags, edge);
  const answer = await client.ask(path, ANSWER_WITHIN_MS, body);
  if (answer.said?.[key] === undefined) throw refusal(answer, client.at);
  return answer.said;
}

async function acknowledge(markets: readonly string[], flags: Flags, edge: Edge): Promise<void> {
  const said = await send('/v1/ack', bodyOf(flags, markets), 'acknowledged', flags, edge);
  const [seen, notYet] = [textsOf(said['acknowledged']), textsOf(said['notYet'])];
  if (seen.length > 0) edge.out(`Acknowledged: ${nameMarkets(seen)}.`);
  const until = 'its timer may still stand. Run ack again once it has fired';
  if (notYet.length > 0) edge.out(`Not acknowledged: ${nameMarkets(notYet)}: ${until}.`);
  if (seen.length + notYet.length === 0) edge.out('There was nothing to acknowledge.');
}

async function reload(flags: Flags, edge: Edge): Promise<void> {
  const body = bodyOf(flags);
  const client = await connect(flags, edge);
  const answer = await carryOut(client, '/v1/reload', body, flags, edge);
  const { said, error } = answer;
  if (error?.['code'] === 'config_rejected') {
    const rejected = 'the configuration was not taken over; nothing was changed';
    throw misconfigured([rejected, ...textsOf(error['problems'])].join('\n'));
  }
  if (said === null) throw refusal(answer, client.at);
  const isApplied = said['result'] === 'applied';
  if (!isApplied && said['result'] !== 'unchanged') throw unknownAnswer(client.at);
  const kinds = { added: 'Added', removed: 'Removed', moved: 'Moved to another shard', changed: 'Changed' };
  const changes = Object.entries(kinds).flatMap(([key, what]) => {
    const markets = textsOf(said[key]);
    return markets.length === 0 ? [] : `${what}: ${nameMarkets(markets)}.`;
  });
  if (changes.length === 0) changes.push('Its markets are the same.');
  const told = isApplied
    ? ['The new configuration is in force.', ...changes]
    : ['Nothing has changed: the configuration in force stays.'];
  if (flags.json !== true) for (const line of told) edge.out(line);
  const progress = isApplied && Array.isArray(said['markets']) ? readProgress(answer, client.at) : [];
  const code = reportProgress('reload', progress, flags, edge);
  // The exchange may refuse markets that have not changed, of which nothing was said yet.
  const named = new Set(progress.map(({ market }) => market));
  const others = textsOf(said['refused']).filter((market) => !named.has(market));
  if (others.length === 0) return edge.finish(code);
  const refused = `the exchange refuses ${nameMarkets(others)}: not guarded; killswitchd status says why`;
  edge.err(`killswitchd reload: ${refused}`);
  edge.finish(EXIT.unreachable);
}

async function changeLevel(named: string | undefined, flags: Flags, edge: Edge): Promise<void> {
  // As in `log.level`.
  const level = named === 'trace' ? 'debug' : named;
  const body = { level, ...bodyOf(flags) };
  const inForce = String((await send('/v1/log-level', body, 'level', flags, edge))['level']);
  const [usual, forNow] = ['until it is changed or the daemon ends', 'and then the configured one again'];
  const until = flags.for === undefined ? usual : `for ${flags.for}, ${forNow}`;
  edge.out(level === undefined ? inForce : `The log level is ${inForce} ${until}.`);
}
