import type { Mutant } from './instrument.ts';

/** Room for the mutants of all files: see `plugin.ts`. */
const MOST_IDS = 1_000_000;

/** What the mutated sources talk to. One mutant is active at a time; none is 0. */
export interface Switchboard {
  readonly is: (id: number) => boolean;
  readonly loop: () => void;
  readonly register: (file: string, mutants: string) => void;
  /** Turns on one mutant, or none, and forgets what was counted. */
  activate(id: number, mostLoops: number): void;
  /** Which mutants were come by since then. */
  reached(): number[];
  loops(): number;
  mutants(): Mutant[];
}

/** Made before the first mutated source is loaded, which finds it as a global. */
export function createSwitchboard(): Switchboard {
  const byFile = new Map<string, Mutant[]>();
  const hits = new Uint8Array(MOST_IDS);
  let active = 0;
  let loops = 0;
  let most = Number.POSITIVE_INFINITY;
  const all = () => [...byFile.values()].flat();
  return {
    is(id) {
      hits[id] = 1;
      return id === active;
    },
    loop() {
      loops += 1;
      if (loops > most) throw new Error('goes on for ever');
    },
    register: (file, mutants) => byFile.set(file, JSON.parse(mutants) as Mutant[]),
    activate(id, mostLoops) {
      active = id;
      loops = 0;
      most = mostLoops;
      hits.fill(0);
    },
    reached: () => all().flatMap(({ id }) => (hits[id] === 1 ? [id] : [])),
    loops: () => loops,
    mutants: all,
  };
}
