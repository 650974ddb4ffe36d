/** Keys and list positions that lead to a value: `['markets', 1, 'timeoutSeconds']`. */
export type Path = readonly (string | number)[];

/** Where a value stands, for a message and for the order of messages. */
export interface Place {
  /** `killswitchd.yaml:4:3 markets[1].timeoutSeconds`, `KILLSWITCHD_MARKETS[1]`, `--timeout-seconds`. */
  readonly label: string;
  /** Flags first, then the environment, the file, and last what is missing everywhere. */
  readonly rank: number;
  /** Order within the rank: position in the file, or in the table of variables. */
  readonly offset: number;
}

/** One mistake of a configuration. `text` says what was found, what is allowed and what was probably meant. */
export interface Problem {
  readonly place: Place;
  readonly text: string;
}

export const RANK = { flag: 0, environment: 1, file: 2, missing: 3 } as const;

/** `markets[1].timeoutSeconds`. */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? step : `${text}.${step}`;
  }, '');
}

/** The messages, one line each, in the order of their places; the same message only once. */
export function listProblems(problems: readonly Problem[]): string[] {
  const ordered = [...problems].sort(
    (one, other) => one.place.rank - other.place.rank || one.place.offset - other.place.offset,
  );
  return [...new Set(ordered.map(({ place, text }) => `${place.label}: ${text}`))];
}
