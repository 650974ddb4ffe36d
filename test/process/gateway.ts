import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'vitest';

/** What a gateway answers with in the exchange's place. */
export interface GatewayAnswer {
  readonly status: number;
  readonly type: 'text/html' | 'application/json';
  readonly body: string;
}

/** An address of the exchange with a gateway before it, which may answer by itself and forward nothing. */
export interface Gateway {
  readonly url: string;
  /** From now on every request gets this answer; null: requests are forwarded again. */
  readonly answerWith: (answer: GatewayAnswer | null) => void;
  /** When it answered by itself, Unix milliseconds. */
  readonly answeredAtMs: () => readonly number[];
}

function page(status: number, title: string): GatewayAnswer {
  return { status, type: 'text/html', body: `<html><body><h1>${status} ${title}</h1></body></html>` };
}

function refusal(status: number, code: number, message: string): GatewayAnswer {
  return { status, type: 'application/json', body: JSON.stringify({ code, message, errors: {} }) };
}

/** The refusals that a gateway, or an exchange that has lost its key store for a moment, answers with. */
export const REFUSALS = {
  'a page with 401': page(401, 'Authorization Required'),
  'a page with 403': page(403, 'Forbidden'),
  'the refusal of a key': refusal(401, 10, 'Unauthorized request.'),
  'the refusal of a market': {
    status: 422,
    type: 'application/json',
    body: JSON.stringify({
      code: 31,
      message: 'Validation failed',
      errors: { market: ['Market is not available.'] },
    }),
  },
} as const satisfies Record<string, GatewayAnswer>;

function forward(target: string, agent: Agent, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { method, url, headers } = incoming;
  const onward = request(new URL(url ?? '/', target), { method, headers, agent }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on('error', () => outgoing.destroy());
  incoming.pipe(onward);
}

/** Opens a gateway before the exchange at `target`; it closes with the test. */
export async function openGateway(
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
  target: string,
): Promise<Gateway> {
  const agent = new Agent({ keepAlive: true });
  const answeredAtMs: number[] = [];
  let answer: GatewayAnswer | null = null;
  const server = createServer((incoming, outgoing) => {
    if (answer === null) return forward(target, agent, incoming, outgoing);
    const { status, type, body } = answer;
    answeredAtMs.push(Date.now());
    incoming.resume();
    outgoing.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
    outgoing.end(body);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    agent.destroy();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answerWith: (next) => {
      answer = next;
    },
    answeredAtMs: () => answeredAtMs,
  };
}
