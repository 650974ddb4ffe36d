import type { FailureReason } from '../core/events.ts';
import type { Cancel } from '../ports.ts';

export interface WireContent {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

export interface WireRequest {
  /** Origin of the base address, as `https://host[:port]`. */
  readonly base: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Asked for when the connection is open, right before the write: a nonce must not age while a connection opens. */
  readonly content: () => WireContent;
  /** Asks for a new connection: one that is in use may hang. */
  readonly fresh: boolean;
  /** Asked in the synchronous step of the write, before its first byte. False ends the request unsent. */
  readonly mayWrite: () => boolean;
  /**
   * Whether a response comes from the exchange itself; where this is not given, every one does. Where one does not, its
   * connection is closed, and its address is dialled after the others. Asked before `done`.
   */
  readonly isAnswer?: (response: WireResponse) => boolean;
  /** The most of the answer's body that is read; 64 KiB where it is not given. */
  readonly maxBodyBytes?: number | undefined;
  /** Only the status matters: the body is not kept, and an answer counts once `maxBodyBytes` of it have come. */
  readonly dropsBody?: boolean;
}

/** Header names in lower case. */
export type WireHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface WireResponse {
  readonly kind: 'response';
  readonly status: number;
  readonly headers: WireHeaders;
  /** The whole body, never more than the request allows. */
  readonly body: Buffer;
}

export interface WireFailure {
  readonly kind: 'failed';
  readonly reason: FailureReason;
  readonly detail: string;
  /** False exactly when no byte of the request was written. */
  readonly maybeApplied: boolean;
  /** Given where the head of an answer had arrived before its body went wrong. */
  readonly status?: number;
  readonly cause?: unknown;
}

export type WireResult = WireResponse | WireFailure;

/** The wire, and nothing of what the bytes mean. */
export interface Transport {
  /**
   * Sends one request. Calls `done` exactly once and never synchronously; never throws. The returned function gives
   * up: the request settles as failed with reason `timeout`, and an answer that comes later is ignored.
   */
  send(request: WireRequest, done: (result: WireResult) => void): Cancel;
  /** Ends every connection; what is in flight settles as failed with reason `aborted`. */
  close(): Promise<void>;
}
