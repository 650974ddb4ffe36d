import {
  ApiError,
  ArgumentError,
  CredentialError,
  NetworkError,
  NonceError,
  NotFoundError,
  OrderMismatchError,
  ProtocolError,
  PublicRefusedError,
  RefusedError,
  ServerError,
  ThrottledError,
  TimeoutError,
  UnauthorisedError,
  UnknownOutcomeError,
} from '../exchange/errors.ts';
import { EXIT, type ExitCode } from './edge.ts';

/** How `api` ends after a call that failed. Nothing in it is a secret. */
export interface ApiFailure {
  readonly exitCode: ExitCode;
  /** One sentence for standard error. */
  readonly sentence: string;
  /** The same for programs. */
  readonly error: Readonly<Record<string, unknown>>;
}

/** What is not a failed call of the client is thrown on. */
export function describeFailure(error: unknown): ApiFailure {
  if (error instanceof ArgumentError) {
    const { name, message, argument } = error;
    const hint = argument === 'amountIn' ? '; name it with --amount-in or in the JSON' : '';
    return { exitCode: EXIT.usage, sentence: `${message}${hint}`, error: { name, message, argument } };
  }
  if (!(error instanceof ApiError)) throw error;
  const { name, message, status, maybeApplied } = error;
  const { exitCode, hint } = judge(error);
  const sentence = hint === null ? message : `${message}; ${hint}`;
  return { exitCode, sentence, error: { name, message, status, maybeApplied, ...detailsOf(error) } };
}

function detailsOf(error: ApiError): Readonly<Record<string, unknown>> {
  if (error instanceof RefusedError) return { code: error.code, fields: error.fields };
  if (error instanceof PublicRefusedError) return { params: error.params };
  if (error instanceof NetworkError) return { reason: error.reason };
  if (error instanceof OrderMismatchError) return { order: error.order };
  if (error instanceof UnknownOutcomeError) {
    const { operation, clientOrderId, uniqueId } = error;
    return { operation, clientOrderId, uniqueId };
  }
  return {};
}

const UNAVAILABLE = [NetworkError, TimeoutError, ServerError, NotFoundError, ThrottledError, NonceError];

function judge(error: ApiError): { readonly exitCode: ExitCode; readonly hint: string | null } {
  // It says itself what to look up.
  if (error instanceof UnknownOutcomeError) return { exitCode: EXIT.unconfirmed, hint: null };
  if (error instanceof OrderMismatchError) return { exitCode: EXIT.internal, hint: 'nothing was undone' };
  if (error instanceof UnauthorisedError) {
    return { exitCode: EXIT.refused, hint: 'the exchange refuses the key, its permissions or the token' };
  }
  if (error instanceof RefusedError || error instanceof PublicRefusedError) {
    const code = error instanceof RefusedError ? ` with code ${error.code}` : '';
    return { exitCode: EXIT.usage, hint: `the exchange refused what was asked${code}, nothing was changed` };
  }
  const maybe = error.maybeApplied ? 'it may have been carried out all the same' : null;
  if (UNAVAILABLE.some((kind) => error instanceof kind)) return { exitCode: EXIT.unreachable, hint: maybe };
  if (error instanceof CredentialError) return { exitCode: EXIT.config, hint: 'nothing was sent' };
  const hint = error instanceof ProtocolError ? maybe : 'not an answer that the API document knows';
  return { exitCode: EXIT.internal, hint };
}
