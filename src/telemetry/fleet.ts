import { createShard, SHARD_MEMBERS, type Shard, type ShardKind } from './shard.ts';

/** Gives the event loop back where it was held for long enough. */
export type Breathe = () => Promise<void>;

/** All shards of one kind, and which members have their series there. */
export interface Fleet<Member, Seen, Counters> {
  readonly shards: readonly Shard<Member, Seen, Counters>[];
  /** What is counted in the member's shard; undefined where it has no series, or none any more. */
  counters(name: string): Counters | undefined;
  /** Gives a member its series. Nothing where it has them. */
  add(member: Member): void;
  /**
   * Takes over what is configured now. When it resolves new members have all their series, and those that changed
   * show it; members that are not configured any more keep theirs until they are gone.
   */
  configure(members: readonly Member[], breathe: Breathe): Promise<void>;
  /** The member is no more. One that is still configured keeps its series: it begins anew. */
  gone(name: string): void;
  /** Takes over what a snapshot says. Whoever is not configured and does not exist there is gone. */
  see(lookup: (name: string) => Seen | undefined): void;
  /** Brings all series in line with what was configured, said and seen. */
  refresh(breathe: Breathe): Promise<void>;
}

/**
 * An empty fleet. Series come and go a few members at a time: to create, or to remove, those of ten thousand markets in
 * one piece would hold the event loop for half a second.
 */
export function createFleet<Member, Seen, Own extends string, Counters>(
  kind: ShardKind<Member, Seen, Own, Counters>,
): Fleet<Member, Seen, Counters> {
  type Home = Shard<Member, Seen, Counters>;
  const { nameOf } = kind;
  const shards: Home[] = [createShard(kind)];
  const homes = new Map<string, Home>();
  /** Configured no longer, and not known to be gone. */
  const leaving = new Set<string>();
  const remains = createRemains();
  let lookup: (name: string) => Seen | undefined = () => undefined;

  const hasPlace = (candidate: Home): boolean => candidate.size() < SHARD_MEMBERS;
  const add = (member: Member): void => {
    const name = nameOf(member);
    if (homes.has(name)) return;
    remains.remove(name);
    const last = shards.at(-1);
    // Places that became free are looked for only where the newest shard has none.
    let shard = last !== undefined && last.size() < SHARD_MEMBERS ? last : shards.find(hasPlace);
    if (shard === undefined) {
      shard = createShard(kind);
      shards.push(shard);
    }
    shard.add(member);
    homes.set(name, shard);
  };
  const gone = (name: string): void => {
    const home = homes.get(name);
    if (!leaving.delete(name) || home === undefined) return;
    homes.delete(name);
    remains.leave(name, home);
  };
  return {
    shards,
    counters: (name) => homes.get(name)?.counters,
    add,
    async configure(members, breathe) {
      const configured = new Set(members.map(nameOf));
      for (const name of homes.keys()) {
        if (configured.has(name)) leaving.delete(name);
        else leaving.add(name);
      }
      for (const member of members) {
        homes.get(nameOf(member))?.change(member);
        add(member);
        await breathe();
      }
      await remains.removeAll(breathe);
    },
    gone,
    see(known) {
      lookup = known;
      for (const name of leaving) if (known(name) === undefined) gone(name);
    },
    async refresh(breathe) {
      await remains.removeAll(breathe);
      for (const shard of shards) {
        shard.refresh(lookup);
        await breathe();
      }
    },
  };
}

/** The series of members that are gone, until they are removed. */
function createRemains() {
  const remains = new Map<string, { remove(name: string): void }>();
  const remove = (name: string): void => {
    remains.get(name)?.remove(name);
    remains.delete(name);
  };
  return {
    leave: (name: string, home: { remove(name: string): void }) => void remains.set(name, home),
    remove,
    removeAll: async (breathe: Breathe): Promise<void> => {
      for (const name of remains.keys()) {
        remove(name);
        await breathe();
      }
    },
  };
}
