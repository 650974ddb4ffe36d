/** Something that is due at `atMs`; of equal moments the smaller `order` comes first. */
export interface Due {
  readonly atMs: number;
  readonly order: number;
}

/** What is due, the earliest first. */
export interface Agenda<Entry extends Due> {
  first(): Entry | undefined;
  add(entry: Entry): void;
  /** Takes the first one out. */
  take(): Entry | undefined;
}

/** A binary heap: adding and taking cost the logarithm of what is in it. */
export function createAgenda<Entry extends Due>(): Agenda<Entry> {
  const heap: Entry[] = [];

  /** Moves the hole at the root down to where `last` belongs. */
  function sink(last: Entry): void {
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      const left = heap[child];
      if (left === undefined) break;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, left)) child += 1;
      const best = heap[child];
      if (best === undefined || !isBefore(best, last)) break;
      heap[place] = best;
      place = child;
    }
    heap[place] = last;
  }

  return {
    first: () => heap[0],
    add(entry) {
      let place = heap.length;
      heap.push(entry);
      while (place > 0) {
        const parent = (place - 1) >> 1;
        const above = heap[parent];
        if (above === undefined || !isBefore(entry, above)) break;
        heap[place] = above;
        place = parent;
      }
      heap[place] = entry;
    },
    take() {
      const first = heap[0];
      const last = heap.pop();
      if (last !== undefined && heap.length > 0) sink(last);
      return first;
    },
  };
}

function isBefore(one: Due, other: Due): boolean {
  return one.atMs === other.atMs ? one.order < other.order : one.atMs < other.atMs;
}
