import { cpuDuring, type Window } from './measures.ts';
import type { ProbeAnswer } from './probe.ts';
import { type ExchangeProcess, waitForEnd } from './processes.ts';
import { type Lateness, nowMs, type Seen } from './protocol.ts';
import type { Wire } from './rig.ts';
import type { Stage } from './stage.ts';
import type { Subject, SubjectName } from './subject.ts';

/** What the rows of some markets over some wire end with: the first in their ids, the second in their titles. */
export interface Label {
  readonly id: string;
  readonly name: string;
}

/** `long`: of the run of minutes instead of the rounds. */
export function labelOf(markets: number, wire: Wire, long = false): Label {
  const name = `${markets.toLocaleString('en')} markets, ${wire === 'tls' ? 'TLS' : 'plain'}`;
  return long ? { id: 'long', name: `${name}, the long run` } : { id: `${markets}/${wire}`, name };
}

/** Notes figures of one subject, with the number of decimals that their unit makes sense of. */
export function noter({ book }: Stage, { id, name }: Label, subject: SubjectName) {
  return (what: string, title: string, unit: string, decimals: number, value: number): void =>
    book.note(`${what}/${id}`, { title: `${title}, ${name}`, unit, decimals }, subject, value);
}

/** How long the subject took until it had armed its timers. */
export function noteStart(
  stage: Stage,
  label: Label,
  subject: SubjectName,
  { firstArmedAt, lastFirstArmedAt }: Seen,
  startedAt: number,
): void {
  const note = noter(stage, label, subject);
  note('first-armed', 'Start to first timer armed', 'ms', 0, firstArmedAt - startedAt);
  note('start-armed', 'Start to all timers armed', 's', 2, (lastFirstArmedAt - startedAt) / 1000);
  note('all-armed', 'First to last timer armed', 's', 2, (lastFirstArmedAt - firstArmedAt) / 1000);
}

/** What renewing costs. */
export function noteCosts(stage: Stage, label: Label, subject: SubjectName, window: Window): void {
  const note = noter(stage, label, subject);
  note('cpu', 'CPU seconds per 1,000 renewals', 's', 3, window.cpuPer1000);
  note('rate', 'Renewals a second', '/s', 0, window.perSecond);
  note('rss', 'RSS', 'MB', 0, window.rssMb);
}

/** How much later than planned the subject sent its renewals. */
export function noteLateness(
  stage: Stage,
  label: Label,
  subject: SubjectName,
  lateness: Lateness | null,
): void {
  noteTail(stage, label, subject, 'late', 'Lateness against the planned time', lateness);
}

function noteTail(
  stage: Stage,
  label: Label,
  subject: SubjectName,
  what: string,
  title: string,
  tail: Lateness | null,
): void {
  const note = noter(stage, label, subject);
  note(`${what}-p50`, `${title}, p50`, 'ms', 1, tail?.p50 ?? Number.NaN);
  note(`${what}-p99`, `${title}, p99`, 'ms', 1, tail?.p99 ?? Number.NaN);
  note(`${what}-p999`, `${title}, p99.9`, 'ms', 1, tail?.p999 ?? Number.NaN);
  note(`${what}-max`, `${title}, max`, 'ms', 1, tail?.max ?? Number.NaN);
}

/** How long the event loop kept others waiting. */
export function noteLoopDelay(stage: Stage, label: Label, subject: SubjectName, probe: ProbeAnswer): void {
  noter(stage, label, subject)('loop', 'Event-loop delay p99', 'ms', 1, probe.delayP99Ms);
}

/** What the exchange saw of the timers: for windows in which every market is renewed. */
export function noteTimers(stage: Stage, label: Label, subject: SubjectName, seen: Seen): void {
  noteTail(stage, label, subject, 'gap', 'Gap beyond the period', seen.beyondPeriod);
  const note = noter(stage, label, subject);
  note('slack', 'Least slack at a renewal', '% of T', 1, (seen.leastSlack ?? Number.NaN) * 100);
  note('lapses', 'Lapses', '', 0, seen.lapses);
}

/** Ends a subject as a service manager does, and notes how long its deletes took. */
export async function stopAndNote(
  stage: Stage,
  label: Label,
  exchange: ExchangeProcess,
  name: SubjectName,
  subject: Subject,
): Promise<void> {
  const askedAt = nowMs();
  subject.running.signal('SIGTERM');
  const cpu = await cpuDuring(subject, waitForEnd(subject.running));
  const { lastDeleteAt, armed } = await exchange.read();
  const note = noter(stage, label, name);
  note('delete-all', 'Time to delete all', 's', 2, (lastDeleteAt - askedAt) / 1000);
  note('delete-cpu', 'CPU used until it ended', 's', 2, cpu);
  note('delete-left', 'Timers left by a stop', '', 0, armed);
}
