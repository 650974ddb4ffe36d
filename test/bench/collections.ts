/** What Node's --trace-gc tells of the collections of one generation. */
export interface Collections {
  readonly count: number;
  readonly totalMs: number;
  readonly longestMs: number;
  /** What was marked bit by bit before, which the total does not have. */
  readonly markingMs: number;
}

const LINE =
  /^\[\d+:(?<heap>0x\w+)\] +(?<at>\d+) ms: (?<kind>Scavenge|Mark-Compact)\b.*?, (?<ms>[\d.]+) \/ [\d.]+ ms(?: +\(\+ (?<marking>[\d.]+) ms in )?/gm;
/** Node writes its trace a block at a time: a line of the daemon's log may lie within one of the trace. */
const LOG_LINE = /\{"[^\n]*\}\n/g;

/** Collections of the main thread between two moments, in milliseconds since the process began. */
export function collectionsIn(
  log: string,
  fromMs: number,
  untilMs: number,
): { readonly young: Collections; readonly full: Collections } {
  const lines = [...log.replace(LOG_LINE, '').matchAll(LINE)].map(({ groups = {} }) => groups);
  // The main thread has the first heap; each worker has one of its own.
  const within = lines.filter(
    ({ heap, at }) => heap === lines[0]?.['heap'] && Number(at) >= fromMs && Number(at) <= untilMs,
  );
  const of = (wanted: string) => sumUp(within.filter(({ kind }) => kind === wanted));
  return { young: of('Scavenge'), full: of('Mark-Compact') };
}

function sumUp(lines: readonly Readonly<Record<string, string | undefined>>[]): Collections {
  const each = lines.map(({ ms }) => Number(ms));
  return {
    count: lines.length,
    totalMs: sum(each),
    longestMs: Math.max(0, ...each),
    markingMs: sum(lines.map(({ marking = '0' }) => Number(marking))),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((so, value) => so + value, 0);
}
