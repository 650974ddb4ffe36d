import type { RequestTarget } from './answering.ts';

/** Which requests a fault hits, how often and how long. */
interface FaultScope {
  /** Missing members match every request. */
  readonly match?: { readonly operation?: string; readonly market?: string; readonly key?: string };
  /** How many matching requests are let through before the first one is hit; default 0. */
  readonly skip?: number;
  /** Share of the matching requests that are hit, 0 to 1; default 1. */
  readonly probability?: number;
  /** How many requests are hit before the fault is spent; default: no bound. */
  readonly count?: number;
  /** How long after it was added the fault lasts, milliseconds; default: until it is cleared. */
  readonly forMs?: number;
}

type FaultBody =
  /** Delays the request on its way to the exchange, or the reply on its way back (`when: 'after'`). */
  | {
      readonly kind: 'latency';
      readonly ms: number;
      /** At most this much is added, evenly spread; default 0. */
      readonly jitterMs?: number;
      readonly when?: 'before' | 'after';
    }
  /**
   * Leaves the connection open and silent for `ms`, or until the fault ends or is cleared. Then the request is carried
   * out and answered (`hold`, even where the client has gone: it was written), or its connection is closed (`drop`).
   */
  | { readonly kind: 'hang'; readonly ms?: number; readonly mode: 'drop' | 'hold' }
  /** Resets the connection before or after the request was carried out. */
  | { readonly kind: 'reset'; readonly when: 'before' | 'after' }
  /**
   * A status from 400 to 599, as a page of the gateway (`html`) or as JSON: below 500 the error object of the API, from
   * 500 on that of the server itself. Not carried out.
   */
  | { readonly kind: 'status'; readonly status: number; readonly body?: 'json' | 'html' }
  /** A refusal of the API, with the error object of the document; not carried out. */
  | {
      readonly kind: 'refusal';
      /** From 400 to 499; default 422. */
      readonly status?: number;
      /** Default 30. */
      readonly code?: number;
      /** Default `Validation failed`. */
      readonly message?: string;
      /** Messages per parameter; default none. */
      readonly errors?: Readonly<Record<string, readonly string[]>>;
    }
  /** Arms timers for this many seconds, whatever was asked for, and says so in the reply. */
  | { readonly kind: 'grant'; readonly seconds: number }
  /** Repeats the first good reply for each operation, market and key; what it repeats is not carried out. */
  | { readonly kind: 'cache' }
  /** The gateway's 429 page; not carried out. */
  | { readonly kind: 'throttle' }
  /** The 429 with JSON that a stale nonce gets; not carried out. */
  | { readonly kind: 'stale-nonce' }
  /** The gateway's 503 page; not carried out. */
  | { readonly kind: 'maintenance' }
  /** 200 with bytes that are not JSON; carried out. */
  | { readonly kind: 'garbage' }
  /** Half of the reply, although its length was announced; then the connection is closed. Carried out. */
  | { readonly kind: 'cut-off' }
  /** The good reply with more than 64 KiB of white space after it; carried out. */
  | { readonly kind: 'oversize' }
  /** 200 with a JSON object that fits no operation; carried out. */
  | { readonly kind: 'wrong-shape' }
  /** Carried out, but answered with a 500. */
  | { readonly kind: 'unacknowledged' }
  /** The good reply, but nothing was carried out. */
  | { readonly kind: 'lie' }
  /** The good reply, its body spread over `ms`. */
  | { readonly kind: 'slow-body'; readonly ms: number }
  /** A 302; not carried out. */
  | { readonly kind: 'redirect'; readonly location?: string }
  /** The 401 of a wrong key; not carried out. */
  | { readonly kind: 'unauthorised' }
  /** The 403 of a key without permission; not carried out. */
  | { readonly kind: 'forbidden' };

/** A fault as data: what is sent to `POST /simulator/faults` and kept in a fault plan. */
export type Fault = FaultBody & FaultScope;
export type FaultKind = Fault['kind'];

/** A fault in force. Times in Unix milliseconds of the exchange's clock. */
export interface ActiveFault {
  readonly id: number;
  readonly fault: Fault;
  readonly hits: number;
  /** Null where it lasts until it is cleared. */
  readonly endsAtMs: number | null;
}

/** A body that takes the place of the exchange's own answer. */
export interface CannedReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

/** What the client sees of the answer. */
export type ReplyFate =
  | { readonly kind: 'own' }
  | { readonly kind: 'canned'; readonly reply: CannedReply }
  | { readonly kind: 'reset' }
  | { readonly kind: 'cut-off' }
  | { readonly kind: 'padded'; readonly bytes: number }
  /** The first good reply under this fault, repeated. */
  | { readonly kind: 'cached'; readonly faultId: number };

/** What is to be done with one request. Whoever transports requests carries it out, from top to bottom. */
export interface Treatment {
  readonly hang: {
    readonly faultId: number;
    /** Milliseconds; null where only clearing the fault ends it. */
    readonly ms: number | null;
    /** The hang ends together with its fault, and with it every request that the fault holds. */
    readonly endsWithFault: boolean;
    readonly mode: 'drop' | 'hold';
  } | null;
  readonly waitMs: number;
  readonly apply: 'yes' | 'no' | 'pretend';
  readonly replyWaitMs: number;
  /** Timers are armed for this many seconds; null: as asked for. */
  readonly grantSeconds: number | null;
  /** The body is spread over this long. */
  readonly bodyMs: number;
  readonly fate: ReplyFate;
  /** The faults that took part, for the log. */
  readonly hits: readonly { readonly faultId: number; readonly kind: FaultKind }[];
}

/** What is done with a request that no fault hits. */
export const UNTOUCHED: Treatment = {
  hang: null,
  waitMs: 0,
  apply: 'yes',
  replyWaitMs: 0,
  grantSeconds: null,
  bodyMs: 0,
  fate: { kind: 'own' },
  hits: [],
};

/** Whether a fault's `match` admits a request. */
export function isMatch(fault: Fault, target: RequestTarget): boolean {
  const { operation, market, key } = fault.match ?? {};
  return (
    (operation === undefined || operation === target.operation) &&
    (market === undefined || market === target.market) &&
    (key === undefined || key === target.key)
  );
}
