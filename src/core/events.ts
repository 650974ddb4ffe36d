import type { LeftArmed, Notice } from './notice.ts';
import type { OperatorCommand } from './operate.ts';
import type { OrderType, Outcome, Pinged } from './outcome.ts';
import type { CoreSettings } from './settings.ts';

/** What a bot says of itself: it lives, it ends on purpose, or it is broken and nothing shall be renewed for it. */
export type BotWord = 'beat' | 'goodbye' | 'fail';
export type Purpose = 'renew' | 'trip' | 'delete';

/** What happened outside, as the core is told it. */
export type CoreEvent =
  | { readonly kind: 'tick' }
  | { readonly kind: 'granted'; readonly permits: number; readonly how: 'in-turn' | 'overdue' }
  | { readonly kind: 'settled'; readonly attempt: number; readonly outcome: Outcome }
  | Pinged
  /** `agoMs`: how old it may be at most, on the monotonic clock. */
  | { readonly kind: 'evidence'; readonly bot: string; readonly says: BotWord; readonly agoMs: number }
  | { readonly kind: 'operate'; readonly command: OperatorCommand }
  /** The configuration was read again; what cannot change while running is the same in it. */
  | { readonly kind: 'reload'; readonly settings: CoreSettings }
  /** Another part of the exchange's limit is this daemon's from now on. */
  | { readonly kind: 'budget'; readonly budget: CoreSettings['budget'] }
  /** The secret files were read again and hold something new. */
  | { readonly kind: 'credentials-changed' }
  | { readonly kind: 'stop'; readonly policy: 'delete' | 'keep' | 'handoff'; readonly why: string };

/** Whether what was seen of many markets may be untrue after it, and not of one or two, as after an answer. */
export function changesMuch(event: CoreEvent): boolean {
  switch (event.kind) {
    case 'operate':
    case 'reload':
    case 'stop':
      return true;
    case 'evidence':
      return event.says !== 'beat';
    case 'tick':
    case 'granted':
    case 'settled':
    case 'pinged':
    case 'budget':
    case 'credentials-changed':
      return false;
  }
}

/** What the keeper carries out, in this order. */
export type Effect =
  | { readonly kind: 'acquire'; readonly permits: number; readonly withinMs: number }
  | {
      readonly kind: 'write';
      readonly attempt: number;
      readonly market: string;
      readonly timeoutSeconds: number | null;
      readonly types: readonly OrderType[] | null;
      readonly base: number;
      readonly fresh: boolean;
    }
  | { readonly kind: 'abort'; readonly attempt: number }
  | { readonly kind: 'ping'; readonly base: number; readonly timeoutMs: number }
  | { readonly kind: 'notice'; readonly notice: Notice }
  | { readonly kind: 'finished'; readonly left: readonly LeftArmed[] };
