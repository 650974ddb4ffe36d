import type { Scope } from '../process/harness.ts';
import { type Heard, open } from '../process/http-server.ts';

/** One word that reached the server. */
export interface Received {
  readonly word: string;
  readonly bot: string | null;
  readonly session: string | null;
  readonly seq: number | null;
  readonly authorization: string | undefined;
}

type How = boolean | number | 'never' | { readonly body: string };

/** The beat operations of the control listener, answered as a test says. */
export type BeatServer = Awaited<ReturnType<typeof serveBeats>>;

function receivedFrom({ path, headers, body }: Heard): Received {
  const { pathname, searchParams } = new URL(path, 'http://localhost');
  const said = body === '' ? {} : (JSON.parse(body) as Partial<Received>);
  return {
    word: pathname,
    bot: searchParams.get('bot') ?? said.bot ?? null,
    session: said.session ?? null,
    seq: said.seq ?? null,
    authorization: headers.authorization,
  };
}

const REFUSAL = { error: { code: 'refused', message: 'the token is not the right one' } };

function replyOf(armed: boolean) {
  const [expiresInSeconds, expiresAt] = [52.1, Date.now() / 1000 + 52.1];
  const market = { state: armed ? 'armed' : 'arming', armed, expiresInSeconds, expiresAt };
  const markets = { BTC_USDT: market, ETH_USDT: { ...market, state: 'armed', armed: true } };
  return { armed, counted: true, done: armed, bot: 'default', ttlSeconds: 15, markets };
}

/** Listens on a unix socket, or on the loopback where no path is given; closed when the test ends. */
export async function serveBeats(scope: Scope, path: string | null) {
  const received: Received[] = [];
  let how: How = false;
  const { at, close } = await open(
    scope,
    (heard, response) => {
      received.push(receivedFrom(heard));
      if (how === 'never') return;
      if (typeof how === 'object') return void response.end(how.body);
      const [status, reply] = typeof how === 'number' ? [how, REFUSAL] : [200, replyOf(how)];
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
    },
    path,
  );
  return {
    /** unix:/PATH or HOST:PORT. */
    control: path === null ? at : `unix:${at}`,
    received,
    /** What is answered from now on: armed or not, a refusal with this status, this body, or nothing at all. */
    answer(next: How): void {
      how = next;
    },
    close,
  };
}
