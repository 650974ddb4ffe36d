import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Scope } from './harness.ts';

/** A request that has come in whole. */
export interface Heard {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** Serves plain HTTP until the test ends, at a socket or else at a free port of the loopback. */
export async function open(
  { onTestFinished }: Scope,
  answer: (heard: Heard, response: ServerResponse) => void,
  socket: string | null = null,
) {
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request;
      answer({ method, path, headers, body }, response);
    });
  });
  if (socket === null) server.listen(0, '127.0.0.1');
  else server.listen(socket);
  await once(server, 'listening');
  /** Is gone: connections are refused from now on. */
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  onTestFinished(close);
  return { at: socket ?? `127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** The same at the loopback; resolves with its address alone. */
export const serve = async (scope: Scope, answer: Parameters<typeof open>[1]): Promise<string> =>
  `http://${(await open(scope, answer)).at}`;
