/** `rising`: the daemon with `nonce: increasing`. */
export const SUBJECTS = ['daemon', 'rising', 'undici', 'floor', 'ccxt'] as const;
export type SubjectName = (typeof SUBJECTS)[number];

/** By what was measured and where, `cpu/200` or `slack/T=5, 1.7 s`: figures of subjects, round by round. */
export type Rows = Readonly<Record<string, Partial<Record<SubjectName, number[]>>>>;

/** What a run writes as JSON. */
export interface Report {
  readonly command: string;
  readonly facts: Readonly<Record<string, string>>;
  readonly rows: Rows;
  readonly notRun: readonly string[];
}

/** Where everybody writes down what they measured. A round that had no figure has NaN. */
export function createBook() {
  const rows: Record<string, Partial<Record<SubjectName, number[]>>> = {};
  const note = (id: string, subject: SubjectName, value: number, round = 0): void => {
    const values = ((rows[id] ??= {})[subject] ??= []);
    while (values.length < round) values.push(Number.NaN);
    values.push(value);
  };
  return { rows, note, notRun: [] as string[] };
}

export type Spread = Readonly<Record<'median' | 'least' | 'most', number>>;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

function spread(values: readonly number[]): Spread | undefined {
  const finite = values.filter(Number.isFinite);
  if (finite.length === 0) return undefined;
  return { median: median(finite), least: Math.min(...finite), most: Math.max(...finite) };
}

/** Over all rounds; undefined where nothing was noted. */
export function spreadOf(rows: Rows, id: string, subject: SubjectName = 'daemon'): Spread | undefined {
  return spread(rows[id]?.[subject] ?? []);
}

/** The daemon's divided by that of another of the same round: what the machine did to both cancels. */
export function ratioOf(rows: Rows, id: string, to: SubjectName): Spread | undefined {
  const { daemon = [], [to]: other = [] } = rows[id] ?? {};
  return spread(daemon.map((value, round) => value / (other[round] ?? Number.NaN)));
}

/** The median, and from the least to the most where the rounds differ. */
export function figures(spread: Spread | undefined, decimals: number): string {
  if (spread === undefined) return '';
  const [middle, least, most] = [spread.median, spread.least, spread.most].map((value) =>
    String(Number(value.toFixed(decimals))),
  );
  return least === most ? `${middle}` : `${middle} (${least} to ${most})`;
}
