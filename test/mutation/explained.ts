/** A mutant that no test can notice, or that none should. It is named by its line, and by what becomes what. */
export interface Explained {
  readonly file: string;
  readonly code: string;
  readonly from: string;
  readonly to: string;
  readonly why: string;
}

export const EXPLAINED: readonly Explained[] = [];
