import { killSubjects } from './processes.ts';
import type { Stage } from './stage.ts';
import type { SubjectName } from './subject.ts';

/** Measures a subject. One that does not come to its feet is told, and takes none of the others along. */
export async function attempt(
  { book, rig }: Stage,
  name: SubjectName,
  what: string,
  work: () => Promise<void>,
): Promise<void> {
  if (name === 'ccxt' && 'problem' in rig.ccxt) {
    book.skip(`ccxt: ${rig.ccxt.problem}`);
    return;
  }
  try {
    await work();
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n')[0] : String(error);
    book.skip(`${what} of ${name}: ${why}`);
    await killSubjects();
  }
}

/** All of them, beginning with another one in each round, so that none always runs behind the same one. */
export function inTurn<T>(subjects: readonly T[], round: number): readonly T[] {
  const first = round % subjects.length;
  return [...subjects.slice(first), ...subjects.slice(0, first)];
}
