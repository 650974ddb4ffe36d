/** What an account did, oldest first, with a name for each record that can be found again. */
export interface Records<T> {
  add(account: string, name: string, record: T): void;
  find(account: string, name: string): T | undefined;
  /** How many were ever added. */
  added(account: string): number;
  of(account: string): readonly T[];
  all(): readonly T[];
}

/** Keeps the newest `capacity` records of each account; a forgotten record's name may be used anew. */
export function createRecords<T>(capacity: number): Records<T> {
  const accounts = new Map<string, Map<string, T>>();
  const counts = new Map<string, number>();
  const of = (account: string): readonly T[] => [...(accounts.get(account)?.values() ?? [])];
  return {
    add(account, name, record) {
      const own = accounts.get(account) ?? new Map<string, T>();
      accounts.set(account, own);
      own.set(name, record);
      counts.set(account, (counts.get(account) ?? 0) + 1);
      if (own.size > capacity) own.delete(own.keys().next().value ?? name);
    },
    find: (account, name) => accounts.get(account)?.get(name),
    added: (account) => counts.get(account) ?? 0,
    of,
    all: () => [...accounts.keys()].flatMap(of),
  };
}
