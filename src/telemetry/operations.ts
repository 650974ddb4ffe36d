import type { Clock, Commanded, EventLevel, LogLevel } from '../ports.ts';
import { listed } from '../util/text.ts';
import { boundLists, momentText } from './events.ts';
import type { Log, RecentEvents } from './log.ts';
import type { Metrics } from './metrics.ts';

/** What made the daemon read its configuration again: SIGHUP, an operator's command, or a look that found it changed. */
export type ReloadTrigger = 'signal' | 'command' | 'poll';

export interface OperationsOptions {
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'reloadSucceeded' | 'reloadFailed' | 'controlRefused'>;
  readonly recent: Pick<RecentEvents, 'add'>;
  readonly clock: Clock;
}

export type Operations = ReturnType<typeof createOperations>;

const REFUSALS_QUIET_MS = 60_000;
/** More mistakes than this are counted in the sentence; the line's fields have the first twenty. */
const SAID_PROBLEMS = 5;

const TRIGGER = { signal: 'SIGHUP', command: 'an operator asked', poll: 'it has changed' } as const;

/** Tells log, metrics and recent events of what operators do: what comes from outside and is no notice of the core. */
export function createOperations({ log, metrics, recent, clock }: OperationsOptions) {
  const { logger } = log;
  let rejected: string | null = null;
  const refusals = new Map<string, { readonly saidMs: number; more: number }>();
  const say = (event: string, given: object, msg: string, level: EventLevel = 'info'): void => {
    const fields = boundLists({ ...given });
    recent.add({ level, event, market: null, msg, fields }, clock.now());
    logger[level]({ event, ...fields }, msg);
  };
  const readWell = (event: string, trigger: ReloadTrigger, hash: string, what: string) => {
    rejected = null;
    metrics.reloadSucceeded(hash);
    say(event, { trigger, hash }, `The configuration was read again (${TRIGGER[trigger]})${what}`);
  };
  return {
    /** The new configuration is in force. `hash`: its digest in hexadecimal digits. */
    reloadApplied: (trigger: ReloadTrigger, hash: string) =>
      readWell('reload-applied', trigger, hash, ', and the new one is in force.'),
    /** What was read is what is in force. */
    reloadUnchanged: (trigger: ReloadTrigger, hash: string) =>
      readWell('reload-unchanged', trigger, hash, ': it is the one that is in force.'),
    /** Nothing was changed; one sentence for each mistake. */
    reloadRejected(trigger: ReloadTrigger, problems: readonly string[]): void {
      metrics.reloadFailed();
      const mistakes = problems.join('\n');
      const again = trigger === 'poll' && mistakes === rejected;
      rejected = mistakes;
      const text = describeRejection(trigger, problems);
      say('reload-rejected', { trigger, problems, again }, text, again ? 'debug' : 'error');
    },
    /** An operator has seen that orders of these markets were, or may have been, cancelled. */
    acknowledged(markets: readonly string[]): void {
      const text = `An operator has seen that orders were cancelled: ${listed(markets)}.`;
      say('cancellation-acknowledged', { markets }, text);
    },
    controlListening: (address: string) =>
      say('control-listening', { address }, `Beats and commands: ${address}`),
    /** An operator's command begins. */
    commanded: (command: Commanded) => say('operator-command', { ...command }, describeCommand(command)),
    /** Counts every refusal; the first of a reason in a minute is a line. */
    controlRefused(said: string): void {
      const reason = metrics.controlRefused(said);
      const { monoMs } = clock.now();
      const before = refusals.get(reason);
      if (before !== undefined && monoMs - before.saidMs < REFUSALS_QUIET_MS) {
        before.more += 1;
        return;
      }
      refusals.set(reason, { saidMs: monoMs, more: 0 });
      const more = before?.more ?? 0;
      const others = more > 0 ? `, and ${more} more since the last line about it` : '';
      const text = `A request to the control listener was refused (${reason})${others}.`;
      say('control-refused', { reason, more }, text, 'warn');
    },
    /** Changes the level and says so, in whichever of the two levels shows it; Unix milliseconds of its end, or null. */
    setLogLevel(to: LogLevel, untilWallMs: number | null): void {
      const from = log.level();
      const { wallMs } = clock.now();
      const until = untilWallMs === null ? 'from now on' : `until ${momentText(untilWallMs, wallMs)}`;
      const isShownBefore = logger.isLevelEnabled('info');
      if (!isShownBefore) log.setLevel(to);
      say('log-level-changed', { from, to, untilWallMs }, `The log level is ${to} ${until}; it was ${from}.`);
      if (isShownBefore) log.setLevel(to);
    },
  };
}

function describeCommand({ command, markets, reason, sender, via }: Commanded): string {
  const isForMarkets = command !== 'reload' && command !== 'log-level';
  const which = markets === null ? ', all markets' : ` ${listed(markets)}`;
  const why = reason === null ? 'No reason was given.' : `Reason: ${JSON.stringify(reason)}.`;
  const who =
    sender === null ? 'The sender does not say who it is' : `Sender: ${JSON.stringify(sender)}, as it says`;
  return `An operator's command: ${command}${isForMarkets ? which : ''}. ${why} ${who}; over ${via}.`;
}

function describeRejection(trigger: ReloadTrigger, problems: readonly string[]): string {
  const { length } = problems;
  const said =
    length === 1
      ? `1 mistake: ${problems[0]}`
      : `${length} mistakes: ${problems
          .slice(0, SAID_PROBLEMS)
          .map((problem, index) => `(${index + 1}) ${problem}`)
          .join(' ')}`;
  const others = length > SAID_PROBLEMS ? ` and ${length - SAID_PROBLEMS} more` : '';
  return (
    `THE NEW CONFIGURATION IS REJECTED (${TRIGGER[trigger]}): the old one stays in force, nothing has changed. ` +
    said +
    others
  );
}
