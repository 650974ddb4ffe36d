/** Which member (market, or bot) of a shard has which place in its arrays. */
export interface Places {
  /** How many there are. */
  readonly most: number;
  of(member: string): number | undefined;
  /** By place: the member as the value of a label, or null where the place is free. */
  readonly labels: readonly (string | null)[];
  /** Grows whenever a place is taken or left. */
  version(): number;
}

export interface PlaceBook extends Places {
  readonly size: () => number;
  /** Throws where all places are taken. */
  take(member: string): number;
  leave(member: string): void;
}

/** A text as the value of a label. */
export function escaped(value: string): string {
  return /["\\\n]/.test(value)
    ? value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
    : value;
}

export function createPlaces(most: number): PlaceBook {
  const labels: (string | null)[] = Array.from({ length: most }, () => null);
  const places = new Map<string, number>();
  let changes = 0;
  return {
    most,
    version: () => changes,
    of: (member) => places.get(member),
    labels,
    size: () => places.size,
    take(member) {
      const place = labels.indexOf(null);
      if (place === -1) throw new Error(`no place for ${member}: all ${most} are taken`);
      changes += 1;
      labels[place] = escaped(member);
      places.set(member, place);
      return place;
    },
    leave(member) {
      const place = places.get(member);
      if (place === undefined) return;
      changes += 1;
      labels[place] = null;
      places.delete(member);
    },
  };
}
