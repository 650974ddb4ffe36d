import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'vitest';

/** One request that came in. */
export interface Post {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly atMs: number;
}

/** Answers: a status, a status after so long, or nothing at all. */
export type Manner = number | { readonly status: number; readonly afterMs: number } | 'hangs';

/** Whoever is told, over real HTTP on the loopback. */
export interface Receiver {
  readonly url: string;
  readonly posts: Post[];
  /** The bodies of what was posted about this event, as JSON. */
  readonly told: (event: string) => readonly Told[];
  behave(manner: Manner): void;
}

export interface Told {
  readonly name: string;
  readonly event: string;
  readonly level: string;
  readonly text: string;
  readonly time: string;
  readonly markets: readonly string[];
  readonly count: number;
}

export async function startReceiver({
  onTestFinished,
}: Pick<TestContext, 'onTestFinished'>): Promise<Receiver> {
  const posts: Post[] = [];
  let manner: Manner = 200;
  const answer = (response: ServerResponse) => {
    if (manner === 'hangs') return;
    const { status, afterMs } = typeof manner === 'number' ? { status: manner, afterMs: 0 } : manner;
    setTimeout(() => response.writeHead(status).end('ok'), afterMs);
  };
  const server = createServer((request: IncomingMessage, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      posts.push({ method: request.method ?? '', path: request.url ?? '', body, atMs: performance.now() });
      answer(response);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    posts,
    told: (event) =>
      posts
        .filter(({ body }) => body.startsWith('{"name"'))
        .map(({ body }) => JSON.parse(body) as Told)
        .filter((told) => told.event === event),
    behave(next) {
      manner = next;
    },
  };
}
