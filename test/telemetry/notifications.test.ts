import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { Notice } from '../../src/core/notice.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { Message, Posted, Poster } from '../../src/telemetry/notifications.ts';
import { createNotifying, formatMessage } from '../../src/telemetry/notifications.ts';
import { until } from '../liveness/started.ts';
import { createVirtual } from '../liveness/virtual.ts';
import { EVERY_NOTICE } from './every-notice.ts';

const BEGAN = EVERY_NOTICE['outage-began'];
const ENDED = EVERY_NOTICE['outage-ended'];
const lapsed = (market: string): Notice => ({ ...EVERY_NOTICE.lapsed, market });
const stale = (bot: string): Notice => ({ ...EVERY_NOTICE.bot, bot });
const LEFT = {
  market: 'AAA_USDT',
  firesByWallMs: 1_790_000_000_000,
  why: 'unconfirmed',
  confirmed: true,
} as const;
const STOPPED: Notice = { kind: 'stopped', left: [LEFT] };

/** Notifications to a receiver that answers as the test says. */
function play(answer: (message: Message) => Posted | Promise<Posted>, clock = createSystemClock()) {
  const posted: (Message & { readonly time: string })[] = [];
  const pinged: string[] = [];
  const said: string[] = [];
  const failures: string[] = [];
  const say = (_: unknown, text: string) => void said.push(text);
  const logger = { warn: say, info: say } as unknown as Log['logger'];
  const poster: Poster = {
    post: async (to, body, withinMs, signal) => {
      if (body === null) {
        pinged.push(`${to.reveal()} ${clock.now().wallMs}`);
        return { status: 200 };
      }
      const message = JSON.parse(body) as (typeof posted)[number];
      posted.push(message);
      const late = new Promise<Posted>((resolve) => {
        clock.after(withinMs, () => resolve({ failed: 'late' }));
        signal?.addEventListener('abort', () => resolve({ failed: 'given up' }));
      });
      return Promise.race([answer(message), late]);
    },
    close: async () => {},
  };
  const url = { reveal: () => 'https://receiver.example' };
  const notify = { format: 'json', name: 'main', url, pingUrl: null, pingEverySeconds: 60 } as const;
  const notifying = createNotifying({
    clock,
    bases: ['https://exchange.example'],
    notify,
    log: { logger },
    messages: poster,
    pings: poster,
    onFailure: (what) => void failures.push(what),
  });
  const tell = (notice: Notice) => notifying.observe(notice, clock.now());
  return { posted, pinged, said, failures, tell, notify, notifying, close: () => notifying.close() };
}
const events = (posted: readonly Message[]) => posted.map(({ event }) => event);

test('two thousand markets that lapse together are one message, with the first names and the count', async () => {
  const { posted, tell, close } = play(() => ({ status: 200 }));
  for (let index = 0; index < 2000; index += 1) tell(lapsed(`M${index}_USDT`));
  tell(BEGAN);
  await until('a message', () => posted.length === 1);
  const startMs = performance.now();
  await until('both messages', () => posted.length === 2);
  expect(performance.now() - startMs).toBeGreaterThan(900);
  expect(posted[0]).toMatchObject({ event: 'lapsed', level: 'error', count: 2000 });
  expect(posted[0]?.markets).toHaveLength(20);
  expect(posted[0]?.text).toMatch(/^M0_USDT LAPSED: .* In all 2000 markets: M0_USDT, M1_USDT, /);
  expect(String(posted[0]?.text).length).toBeLessThan(1000);
  await close();
  expect(events(posted)).toEqual(['lapsed', 'outage-began']);
});

test('a message that fails is tried again, and one that is refused for good makes room for the next', async () => {
  let fails = 1;
  const { posted, said, failures, tell, close } = play(({ event }) => {
    if (event === 'lapsed') return { status: 404 };
    fails -= 1;
    return fails >= 0 ? { status: 503 } : { status: 200 };
  });
  tell(lapsed('AAA_USDT'));
  tell({ kind: 'authorised-again' });
  await until('three posts', () => posted.length === 3);
  expect(events(posted)).toEqual(['lapsed', 'authorised-again', 'authorised-again']);
  await until('the end of the problem', () => said.length === 3);
  expect(said).toEqual([
    'A notification was not delivered: lapsed: HTTP 404.',
    'A notification was not delivered: authorised-again: HTTP 503; it is tried again.',
    'A notification was delivered again.',
  ]);
  expect(failures).toEqual(['message', 'message']);
  await close();
});

