import type { Config } from '../config/config.ts';
import type { Secret } from '../config/secrets.ts';
import { createTransport } from '../exchange/transport.ts';
import type { WireResult } from '../exchange/wire.ts';
import type { Cancel, Clock } from '../ports.ts';
import type { Log } from '../telemetry/log.ts';
import {
  createNotifications,
  formatMessage,
  type Message,
  type NotifyWhat,
  type Posted,
  sayPosted,
  wasTaken,
} from '../telemetry/notifications.ts';

type Notify = Config['notify'];

const PING_MS = 10_000;
const FIRST_PING_MS = 5000;
const CLOSE_MS = 2000;

/** An HTTP connection of its own, so that nothing here shares one, or a lookup, with a renewal. */
export function createPoster(clock: Clock) {
  let open: { readonly origin: string; readonly wire: ReturnType<typeof createTransport> } | null = null;
  const wireTo = (origin: string) => {
    if (open?.origin !== origin) {
      void open?.wire.close();
      open = { origin, wire: createTransport({ clock, bases: [origin], connections: 1 }) };
    }
    return open.wire;
  };
  return {
    /** Posts a body as JSON, or asks for the address where there is none. Never rejects. */
    post(url: Secret, body: string | null, withinMs: number, signal?: AbortSignal): Promise<Posted> {
      const { origin, pathname, search } = new URL(url.reveal());
      const request = {
        base: origin,
        method: body === null ? 'GET' : 'POST',
        path: pathname + search,
        headers: {
          'user-agent': 'killswitchd',
          ...(body === null ? {} : { 'content-type': 'application/json' }),
        },
        body,
        fresh: false,
        mayWrite: () => true,
        dropsBody: body !== null,
      } as const;
      return new Promise((resolve) => {
        const giveUp = wireTo(origin).send(request, (result) => {
          cancelDeadline();
          signal?.removeEventListener('abort', giveUp);
          resolve(describe(result, withinMs));
        });
        const cancelDeadline = clock.after(withinMs, giveUp);
        signal?.addEventListener('abort', giveUp, { once: true });
      });
    },
    close: () => open?.wire.close() ?? Promise.resolve(),
  };
}

/** What healthchecks.io answers, with a 200, to a ping that it does not take: `OK (not found)`, `OK (rate limited)`. */
const NOT_TAKEN = /^OK \([a-z -]{1,40}\)$/;

/** The details of a failure may name the address: only its kind is told. */
function describe(result: WireResult, withinMs: number): Posted {
  const { status } = result;
  if (result.kind === 'response') {
    const said = result.body.toString('latin1').trim();
    return NOT_TAKEN.test(said) ? { failed: `HTTP ${status} ${said}` } : { status: result.status };
  }
  // A ping whose answer is a long page was taken all the same.
  if (status !== undefined) return { status };
  const late = `no answer within ${(withinMs / 1000).toFixed(0)} s`;
  return { failed: result.reason === 'timeout' ? late : `no answer (${result.reason})` };
}

/** Tells people over HTTP what happens, and a dead man's switch that all is well. */
export function createNotifying(options: {
  readonly clock: Clock;
  readonly bases: readonly string[];
  readonly notify: Notify;
  readonly log: Log;
  /** An attempt failed. */
  readonly onFailure: (what: NotifyWhat) => void;
}) {
  const { clock, bases, log, onFailure } = options;
  const [messages, pings] = [createPoster(clock), createPoster(clock)];
  let { notify } = options;
  const problems = { notification: '', ping: '' };
  /** Says a problem once, and that it is over. */
  const tell = (what: keyof typeof problems, problem: string | null) => {
    const before = problems[what];
    problems[what] = problem ?? '';
    if (problem !== null && problem !== before)
      log.logger.warn({ event: `${what}-failed` }, `A ${what} was not delivered: ${problem}.`);
    if (problem === null && before !== '')
      log.logger.info({ event: `${what}-delivered` }, `A ${what} was delivered again.`);
  };
  const notifications = createNotifications({
    clock,
    context: { bases },
    async post(message: Message, withinMs, signal) {
      if (notify.url === null) return { status: 204 };
      const body = formatMessage(message, notify.format, notify.name);
      const posted = await messages.post(notify.url, body, withinMs, signal);
      if (!wasTaken(posted)) onFailure('message');
      return posted;
    },
    isOn: () => notify.url !== null,
    onProblem: (problem) => tell('notification', problem),
  });
  let over = false;
  let cancelPing: Cancel = () => undefined;
  const pingAfter = (delayMs: number, isWell: () => boolean): void => {
    cancelPing = clock.after(delayMs, () => {
      pingAfter(notify.pingEverySeconds * 1000, isWell);
      if (notify.pingUrl === null || !isWell()) return;
      void pings.post(notify.pingUrl, null, PING_MS).then((posted) => {
        if (over) return;
        if (!wasTaken(posted)) onFailure('ping');
        tell('ping', wasTaken(posted) ? null : sayPosted(posted));
      });
    });
  };
  return {
    observe: notifications.observe,
    /** Puts the section of a new configuration in force. */
    follow(next: Notify): void {
      notify = next;
    },
    /** Pings while `isWell` says so. */
    start: (isWell: () => boolean) => pingAfter(FIRST_PING_MS, isWell),
    /** Posts what waits, and ends; within 2 s. */
    async close(): Promise<void> {
      over = true;
      cancelPing();
      await notifications.close(CLOSE_MS);
      await Promise.all([messages.close(), pings.close()]);
    },
  };
}
