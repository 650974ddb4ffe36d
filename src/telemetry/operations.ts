import type { Instant } from '../core/time.ts';
import type { Clock } from '../ports.ts';
import { boundLists, type EventLevel, type EventLine, listed, momentText } from './events.ts';
import type { Log, LogLevel, RecentEvents } from './log.ts';
import type { Metrics } from './metrics.ts';

/** What made the daemon read its configuration again: SIGHUP, an operator's command, or a look that found it changed. */
export type ReloadTrigger = 'signal' | 'command' | 'poll';

/** What comes from outside and is no notice of the core. `hash` is that of the configuration in force. */
export type Operation =
  | { readonly kind: 'reload-applied'; readonly trigger: ReloadTrigger; readonly hash: string }
  | { readonly kind: 'reload-unchanged'; readonly trigger: ReloadTrigger; readonly hash: string }
  | {
      readonly kind: 'reload-rejected';
      readonly trigger: ReloadTrigger;
      readonly problems: readonly string[];
      /** A look that found the same mistakes as the last reload. */
      readonly again: boolean;
    }
  /** An operator has seen that orders of these markets were, or may have been, cancelled. */
  | { readonly kind: 'cancellation-acknowledged'; readonly markets: readonly string[] }
  | {
      readonly kind: 'operator-command';
      readonly command: string;
      /** Null for all of them. */
      readonly markets: readonly string[] | null;
      readonly reason: string | null;
      /** Who the sender says it is. */
      readonly sender: string | null;
      /** The listener, and who can use it. */
      readonly via: string;
    }
  | { readonly kind: 'control-listening'; readonly address: string }
  /** `more`: as many of this reason as were counted without a line since the last one. */
  | { readonly kind: 'control-refused'; readonly reason: string; readonly more: number }
  | {
      readonly kind: 'log-level-changed';
      readonly from: LogLevel;
      readonly to: LogLevel;
      /** Unix milliseconds; null where it does not end by itself. */
      readonly untilWallMs: number | null;
    };

type Commanded = Omit<Extract<Operation, { readonly kind: 'operator-command' }>, 'kind'>;

export interface Operations {
  /** The new configuration is in force. `hash`: its digest in hexadecimal digits. */
  reloadApplied(trigger: ReloadTrigger, hash: string): void;
  /** What was read is what is in force. */
  reloadUnchanged(trigger: ReloadTrigger, hash: string): void;
  /** Nothing was changed; one sentence for each mistake. */
  reloadRejected(trigger: ReloadTrigger, problems: readonly string[]): void;
  acknowledged(markets: readonly string[]): void;
  controlListening(address: string): void;
  /** An operator's command that begins. */
  commanded(command: Commanded): void;
  /** Counts every refusal; the first of a reason in a minute is a line. */
  controlRefused(reason: string): void;
  /** Changes the level and says so, in whichever of the two levels shows it; Unix milliseconds of its end, or null. */
  setLogLevel(level: LogLevel, untilWallMs: number | null): void;
}

export interface OperationsOptions {
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'reloadSucceeded' | 'reloadFailed' | 'controlRefused'>;
  readonly recent: Pick<RecentEvents, 'add'>;
  readonly clock: Clock;
}

const REFUSALS_QUIET_MS = 60_000;
/** More mistakes than this are counted in the sentence; the line's fields have the first twenty. */
const SAID_PROBLEMS = 5;

const TRIGGER = { signal: 'SIGHUP', command: 'an operator asked', poll: 'it has changed' } as const;

/** Tells log, metrics and recent events of what operators do. */
export function createOperations({ log, metrics, recent, clock }: OperationsOptions): Operations {
  const { logger } = log;
  let rejected: string | null = null;
  const refusals = new Map<string, { readonly saidMs: number; more: number }>();
  const say = (operation: Operation): void => {
    const now = clock.now();
    const line = describeOperation(operation, now);
    recent.add(line, now);
    logger[line.level]({ event: line.event, ...line.fields }, line.msg);
  };
  const readWell = (kind: 'reload-applied' | 'reload-unchanged', trigger: ReloadTrigger, hash: string) => {
    rejected = null;
    metrics.reloadSucceeded(hash);
    say({ kind, trigger, hash });
  };
  return {
    reloadApplied: (trigger, hash) => readWell('reload-applied', trigger, hash),
    reloadUnchanged: (trigger, hash) => readWell('reload-unchanged', trigger, hash),
    reloadRejected(trigger, problems) {
      metrics.reloadFailed();
      const mistakes = problems.join('\n');
      say({ kind: 'reload-rejected', trigger, problems, again: trigger === 'poll' && mistakes === rejected });
      rejected = mistakes;
    },
    acknowledged: (markets) => say({ kind: 'cancellation-acknowledged', markets }),
    controlListening: (address) => say({ kind: 'control-listening', address }),
    commanded: (command) => say({ kind: 'operator-command', ...command }),
    controlRefused(said) {
      const reason = metrics.controlRefused(said);
      const { monoMs } = clock.now();
      const before = refusals.get(reason);
      if (before !== undefined && monoMs - before.saidMs < REFUSALS_QUIET_MS) {
        before.more += 1;
        return;
      }
      refusals.set(reason, { saidMs: monoMs, more: 0 });
      say({ kind: 'control-refused', reason, more: before?.more ?? 0 });
    },
    setLogLevel(to, untilWallMs) {
      const from = log.level();
      const operation = { kind: 'log-level-changed', from, to, untilWallMs } as const;
      if (logger.isLevelEnabled('info')) {
        say(operation);
        log.setLevel(to);
      } else {
        log.setLevel(to);
        say(operation);
      }
    },
  };
}

/** An operation as code, sentence and numbers. */
export function describeOperation(operation: Operation, now: Instant): EventLine {
  const { kind, ...fields } = operation;
  return {
    level: levelOf(operation),
    event: kind,
    market: null,
    msg: sentenceOf(operation, now),
    fields: boundLists(fields),
  };
}

function levelOf(operation: Operation): EventLevel {
  switch (operation.kind) {
    case 'reload-rejected':
      return operation.again ? 'debug' : 'error';
    case 'control-refused':
      return 'warn';
    default:
      return 'info';
  }
}

function sentenceOf(operation: Operation, now: Instant): string {
  switch (operation.kind) {
    case 'reload-applied':
      return `The configuration was read again (${TRIGGER[operation.trigger]}), and the new one is in force.`;
    case 'reload-unchanged':
      return `The configuration was read again (${TRIGGER[operation.trigger]}): it is the one that is in force.`;
    case 'reload-rejected':
      return describeRejection(operation.trigger, operation.problems);
    case 'cancellation-acknowledged':
      return `An operator has seen that orders were cancelled: ${listed(operation.markets)}.`;
    case 'control-listening':
      return `Beats and commands: ${operation.address}`;
    case 'operator-command':
      return describeCommand(operation);
    case 'control-refused': {
      const { reason, more } = operation;
      const others = more > 0 ? `, and ${more} more since the last line about it` : '';
      return `A request to the control listener was refused (${reason})${others}.`;
    }
    case 'log-level-changed': {
      const { from, to, untilWallMs } = operation;
      const until = untilWallMs === null ? 'from now on' : `until ${momentText(untilWallMs, now.wallMs)}`;
      return `The log level is ${to} ${until}; it was ${from}.`;
    }
  }
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
