/** A mutant that no test can notice, or that none should. It is named by its line, and by what becomes what. */
export interface Explained {
  readonly file: string;
  readonly code: string;
  readonly from: string;
  readonly to: string;
  readonly why: string;
}

type Change = readonly [code: string, from: string, to: string];

export function explain(file: string, why: string, ...changes: readonly Change[]): Explained[] {
  return changes.map(([code, from, to]) => ({ file: `src/core/${file}`, code, from, to, why }));
}

export const SAME_MOMENT = 'both sides are moments, and mean the same where they are equal';
export const SETTLED = 'attempts have numbers of their own, and one that is confirmed is on its way no more';
export const PLANTED =
  'only a bug that is planted on purpose gets here; the canaries of the simulation find it';
export const PASSED =
  '0 stands for a moment that has passed, and 1 ms after the start of the host has passed as well';
