import { gatewayPage, jsonReply, type Reply } from '../simulator/answer.ts';
import type { NetworkOptions } from './network.ts';
import { type FaultKind, REQUEST_LIFETIME_MS } from './plan.ts';
import type { Sent } from './sent.ts';

export type Answer = Reply;

const SERVER_ERROR = jsonReply(500, { error: ['Internal server error.'] });

const THROTTLED = gatewayPage(429, 'Too Many Requests');

/** Answers of whatever stands before the exchange, to pings as well; nothing was carried out. */
const BEFORE_ALL: readonly (readonly [FaultKind, Answer])[] = [
  ['server-error', SERVER_ERROR],
  ['gateway-page', gatewayPage(503, 'Service Temporarily Unavailable')],
  ['throttled-page', THROTTLED],
];

/** Answers of the exchange itself that stand in for its own; nothing was carried out. */
const INSTEAD: readonly (readonly [FaultKind, Answer])[] = [
  ['throttled-json', jsonReply(429, { code: 0, message: 'Too many requests.', errors: {} })],
  ['unauthorised', jsonReply(401, { code: 10, message: 'Unauthorized request.' })],
  [
    'forbidden',
    jsonReply(403, { code: 4, message: 'This API Key is not authorized to perform this action.' }),
  ],
  [
    'bad-request',
    jsonReply(422, {
      code: 31,
      message: 'Validation failed',
      errors: { market: ['Market is not available.'] },
    }),
  ],
  ['bad-payload', jsonReply(400, { code: 9, message: 'Invalid payload.', errors: [] })],
  ['error-in-200', jsonReply(200, { code: 0, message: 'Something went wrong', errors: {} })],
];

/**
 * What the exchange, or a gateway before it, makes of a request that arrives now; null where it never answers.
 * `writtenMs` is when it was written.
 */
export function createGateway({
  timeline,
  faults,
  server,
  onLie,
}: NetworkOptions): (sent: Sent, writtenMs: number) => Answer | null {
  const { hits } = faults;

  /** Only what reached the exchange is sent on a second time: a gateway that refuses does not pass it on later. */
  function twin(sent: Sent, writtenMs: number): void {
    const fault = hits('duplicate', sent);
    if (fault === null) return;
    const atMs = Math.min(timeline.nowMs() + fault.sizeMs, writtenMs + REQUEST_LIFETIME_MS);
    timeline.at(atMs, () => server.handle(sent));
  }

  return (sent, writtenMs) => {
    if ((hits('black-hole', sent) ?? hits('base-silent', sent)) !== null) return null;
    for (const [kind, answer] of BEFORE_ALL) if (hits(kind, sent) !== null) return answer;
    if (sent.order === null) return server.handle(sent);
    for (const [kind, answer] of INSTEAD) if (hits(kind, sent) !== null) return answer;
    const lies = hits('lie', sent) !== null;
    if (lies) onLie(sent);
    const answer = lies ? server.pretend(sent) : server.handle(sent);
    twin(sent, writtenMs);
    if (hits('unacknowledged', sent) !== null) return SERVER_ERROR;
    return hits('unacknowledged-page', sent) === null ? answer : THROTTLED;
  };
}
