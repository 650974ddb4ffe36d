import type { Scope } from './harness.ts';
import { type Heard, serve } from './http-server.ts';

/** Answers with a status, or with nothing at all. */
export type Manner = number | 'hangs';

export interface Told {
  readonly name: string;
  readonly event: string;
  readonly level: string;
  readonly text: string;
  readonly markets: readonly string[];
  readonly count: number;
}

/** Whoever is told, over real HTTP on the loopback. */
export interface Receiver {
  readonly url: string;
  readonly posts: Heard[];
  /** The bodies of what was posted about this event, as JSON. */
  readonly told: (event: string) => readonly Told[];
  behave(manner: Manner): void;
}

export async function startReceiver(scope: Scope): Promise<Receiver> {
  const posts: Heard[] = [];
  let manner: Manner = 200;
  const url = await serve(scope, (heard, response) => {
    posts.push(heard);
    if (manner !== 'hangs') response.writeHead(manner).end('ok');
  });
  return {
    url,
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
