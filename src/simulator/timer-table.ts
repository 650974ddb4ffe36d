import type { OrderType } from '../core/outcome.ts';
import { createAgenda, type Due } from './agenda.ts';

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
  /** The earliest moment at which the agenda looks at this timer again. */
  readonly queuedMs: number;
}

/** `order` is the slot's rank. */
interface Entry extends Due {
  readonly id: string;
}

/**
 * Timers by account and market, with an agenda of their moments. A renewal only moves a timer's moment later, so it
 * leaves the agenda alone: the entry finds the later moment when it comes up and queues itself again.
 */
export function createTimerTable(): TimerTable {
  const slots = new Map<string, Slot>();
  const agenda = createAgenda<Entry>();
  let ranks = 0;

  function enqueue(id: string, slot: Slot): void {
    slots.set(id, slot);
    agenda.add({ atMs: slot.queuedMs, order: slot.rank, id });
  }

  /** Brings an entry to the top whose moment is that of a live timer. */
  function settleTop(): Slot | null {
    for (let top = agenda.first(); top !== undefined; top = agenda.first()) {
      const slot = slots.get(top.id);
      const current = slot !== undefined && slot.rank === top.order && slot.queuedMs === top.atMs;
      if (current && slot.timer.dueMs === top.atMs) return slot;
      agenda.take();
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
        agenda.take();
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
