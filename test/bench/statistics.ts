/** The value below which the share `q` of the sorted values lies; NaN where there are none. */
export function quantile(sorted: ArrayLike<number>, q: number): number {
  if (sorted.length === 0) return Number.NaN;
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  const sorted = values.filter(Number.isFinite).toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  if (sorted.length % 2 === 1) return sorted[middle] ?? Number.NaN;
  return ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
  readonly rounds: number;
}

export function spread(values: readonly number[]): Spread {
  const finite = values.filter(Number.isFinite);
  return {
    median: median(finite),
    least: Math.min(...finite),
    most: Math.max(...finite),
    rounds: finite.length,
  };
}

/** The median over the rounds of one value divided by another of the same round: what the machine did to both cancels. */
export function pairedRatio(of: readonly number[], to: readonly number[]): Spread {
  return spread(of.map((value, round) => value / (to[round] ?? Number.NaN)));
}
