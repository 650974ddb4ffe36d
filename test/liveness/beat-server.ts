import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'vitest';

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

function receivedFrom({ url, headers }: IncomingMessage, body: string): Received {
  const { pathname, searchParams } = new URL(url ?? '/', 'http://localhost');
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
export async function serveBeats(
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
  path: string | null,
) {
  const received: Received[] = [];
  let how: How = false;
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      received.push(receivedFrom(request, body));
      if (how === 'never') return;
      if (typeof how === 'object') return void response.end(how.body);
      const [status, reply] = typeof how === 'number' ? [how, REFUSAL] : [200, replyOf(how)];
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
    });
  });
  await new Promise<void>((resolve) => {
    if (path === null) server.listen(0, '127.0.0.1', resolve);
    else server.listen(path, resolve);
  });
  /** Is gone: connections are refused from now on. */
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  onTestFinished(close);
  const control = path === null ? `127.0.0.1:${(server.address() as AddressInfo).port}` : `unix:${path}`;
  return {
    /** unix:/PATH or HOST:PORT. */
    control,
    received,
    /** What is answered from now on: armed or not, a refusal with this status, this body, or nothing at all. */
    answer(next: How): void {
      how = next;
    },
    close,
  };
}
