import { createTransport } from '../exchange/transport.ts';
import type { WireResult } from '../exchange/wire.ts';
import type { Prober } from '../liveness/http.ts';
import type { Clock } from '../ports.ts';
import type { Posted, Poster } from '../telemetry/notifications.ts';

/** Asks URLs of one origin at a time. It shares no connection and no lookup of a name with renewals. */
function createRequester(clock: Clock, forgetsNames = false) {
  let open: { readonly origin: string; readonly wire: ReturnType<typeof createTransport> } | null = null;
  const wireTo = (origin: string) => {
    if (open?.origin !== origin) {
      void open?.wire.close();
      open = { origin, wire: createTransport({ clock, bases: [origin], connections: 1 }, forgetsNames) };
    }
    return open.wire;
  };
  return {
    /** Asks with GET where `body` is null. Never rejects. */
    ask(url: string, body: string | null, withinMs: number, dropsBody: boolean, signal?: AbortSignal) {
      const { origin, pathname, search } = new URL(url);
      const type = body === null ? {} : { 'content-type': 'application/json' };
      const headers = { accept: '*/*', 'user-agent': 'killswitchd', ...type };
      const method = body === null ? ('GET' as const) : ('POST' as const);
      const content = () => ({ headers, body });
      const always = { fresh: false, mayWrite: () => true, dropsBody };
      const request = { base: origin, method, path: pathname + search, content, ...always };
      return new Promise<WireResult>((resolve) => {
        const giveUp = wireTo(origin).send(request, (result) => {
          cancelDeadline();
          signal?.removeEventListener('abort', giveUp);
          resolve(result);
        });
        const cancelDeadline = clock.after(withinMs, giveUp);
        signal?.addEventListener('abort', giveUp, { once: true });
      });
    },
    close: () => open?.wire.close() ?? Promise.resolve(),
  };
}

/** Asks a bot's URL again and again. The answer must have ended within the time given, or have brought 64 KiB. */
export function openHttpProber(clock: Clock, url: string): Prober {
  const requester = createRequester(clock, true);
  return {
    probe(timeoutMs, done) {
      void requester.ask(url, null, timeoutMs, true).then((result) => {
        if (result.kind === 'response') {
          const { status } = result;
          return done(status >= 200 && status < 300 ? null : `HTTP ${status}, not 2xx`);
        }
        return done(result.reason === 'timeout' ? `no whole answer within ${timeoutMs} ms` : result.detail);
      });
    },
    close: () => void requester.close(),
  };
}

/** Posts messages and pings. Never rejects. */
export function createPoster(clock: Clock): Poster {
  const requester = createRequester(clock);
  return {
    post: async (url, body, withinMs, signal) =>
      describe(await requester.ask(url.reveal(), body, withinMs, body !== null, signal), withinMs),
    close: requester.close,
  };
}

/** What healthchecks.io answers, with a 200, to a ping that it does not take: `OK (not found)`, `OK (rate limited)`. */
const NOT_TAKEN = /^OK \([a-z -]{1,40}\)$/;

/** Tells only the kind of a failure: its details may name the address, which is a secret. */
function describe(result: WireResult, withinMs: number): Posted {
  const { status } = result;
  if (result.kind === 'response') {
    const said = result.body.toString('latin1').trim();
    return NOT_TAKEN.test(said) ? { failed: `HTTP ${status} ${said}` } : { status: result.status };
  }
  // The answer to a ping may be a long page: the ping was taken all the same.
  if (status !== undefined) return { status };
  const late = `no answer within ${(withinMs / 1000).toFixed(0)} s`;
  return { failed: result.reason === 'timeout' ? late : `no answer (${result.reason})` };
}
