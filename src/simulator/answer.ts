/** What the simulated exchange sends back. Header names are lower case. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What an operation or a check came to, before it is put into the error shape of the operation. */
export type Answer = { readonly kind: 'done'; readonly status: number; readonly value: unknown } | Refusal;

export interface Refusal {
  readonly kind: 'refused';
  readonly status: number;
  readonly code: number;
  readonly message: string;
  /** Messages per parameter, as the private error object carries them. */
  readonly errors: Readonly<Record<string, readonly string[]>>;
  /** `json`: an error object. `html`: a page of the gateway before the exchange. `empty`: no body. */
  readonly form: 'json' | 'html' | 'empty';
}

export function done(value: unknown, status = 200): Answer {
  return { kind: 'done', status, value };
}

export function refuse(
  status: number,
  code: number,
  message: string,
  errors: Refusal['errors'] = {},
): Refusal {
  return { kind: 'refused', status, code, message, errors, form: 'json' };
}

/** Responses are not cached, as the API document says. */
const JSON_HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store' } as const;
const HTML_HEADERS = { 'content-type': 'text/html; charset=UTF-8' } as const;

/** The page that the gateway of the live exchange sends where the exchange itself is not reached. */
export function gatewayPage(status: number, title: string): Reply {
  const body = `<!DOCTYPE html>\n<html><head><title>${title}</title></head><body><center><h1>${status} ${title}</h1></center></body></html>\n`;
  return { status, headers: HTML_HEADERS, body };
}

/** A reply with a JSON body. */
export function jsonReply(status: number, value: unknown): Reply {
  return { status, headers: JSON_HEADERS, body: JSON.stringify(value) };
}

/**
 * Puts an answer into the shape of the API document: private errors are `code`, `message`, `errors`; public ones are
 * `success`, `message`, `params`.
 */
export function renderAnswer(answer: Answer, audience: 'public' | 'private'): Reply {
  if (answer.kind === 'done') return jsonReply(answer.status, answer.value);
  if (answer.form === 'empty') return { status: answer.status, headers: {}, body: '' };
  if (answer.form === 'html') return gatewayPage(answer.status, answer.message);
  if (audience === 'public') {
    return jsonReply(answer.status, { success: false, message: answer.message, params: [] });
  }
  return jsonReply(answer.status, { code: answer.code, message: answer.message, errors: answer.errors });
}

/** One line that says why a request was refused, for the event log. */
export function reasonOf(refusal: Refusal): string {
  const details = Object.values(refusal.errors).flat();
  return details.length === 0 ? refusal.message : `${refusal.message}: ${details.join(' ')}`;
}