test('of what comes and goes the last word is told last', async () => {
  let isAway = true;
  const { posted, tell, close } = play(() => ({ status: isAway ? 503 : 200 }));
  tell(BEGAN);
  await until('a post that fails', () => posted.length === 1);
  tell(ENDED);
  tell(BEGAN);
  tell({ ...ENDED, lastedMs: 7000 });
  isAway = false;
  await until('all of them', () => posted.length === 4);
  expect(events(posted).slice(1)).toEqual(['outage-began', 'outage-began', 'outage-ended']);
  expect(posted[3]).toMatchObject({ count: 2, text: expect.stringContaining('after 7 s') });
  await close();
});

test('a message that nobody is to be told any more was not delivered', async () => {
  const { posted, said, tell, notify, notifying, close } = play(() => ({ status: 503 }));
  tell(lapsed('AAA_USDT'));
  await until('a post that fails', () => said.length === 1);
  notifying.follow({ ...notify, url: null });
  tell(lapsed('BBB_USDT'));
  await sleep(2500);
  expect(posted).toHaveLength(1);
  expect(said).toEqual(['A notification was not delivered: lapsed: HTTP 503; it is tried again.']);
  await close();
});

test('an end gives up what hangs, says first what a stop left, then what was held up in its order, and is over in time', async () => {
  let hangs = true;
  const { posted, tell, close } = play(() => (hangs ? new Promise(() => {}) : { status: 200 }));
  tell(BEGAN);
  await until('a post that hangs', () => posted.length === 1);
  tell(ENDED);
  tell(STOPPED);
  hangs = false;
  await close();
  expect(events(posted).slice(1)).toEqual(['stopped', 'outage-began', 'outage-ended']);
});

test('an end tells in one message of what was held up and of what waited behind it', async () => {
  let status = 503;
  const { posted, tell, close } = play(() => ({ status }));
  tell(stale('maker'));
  await until('a post that failed', () => posted.length === 1);
  tell(stale('taker'));
  status = 200;
  await close();
  expect(posted).toHaveLength(2);
  expect(posted[1]).toMatchObject({ event: 'bot-stale', count: 2, time: posted[0]?.time });
  expect(posted[1]?.text).toMatch(/^Bot maker is silent: .* In all 2 bots: maker, taker\.$/);
});

test('an end beside a receiver that hangs takes no longer than it may, and what it cuts short has not failed', async () => {
  const { posted, said, tell, close } = play(() => new Promise(() => {}));
  tell(lapsed('AAA_USDT'));
  await until('a post that hangs', () => posted.length === 1);
  tell(STOPPED);
  const startMs = performance.now();
  await close();
  expect(performance.now() - startMs).toBeLessThan(3000);
  expect(posted[1]).toMatchObject({ event: 'stopped' });
  expect(said[0]).toBe('A notification was not delivered: stopped: late.');
  expect(said.join()).not.toContain('given up');
});

test('what every renewal brings, and a stop that left nothing, are no news', async () => {
  const { posted, tell, close } = play(() => ({ status: 200 }));
  tell({ kind: 'recovered', market: 'AAA_USDT', failures: 1 });
  tell({ kind: 'bot', bot: 'default', state: 'alive', firesByWallMs: null, unconfirmed: 0 });
  tell({ kind: 'stopped', left: [] });
  await close();
  expect(posted).toEqual([]);
});

test('a text is never longer than what Telegram takes', () => {
  const text = '🟠'.repeat(5000);
  const message = { event: 'lapsed', level: 'error', atWallMs: 0, text, markets: [], count: 1 } as const;
  for (const format of ['telegram', 'slack'] as const) {
    const { text: shown } = JSON.parse(formatMessage(message, format, 'main')) as { text: string };
    expect(shown.length).toBeLessThanOrEqual(4096);
    expect(shown.isWellFormed()).toBe(true);
  }
});

test('a dead man’s switch is pinged at the pace and the address of the last reload alone, and not after the wait of before', async () => {
  const { timeline, clock: virtual } = createVirtual();
  const { notify, notifying, pinged } = play(() => ({ status: 200 }), virtual);
  notifying.start(() => true);
  const pingUrl = (name: string) => ({ reveal: () => name });
  notifying.follow({ ...notify, pingUrl: pingUrl('one'), pingEverySeconds: 3600 });
  timeline.runUntil(10_000);
  for (let reload = 0; reload < 2; reload += 1) notifying.follow({ ...notify, pingUrl: pingUrl('two') });
  timeline.runUntil(80_000);
  notifying.follow(notify);
  timeline.runUntil(8_000_000);
  expect(pinged).toEqual(['one 1700000005000', 'two 1700000015000', 'two 1700000075000']);
  await notifying.close();
});
