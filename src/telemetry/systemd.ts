import type { LeftArmed } from '../core/notice.ts';
import type { BotSnapshot, CoreView, MarketView } from '../core/view.ts';
import type { Clock } from '../ports.ts';
import { within } from '../util/pace.ts';
import { counted, plain } from '../util/text.ts';
import { groupLeft } from './events.ts';
import type { Log } from './log.ts';
import type { ServiceManager } from './notify-socket.ts';

export type Supervision = ReturnType<typeof createSupervision>;

/** The status line is at most this old, also where no watchdog asks for more. */
const TELL_EVERY_MS = 5000;
/** The same while a market waits for its timer. Whether one still does is looked at every step, and told at once. */
const WAITING_EVERY_MS = 1000;
/** The manager must hear at least twice per timeout of its watchdog; once more leaves room for a message that is lost. */
const PINGS_PER_WATCHDOG = 3;
/** Each message of a stop asks the manager for so much more time: as long as the loop turns, the stop may take longer. */
const EXTEND_MS = 15_000;
/** Characters of a reason in the status line. */
const LONGEST_REASON = 160;
/** How long the end of the process waits for a manager that is slow to take the last word. */
const LAST_WORD_MS = 2000;

/**
 * `READY=1` with the first step of the keeper: the configuration is right, the listeners are bound, and the loop turns.
 * It does not wait for armed timers: an exchange that is away must not hold up a boot. The status line says what is armed.
 * `WATCHDOG=1` from the keeper's own steps; and more time, step by step, while a stop goes on.
 */
export function createSupervision(options: {
  readonly manager: ServiceManager;
  readonly clock: Clock;
  readonly view: () => CoreView;
  readonly log: Pick<Log, 'logger'>;
}) {
  const { manager, clock, view, log } = options;
  const everyMs = Math.min(TELL_EVERY_MS, (manager.watchdogMs ?? Infinity) / PINGS_PER_WATCHDOG);
  let stage: 'starting' | 'running' | 'stopping' | 'stopped' = 'starting';
  let tellAtMs = Number.NEGATIVE_INFINITY;
  let isWaiting = false;
  let warned = false;

  async function tell(lines: readonly string[], status: string): Promise<void> {
    // A line break in a text of the exchange would begin another message.
    const message = [...lines, `STATUS=${plain(status)}`].join('\n');
    await manager.tell(message).catch((error: Error) => {
      if (warned) return;
      warned = true;
      log.logger.warn({ event: 'notify-failed' }, `The service manager cannot be told: ${error.message}.`);
    });
  }
  const extend = `EXTEND_TIMEOUT_USEC=${EXTEND_MS * 1000}`;

  return {
    /** The keeper took a step. From nowhere else is the watchdog told that the daemon lives: a loop that hangs is silent. */
    turned: (): void => {
      const { monoMs } = clock.now();
      if (stage === 'stopped' || (monoMs < tellAtMs && !isWaiting)) return;
      const seen = view();
      isWaiting = seen.isWaiting();
      if (monoMs < tellAtMs && isWaiting) return;
      tellAtMs = monoMs + Math.min(everyMs, isWaiting ? WAITING_EVERY_MS : TELL_EVERY_MS);
      if (stage === 'stopping') return void tell(['WATCHDOG=1', extend], describeStop(seen));
      void tell(stage === 'starting' ? ['READY=1', 'WATCHDOG=1'] : ['WATCHDOG=1'], describeStatus(seen));
      stage = 'running';
    },
    /** The configuration is read again; `reloaded` follows, whatever came of it. */
    reloading: (): void => {
      if (stage !== 'running') return;
      void tell(['RELOADING=1', `MONOTONIC_USEC=${manager.monotonicUs()}`], 'Reads the configuration again');
    },
    reloaded: (): void => {
      if (stage === 'running') void tell(['READY=1'], describeStatus(view()));
    },
    stopping: (): void => {
      if (stage === 'stopping' || stage === 'stopped') return;
      stage = 'stopping';
      void tell(['STOPPING=1', extend], describeStop(view()));
    },
    /** The stop is over. Resolves once the manager knows which timers may be armed, or has not taken it in time. */
    stopped: async (left: readonly LeftArmed[]): Promise<void> => {
      stage = 'stopped';
      await within(clock, LAST_WORD_MS, tell([extend], describeEnd(left)));
    },
  };
}

function describeStop(seen: CoreView): string {
  const mayFire = seen.markets().filter(({ firesInMs }) => firesInMs !== null).length;
  return `Stopping: ${counted(mayFire, 'timer')} may still be armed`;
}

const waits = ({ wanted, sureMs }: MarketView): boolean => wanted && sureMs === null;

/** The daemon in one line, for `systemctl status`. */
function describeStatus(seen: CoreView): string {
  const markets = seen.markets();
  const configured = markets.filter(({ leaving }) => !leaving);
  const wanted = markets.filter((market) => market.wanted);
  const armed = wanted.flatMap(({ market, sureMs }) => (sureMs === null ? [] : { market, sureMs }));
  const [least] = armed.toSorted((one, other) => one.sureMs - other.sureMs);
  const others =
    wanted.length === configured.length ? '' : `, ${configured.length - wanted.length} not guarded`;
  const slack = least === undefined ? '' : `, least slack ${seconds(least.sureMs)} (${least.market})`;
  const first = wanted.find(waits);
  const why = first?.lastProblem == null ? '' : ` (${first.lastProblem.slice(0, LONGEST_REASON)})`;
  const waiting = first === undefined ? '' : `, bot ${first.bot} waits for ${first.market}${why}`;
  const key = seen.authorised ? '' : 'THE EXCHANGE REFUSES THE API KEY: ';
  const guarded = seen.bots().filter(({ bot }) => configured.some((market) => market.bot === bot));
  return `${key}${armed.length} of ${wanted.length} markets armed${others}${waiting}${slack}, ${describeBots(guarded)}`;
}

/** One that failed, else the bot that was silent for longest. One that said goodbye is silent on purpose. */
function describeBots(bots: readonly BotSnapshot[]): string {
  const silentMs = ({ state, evidenceAgeMs }: BotSnapshot) =>
    state === 'goodbye' ? -1 : state === 'failed' ? Infinity : (evidenceAgeMs ?? Number.MAX_VALUE);
  const [quietest] = bots
    .filter(({ mode }) => mode !== 'none')
    .toSorted((one, other) => silentMs(other) - silentMs(one));
  if (quietest === undefined) return 'no bot is watched';
  const { bot, state, evidenceAgeMs } = quietest;
  if (state === 'failed') return `${bot} has failed`;
  if (state === 'goodbye') return `${bot} said goodbye`;
  if (evidenceAgeMs === null) return `no sign of ${bot} yet`;
  const gave = state === 'stale' ? 'is silent, its last sign' : 'gave a sign';
  return `${bot} ${gave} ${seconds(evidenceAgeMs)} ago`;
}

function describeEnd(left: readonly LeftArmed[]): string {
  const [worst] = groupLeft(left);
  if (worst === undefined) return 'Stopped: no timer is armed';
  return `Stopped. ${worst.before}: ${counted(worst.timers.length, 'timer')}, see the journal`;
}

function seconds(ms: number): string {
  return `${Math.floor(ms / 1000)} s`;
}
