import { STATUS_CODES } from 'node:http';
import { gatewayPage, jsonReply } from './answer.ts';
import { MAX_BODY_BYTES } from './exchange-request.ts';
import type { ActiveFault, CannedReply, Fault, ReplyFate, Treatment } from './faults.ts';

type Verdict = Pick<Treatment, 'apply' | 'fate'>;

const OWN: ReplyFate = { kind: 'own' };

/**
 * Adds what one fault does to what the faults before it did: delays add up; of two that decide what the client is
 * told, the earlier one wins (null: this fault changes nothing). `random` is a number in [0, 1) for its jitter.
 */
export function applyFault(
  treatment: Treatment,
  active: ActiveFault,
  random: number,
  nowMs: number,
): Treatment | null {
  const { fault, id } = active;
  const hits = [...treatment.hits, { faultId: id, kind: fault.kind }];
  if (fault.kind === 'latency') {
    const ms = fault.ms + random * (fault.jitterMs ?? 0);
    return fault.when === 'after'
      ? { ...treatment, hits, replyWaitMs: treatment.replyWaitMs + ms }
      : { ...treatment, hits, waitMs: treatment.waitMs + ms };
  }
  if (fault.kind === 'slow-body') return { ...treatment, hits, bodyMs: treatment.bodyMs + fault.ms };
  if (fault.kind === 'grant') {
    return treatment.grantSeconds === null ? { ...treatment, hits, grantSeconds: fault.seconds } : null;
  }
  if (fault.kind === 'hang') {
    if (treatment.hang !== null) return null;
    const leftMs = active.endsAtMs === null ? null : active.endsAtMs - nowMs;
    const endsWithFault = leftMs !== null && leftMs <= (fault.ms ?? Number.POSITIVE_INFINITY);
    const ms = endsWithFault ? leftMs : (fault.ms ?? null);
    return { ...treatment, hits, hang: { faultId: id, ms, endsWithFault, mode: fault.mode } };
  }
  const decided = treatment.apply !== 'yes' || treatment.fate.kind !== 'own';
  return decided ? null : { ...treatment, hits, ...verdictOf(fault, id) };
}

function verdictOf(
  fault: Exclude<Fault, { kind: 'latency' | 'slow-body' | 'hang' | 'grant' }>,
  id: number,
): Verdict {
  switch (fault.kind) {
    case 'reset':
      return { apply: fault.when === 'after' ? 'yes' : 'no', fate: { kind: 'reset' } };
    case 'status':
      return instead(statusReply(fault.status, fault.body ?? 'json'));
    case 'refusal':
      return instead(refusalReply(fault));
    case 'cache':
      return { apply: 'yes', fate: { kind: 'cached', faultId: id } };
    case 'throttle':
      return instead(gatewayPage(429, 'Too Many Requests'));
    case 'stale-nonce':
      return instead(jsonReply(429, { code: 0, message: 'Too many requests.', errors: {} }));
    case 'maintenance':
      return instead(gatewayPage(503, 'Service Temporarily Unavailable'));
    case 'garbage':
      return { apply: 'yes', fate: { kind: 'canned', reply: GARBAGE } };
    case 'cut-off':
      return { apply: 'yes', fate: { kind: 'cut-off' } };
    case 'oversize':
      return { apply: 'yes', fate: { kind: 'padded', bytes: MAX_BODY_BYTES + 1 } };
    case 'wrong-shape':
      return { apply: 'yes', fate: { kind: 'canned', reply: jsonReply(200, { code: 0 }) } };
    case 'unacknowledged':
      return { apply: 'yes', fate: { kind: 'canned', reply: statusReply(500, 'json') } };
    case 'lie':
      return { apply: 'pretend', fate: OWN };
    case 'redirect':
      return instead({
        status: 302,
        headers: { location: fault.location ?? '/api/v4/public/ping' },
        body: '',
      });
    case 'unauthorised':
      return instead(jsonReply(401, { code: 10, message: 'Unauthorized request.', errors: {} }));
    case 'forbidden':
      return instead(
        jsonReply(403, {
          code: 4,
          message: 'This API Key is not authorized to perform this action.',
          errors: {},
        }),
      );
  }
}

const GARBAGE: CannedReply = {
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: Buffer.from([0x7b, 0xff, 0xfe, 0x00, 0x22, 0x9f, 0x3c, 0x0a]),
};

function instead(reply: CannedReply): Verdict {
  return { apply: 'no', fate: { kind: 'canned', reply } };
}

/** The JSON from 500 on is what the live exchange sends with a 500. */
function statusReply(status: number, body: 'json' | 'html'): CannedReply {
  const title = STATUS_CODES[status] ?? (status < 500 ? 'Client Error' : 'Server Error');
  if (body === 'html') return gatewayPage(status, title);
  return status < 500
    ? jsonReply(status, { code: 0, message: `${title}.`, errors: {} })
    : jsonReply(status, { error: ['Internal server error.'] });
}

function refusalReply(fault: Extract<Fault, { kind: 'refusal' }>): CannedReply {
  const { status = 422, code = 30, message = 'Validation failed', errors = {} } = fault;
  return jsonReply(status, { code, message, errors });
}
