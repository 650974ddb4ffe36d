import type { Explained } from './explain.ts';

export const EXPLAINED_DECISIONS: readonly Explained[] = [];
