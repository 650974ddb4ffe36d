import { type ClientError, isClientError } from '../exchange/errors.ts';
import { EXIT, type ExitCode } from './edge.ts';

/** How `api` ends after a call that failed. Nothing in it is a secret. */
export interface ApiFailure {
  readonly exitCode: ExitCode;
  /** One sentence for standard error. */
  readonly sentence: string;
  /** The same for programs. */
  readonly error: Readonly<Record<string, unknown>>;
}

const REFUSED = 'the exchange refused what was asked, nothing was changed';
const MAYBE = 'it may have been carried out all the same';

/** Exit code and hint by the kind of error. MAYBE is said only where it holds; some say all by themselves. */
const ENDS: Readonly<Record<ClientError['name'], readonly [ExitCode, string | null]>> = {
  ArgumentError: [EXIT.usage, null],
  CredentialError: [EXIT.config, 'nothing was sent'],
  NetworkError: [EXIT.unreachable, MAYBE],
  NonceError: [EXIT.unreachable, MAYBE],
  NotFoundError: [EXIT.unreachable, MAYBE],
  OrderMismatchError: [EXIT.internal, 'nothing was undone'],
  ProtocolError: [EXIT.internal, MAYBE],
  PublicRefusedError: [EXIT.usage, REFUSED],
  RefusedError: [EXIT.usage, REFUSED],
  ServerError: [EXIT.unreachable, MAYBE],
  ThrottledError: [EXIT.unreachable, MAYBE],
  TimeoutError: [EXIT.unreachable, MAYBE],
  UnauthorisedError: [EXIT.refused, 'the exchange refuses the key, its permissions or the token'],
  UnknownOutcomeError: [EXIT.unconfirmed, null],
};

/** What an error tells beside its name and message. */
const DETAILS =
  'status maybeApplied argument code fields params reason operation clientOrderId uniqueId order';

/** What is not a failed call of the client is thrown on. */
export function describeFailure(error: unknown): ApiFailure {
  if (!isClientError(error)) throw error;
  const { name, message } = error;
  const details = Object.entries(error).filter(([key]) => DETAILS.split(' ').includes(key));
  const [exitCode, said] = ENDS[name];
  return {
    exitCode,
    sentence: [message, hintOf(error, said)].filter((part) => part !== null).join('; '),
    error: { name, message, ...Object.fromEntries(details) },
  };
}

function hintOf(error: ClientError, said: string | null): string | null {
  if (error.name === 'ArgumentError')
    return error.argument === 'amountIn' ? 'name it with --amount-in or in the JSON' : null;
  if (error.name === 'RefusedError') return REFUSED.replace(',', ` with code ${error.code},`);
  return said === MAYBE && !error.maybeApplied ? null : said;
}
