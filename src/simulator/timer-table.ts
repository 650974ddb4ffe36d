import type { OrderType } from '../core/outcome.ts';

/** A kill-switch timer. `startTime` and `cancellationTime` in whole Unix seconds, `dueMs` in Unix milliseconds. */
export interface KillSwitchTimer {
  readonly account: string;
  readonly market: string;
  readonly startTime: number;
  readonly cancellationTime: number;
  /** Null means all order types. */
  readonly types: readonly OrderType[] | null;
  /** When it fires. */
  readonly dueMs: number;
}

export interface TimerTable {
  get(account: string, market: string): KillSwitchTimer | undefined;
  set(timer: KillSwitchTimer): void;
  remove(account: string, market: string): void;
  /** Removes and returns the timers that are due, earliest first, equal ones in the order of their first arming. */
  takeDue(nowMs: number): readonly KillSwitchTimer[];
  /** Unix milliseconds of the next firing; null where no timer is armed. */
  nextDueMs(): number | null;
  all(): readonly KillSwitchTimer[];
}

interface Slot {
  readonly timer: KillSwitchTimer;
  readonly rank: number;
  /** The earliest moment at which the heap looks at this timer again. */
  readonly queuedMs: number;
}

interface Entry {
  readonly atMs: number;
  readonly rank: number;
  readonly id: string;
}

/**
 * Timers by account and market, with a heap of their moments. A renewal only moves a timer's moment later, so it
 * leaves the heap alone: the entry finds the later moment when it comes up and queues itself again.
 */
export function createTimerTable(): TimerTable {
  const slots = new Map<string, Slot>();
  const heap: Entry[] = [];
  let ranks = 0;

  function enqueue(id: string, slot: Slot): void {
    slots.set(id, slot);
    push(heap, { atMs: slot.queuedMs, rank: slot.rank, id });
  }

  /** Brings an entry to the top whose moment is that of a live timer. */
  function settleTop(): Slot | null {
    for (let top = heap[0]; top !== undefined; top = heap[0]) {
      const slot = slots.get(top.id);
      const current = slot !== undefined && slot.rank === top.rank && slot.queuedMs === top.atMs;
      if (current && slot.timer.dueMs === top.atMs) return slot;
      pop(heap);
      if (current) enqueue(top.id, { ...slot, queuedMs: slot.timer.dueMs });
    }
    return null;
  }

  return {
    get: (account, market) => slots.get(idOf(account, market))?.timer,
    set(timer) {
      const id = idOf(timer.account, timer.market);
      const old = slots.get(id);
      if (old !== undefined && timer.dueMs >= old.queuedMs) slots.set(id, { ...old, timer });
      else enqueue(id, { timer, rank: old?.rank ?? ranks++, queuedMs: timer.dueMs });
    },
    remove(account, market) {
      slots.delete(idOf(account, market));
    },
    takeDue(nowMs) {
      const due: KillSwitchTimer[] = [];
      for (let slot = settleTop(); slot !== null && slot.timer.dueMs <= nowMs; slot = settleTop()) {
        pop(heap);
        slots.delete(idOf(slot.timer.account, slot.timer.market));
        due.push(slot.timer);
      }
      return due;
    },
    nextDueMs: () => settleTop()?.timer.dueMs ?? null,
    all: () => Array.from(slots.values(), (slot) => slot.timer),
  };
}

function idOf(account: string, market: string): string {
  return `${account} ${market}`;
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs === b.atMs ? a.rank < b.rank : a.atMs < b.atMs;
}

function push(heap: Entry[], entry: Entry): void {
  let at = heap.length;
  heap.push(entry);
  while (at > 0) {
    const above = (at - 1) >> 1;
    const parent = heap[above];
    if (parent === undefined || !isBefore(entry, parent)) break;
    heap[at] = parent;
    at = above;
  }
  heap[at] = entry;
}

function pop(heap: Entry[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    const left = heap[2 * at + 1];
    if (left === undefined) break;
    const right = heap[2 * at + 2];
    const rightWins = right !== undefined && isBefore(right, left);
    const child = rightWins ? right : left;
    if (!isBefore(child, last)) break;
    heap[at] = child;
    at = 2 * at + (rightWins ? 2 : 1);
  }
  heap[at] = last;
}
