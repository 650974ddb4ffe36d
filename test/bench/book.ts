import type { MachineFacts } from './machine.ts';
import { pairedRatio, type Spread, spread } from './statistics.ts';
import type { SubjectName } from './subject.ts';

/** One row of the table: a figure of one or several subjects, round by round. */
export interface Row {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  readonly decimals: number;
  /** NaN where a round has none. */
  readonly values: Partial<Record<SubjectName, number[]>>;
}

/** What was to be reached, and what was. */
export interface Target {
  readonly says: string;
  readonly measured: string;
  /** Null where it was not measured in this run. */
  readonly met: boolean | null;
}

/** What a run writes as JSON. */
export interface Report {
  readonly command: string;
  readonly at: string;
  readonly tookMinutes: number;
  readonly machine: MachineFacts;
  readonly rounds: number;
  readonly rows: readonly Row[];
  readonly notRun: readonly string[];
  readonly targets: readonly Target[];
}

export interface RowStyle {
  readonly title: string;
  readonly unit: string;
  readonly decimals?: number;
}

/** Where the stages write down what they measured. */
export interface Book {
  /** From here on what is noted is of this round, from 0 on: a subject whose round failed has none in it. */
  readonly begin: (round: number) => void;
  readonly note: (id: string, style: RowStyle, subject: SubjectName, value: number) => void;
  readonly rows: () => readonly Row[];
  /** Over all rounds; undefined where nothing was noted. */
  readonly of: (id: string, subject?: SubjectName) => Spread | undefined;
  /** The first divided by the second, round by round. */
  readonly ratio: (id: string, to: SubjectName) => Spread | undefined;
  readonly skip: (what: string) => void;
  readonly notRun: readonly string[];
}

export function createBook(): Book {
  const rows = new Map<string, Row>();
  const notRun: string[] = [];
  let current = 0;
  const valuesOf = (id: string, subject: SubjectName) => rows.get(id)?.values[subject] ?? [];
  return {
    begin(round) {
      current = round;
    },
    note(id, { title, unit, decimals = 1 }, subject, value) {
      const row = rows.get(id) ?? { id, title, unit, decimals, values: {} };
      rows.set(id, row);
      const values = (row.values[subject] ??= []);
      while (values.length < current) values.push(Number.NaN);
      values.push(value);
    },
    rows: () => [...rows.values()],
    of(id, subject = 'daemon') {
      const values = valuesOf(id, subject);
      return values.some(Number.isFinite) ? spread(values) : undefined;
    },
    ratio(id, to) {
      const [of, other] = [valuesOf(id, 'daemon'), valuesOf(id, to)];
      return of.length > 0 && other.length > 0 ? pairedRatio(of, other) : undefined;
    },
    skip: (what) => {
      if (!notRun.includes(what)) notRun.push(what);
    },
    notRun,
  };
}
