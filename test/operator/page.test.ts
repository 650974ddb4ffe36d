import { createHash } from 'node:crypto';
import { createContext, runInContext, Script } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { Snapshot } from '../../src/core/view.ts';
import type { Cancellation } from '../../src/operator/cancellations.ts';
import { PAGE_POLICY, PAGE_STYLE, renderPage } from '../../src/operator/page.ts';
import { PAGE_SCRIPT } from '../../src/operator/page-script.ts';
import { VIEW_SOURCE, viewPage } from '../../src/operator/page-view.ts';
import { type Look, sayTime } from '../../src/operator/page-words.ts';
import { describeStatus, type StatusDocument } from '../../src/operator/status.ts';
import type { RecentEvent } from '../../src/ports.ts';
import { sampleMarket, sampleSnapshot } from './sample-snapshot.ts';

const NOW = 1_795_000_010;
const HOSTILE = `"><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;`;
const LOADED: Look = {
  elapsedSeconds: 0,
  now: NOW,
  gone: null,
  heardAt: NOW,
  link: 'none',
  find: '',
  page: 0,
};

interface Made {
  readonly events?: readonly RecentEvent[];
  readonly cancellations?: readonly Cancellation[];
  readonly version?: string;
}

function documentOf(
  changes: Partial<Snapshot> = {},
  { events = [], cancellations = [], version = '1.2.3' }: Made = {},
): StatusDocument {
  const now = { ...createSystemClock().now(), wallMs: NOW * 1000 };
  const input = { snapshot: sampleSnapshot(changes), events, cancellations, version, now };
  return describeStatus({ ...input, startedAtWallMs: 1_795_000_000_000 }, { limit: 200 });
}

const look = (changes: Partial<Snapshot>, made?: Made, at: Partial<Look> = {}) => {
  const { summary, body } = viewPage(documentOf(changes, made), { ...LOADED, ...at });
  // As a person reads it: without tags.
  return { ...summary, html: body.html, text: body.html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ') };
};
const bot = (state: 'stale' | 'alive' | 'failed', name = 'main', ageMs = 1200) =>
  ({ bot: name, mode: 'beat', state, evidenceAgeMs: ageMs, ttlMs: 15_000 }) as const;
const base = (changes: Partial<Snapshot['bases'][number]>) => [
  {
    url: 'http://127.0.0.1:1',
    up: false,
    pingMs: null,
    lastProblem: 'HTTP 503',
    used: true,
    outage: false,
    ...changes,
  },
];
const paused = (untilWallMs: number | null, market = 'BTC_USDT') =>
  sampleMarket({
    market,
    state: 'paused',
    wanted: false,
    firesByWallMs: null,
    hold: { why: 'paused', untilWallMs },
  });
/** A market whose bot died: nobody renews it, and its timer runs. */
const dying = sampleMarket({ state: 'suspended', wanted: false, firesByWallMs: (NOW + 19) * 1000 });
const fired: Cancellation = {
  market: 'BTC_USDT',
  certainty: 'certain',
  why: 'bot_stale',
  byWallMs: (NOW - 5) * 1000,
  count: 1,
};

describe('the status page', () => {
  test('says without any script what is armed, for how long and what a stop would do', () => {
    const html = renderPage(documentOf());
    for (const part of [
      'The timer is armed.',
      'Nothing needs attention.',
      'BTC_USDT',
      '55\u00a0s',
      'deletes the timer: the orders stay',
      'An outage of the exchange shorter than 52 s cancels nothing.',
      'Lowest slack 85\u00a0%',
    ])
      expect(html).toContain(part);
  });

  const expiry = sayTime(1_795_000_060);
  test.each<[string, string, Partial<Snapshot>, Made?]>([
    ['✓ 1/1 armed', 'The timer is armed', {}],
    ['! BTC_USDT is paused', 'Nothing is guarded: BTC_USDT is paused', { markets: [paused(null)] }],
    [
      '! BTC_USDT waits for a renewal to succeed',
      `; else orders are cancelled from ${expiry} on`,
      { markets: [sampleMarket({ state: 'retrying' })] },
    ],
    [
      '× The exchange refuses ETH_USDT',
      `orders are cancelled from ${expiry} on`,
      { markets: [sampleMarket(), sampleMarket({ market: 'ETH_USDT', state: 'rejected' })] },
    ],
    ['! http://127.0.0.1:1 answers no ping', 'answers no ping', { bases: base({}) }],
    [
      '! ETH_USDT is paused until',
      `until ${sayTime(NOW + 300)}: new orders are not guarded`,
      { markets: [sampleMarket(), paused((NOW + 300) * 1000, 'ETH_USDT')] },
    ],
    [
      '× Orders of 1 market may be cancelled',
      'may be cancelled at any moment',
      { markets: [sampleMarket({ state: 'retrying' }), sampleMarket({ market: 'B', state: 'expired' })] },
    ],
    ['× The exchange refuses the API key', 'no timer can be renewed', { authorised: false }],
    [
      '× No renewal gets through',
      `orders of 1 market are cancelled from ${expiry} on if it lasts`,
      { bases: base({ outage: true }) },
    ],
    [
      '× No renewal gets through',
      `orders of 1 market are cancelled from ${expiry} on if it lasts`,
      { bases: [...base({ outage: true }), ...base({ url: 'http://127.0.0.1:2', up: true, used: false })] },
    ],
    [
      '× Orders of BTC_USDT are cancelled by',
      `by ${sayTime(NOW + 19)}: the bot main is silent`,
      { markets: [dying], bots: [bot('stale')] },
    ],
    [
      '× Orders of BTC_USDT were cancelled by',
      `by ${sayTime(NOW - 5)}: its bot was silent`,
      {},
      { cancellations: [fired] },
    ],
    ['! stopping', 'The daemon is stopping', { phase: 'stopping' }],
  ])('headline and tab show the worst: %s', (title, sentence, changes, made) => {
    const seen = look(changes, made);
    expect(seen.title.replace('Nothing is guarded: ', '')).toContain(title);
    expect(seen.sentence).toContain(sentence);
    expect(renderPage(documentOf(changes, made))).toContain(`data-tone="${seen.tone}"`);
    expect(seen.tone).toBe(title.startsWith('✓') ? 'ok' : title.startsWith('!') ? 'warn' : 'bad');
  });

  test('keeps in sight whose orders were cancelled, when and why, and how to acknowledge it', () => {
    const gone = { ...fired, market: 'GONE_USDT', count: 3 };
    const possible = { ...gone, certainty: 'possible', why: 'unrenewed' } as const;
    const { text } = look({}, { cancellations: [fired, possible] });
    expect(text).toContain(`BTC_USDT : orders were cancelled by ${sayTime(NOW - 5)}: its bot was silent.`);
    expect(text).toMatch(
      /GONE_USDT : orders may have been cancelled since about \S+ UTC: no renewal was confirmed in time \(3 times\)/,
    );
    expect(text).toContain('killswitchd ack , or for one of them killswitchd ack BTC_USDT');
    expect(look({}).text).not.toContain('killswitchd ack');
    // What was acknowledged did happen.
    expect(look({}).text).not.toMatch(/Orders cancelled none since/);
  });

  test('the headline says of several markets what is known, when and why, and no more than that', () => {
    const other = { ...fired, market: 'ETH_USDT' };
    const possible = { ...other, certainty: 'possible', why: 'unrenewed' } as const;
    const headline = (...cancellations: readonly Cancellation[]) => look({}, { cancellations }).sentence;
    const at = sayTime(NOW - 5);
    expect(headline(fired, other)).toBe(`Orders of 2 markets were cancelled by ${at}: the bot was silent`);
    expect(headline(fired, possible)).toBe(`Orders of 2 markets were or may have been cancelled by ${at}`);
    expect(headline({ ...possible, market: 'BTC_USDT' }, { ...possible, byWallMs: (NOW - 1) * 1000 })).toBe(
      `Orders of 2 markets may have been cancelled since about ${at}: no renewal was confirmed in time`,
    );
    const tripped = { ...fired, why: 'tripped', byWallMs: (NOW + 5) * 1000 } as const;
    expect(headline(tripped, { ...tripped, market: 'ETH_USDT' })).toBe(
      `Orders of 2 markets are cancelled by ${sayTime(NOW + 5)}: an operator tripped them`,
    );
  });

  test('a market that is refused says when it is tried again, until that time or the daemon is gone', () => {
    const problem = { lastProblem: 'HTTP 422: unknown', retryWallMs: (NOW + 40) * 1000 };
    const markets = [sampleMarket({ state: 'rejected', ...problem })];
    const said = `HTTP 422: unknown; tried again at ${sayTime(NOW + 40)}`;
    expect(look({ markets }).text).toContain(said);
    for (const then of [{ now: NOW + 41 }, { gone: 'lost' } as const])
      expect(look({ markets }, {}, then).text).not.toContain('tried again');
  });

  test('in an outage nothing is green at the top, and what may stand is not called none', () => {
    const bases = base({ outage: true });
    const arming = sampleMarket({ state: 'arming', guaranteedMs: null });
    const seen = look({ bases, markets: [sampleMarket({ market: 'ETH_USDT', state: 'retrying' })] });
    expect(seen.html).toMatch(/<header data-tone="bad">.*data-tone="idle">.*ready/);
    expect(seen.text).not.toContain('no answer yet');
    expect(seen.text).toContain(
      `left; orders are cancelled from ${sayTime(1_795_000_060)} on unless a renewal succeeds`,
    );
    expect(look({ bases, markets: [arming] }).text).toContain(
      `no timer is confirmed; one that may still run fires by ${sayTime(1_795_000_063)}`,
    );
    const expired = sampleMarket({ state: 'expired', guaranteedMs: -10 });
    const possible = { ...fired, certainty: 'possible', why: 'unrenewed' } as const;
    const late = look({ bases, markets: [expired] }, { cancellations: [possible] });
    expect(late.text).toContain(
      `orders may have been cancelled, and are by ${sayTime(1_795_000_063)} unless a renewal succeeds`,
    );
    // The record says it with the time: it is not said again without.
    expect(late.rest).not.toContain('at any moment');
  });

  test('of more markets than it shows it counts all, and knows the first of all that is cancelled', () => {
    const markets = Array.from({ length: 300 }, (_, index) =>
      sampleMarket({
        market: `M${index}_USDT`,
        state: 'suspended',
        wanted: false,
        firesByWallMs: (NOW + 20 + index) * 1000,
      }),
    );
    const seen = look({ markets, bots: [bot('stale')] });
    expect(seen.sentence).toBe(
      `Orders of 300 markets are cancelled by ${sayTime(NOW + 319)}: the bot main is silent`,
    );
    const bases = base({ up: true, pingMs: 1, outage: true });
    const armed = markets.map(({ market }, index) =>
      sampleMarket({ market, guaranteedMs: 50_000 - index, expiryWallMs: (NOW + 400 - index) * 1000 }),
    );
    expect(look({ markets: armed, bases }).sentence).toContain(
      `orders of 300 markets are cancelled from ${sayTime(NOW + 101)} on`,
    );
    expect(look({ markets: armed, bases }).text).toMatch(/Least time left 101 s M299_USDT/);
  });

  test('shows the worst first, by bot where there are several, and 50 on a page', () => {
    const markets = Array.from({ length: 120 }, (_, index) =>
      sampleMarket({
        market: `M${index}_USDT`,
        bot: index % 2 === 0 ? 'maker' : 'taker',
        ...(index === 77 ? { state: 'expired' as const } : {}),
      }),
    );
    const bots = [bot('alive', 'maker'), bot('failed', 'taker')];
    const namesOn = (at: Partial<Look>) =>
      [...look({ markets, bots }, {}, at).html.matchAll(/<h3>(M\d+)_USDT/g)].map(([, name]) => name);
    expect(namesOn({})[0]).toBe('M77');
    expect(namesOn({})).toHaveLength(50);
    expect(namesOn({ page: 2 })).toHaveLength(20);
    expect(new Set([0, 1, 2].flatMap((page) => namesOn({ page }))).size).toBe(120);
    const found = [11, ...Array.from({ length: 10 }, (_, index) => 110 + index)].map((n) => `M${n}`);
    expect(new Set(namesOn({ find: 'm11' }))).toEqual(new Set(found));
    expect(look({ markets, bots }).text).toContain('Page 1 of 3');
    expect(look({ markets, bots }).text).toMatch(/Worst bot failed/);
  });

  test.each([
    ['paused', (NOW + 583) * 1000, `Paused by an operator until ${sayTime(NOW + 583)}, then armed again.`],
    ['disarmed', null, 'Disarmed by an operator.'],
    ['tripped', null, 'Tripped by an operator'],
    ['lapsed', null, 'Not armed again after its orders were cancelled'],
  ] as const)('says why a market is not guarded: %s', (why, untilWallMs, note) => {
    const state = why === 'paused' ? 'paused' : 'disarmed';
    const none = { wanted: false, guaranteedMs: null, firesByWallMs: null } as const;
    const held = sampleMarket({ ...none, state, hold: { why, untilWallMs } });
    expect(look({ markets: [held] }).text).toContain(note);
    const leaving = sampleMarket({ ...none, leaving: true });
    expect(look({ markets: [leaving] }).text).toContain(
      'No longer configured; shown until its timer is gone.',
    );
  });
});

describe('once the daemon is gone', () => {
  test('nothing claims to be armed or moves, and it says since when', () => {
    const seen = look({}, {}, { elapsedSeconds: 5, now: NOW + 5, gone: 'lost' });
    expect(seen).toMatchObject({
      tone: 'bad',
      word: 'no connection',
      title: '× no connection · killswitchd',
    });
    expect(seen.text).toContain(`No answer since ${sayTime(NOW)}.`);
    expect(seen.text).toContain('was armed');
    expect(seen.sentence).toBe(
      `The daemon does not answer: orders are cancelled from ${sayTime(1_795_000_060)} on unless something else renews the timers`,
    );
    expect(seen.text).toContain(
      `orders are cancelled by ${sayTime(1_795_000_063)} unless something else renews the timer`,
    );
    expect(seen.html).not.toMatch(/data-rate="-/);
  });

  test('no moment of the past is told as one to come', () => {
    const { text } = look({}, {}, { elapsedSeconds: 5, now: NOW + 600, gone: 'lost' });
    expect(text).toContain(
      `its time was up at ${sayTime(1_795_000_063)}: unless something else renewed the timer, the orders were cancelled`,
    );
    expect(text).not.toContain('are cancelled');
    expect(text).toContain(
      `The daemon does not answer: orders may have been cancelled since ${sayTime(1_795_000_060)}.`,
    );
  });

  test('one that ended is told from one that is lost, and its last word is kept', () => {
    const markets = [
      sampleMarket({ state: 'deleted', wanted: false, guaranteedMs: null, firesByWallMs: null }),
    ];
    const seen = look({ phase: 'stopped', ready: false, markets }, {}, { gone: 'ended' });
    expect(seen).toMatchObject({ sentence: 'The daemon has ended', title: '– ended · killswitchd' });
    expect(seen.text).toMatch(/The daemon was stopped at .* deleted .* no timer/);
  });

  test('a document of an earlier daemon, which lacks what was added since, is shown', () => {
    const { nextExpiry: _, runningDown: __, ...earlier } = documentOf();
    const { summary } = viewPage(earlier as StatusDocument, LOADED);
    expect(summary.sentence).toBe('The timer is armed');
    expect(viewPage(earlier as StatusDocument, { ...LOADED, gone: 'lost' }).summary.tone).toBe('bad');
  });

  test('one that ended and left timers is in the colour of trouble, and says by when they fire', () => {
    const left = { phase: 'stopped', ready: false, markets: [dying] } as const;
    const seen = look(left, { cancellations: [fired] }, { gone: 'ended' });
    expect(seen).toMatchObject({ tone: 'bad', title: '× ended · killswitchd' });
    expect(seen.sentence).toBe(
      `The daemon has ended: orders of BTC_USDT are cancelled by ${sayTime(NOW + 19)} unless something else renews the timer`,
    );
    expect(look(left, {}, { gone: 'ended', now: NOW + 60 }).sentence).toBe(
      `The daemon has ended: orders of BTC_USDT were cancelled by ${sayTime(NOW + 19)} unless something else renewed the timer`,
    );
    // Nobody is there to be told that it was seen.
    expect(seen.text).not.toContain('killswitchd ack');
  });
});

describe('what comes from outside', () => {
  const market = sampleMarket({
    market: HOSTILE,
    bot: HOSTILE,
    state: 'rejected',
    lastProblem: HOSTILE,
    onStop: HOSTILE,
    promise: [HOSTILE],
  });
  const changes: Partial<Snapshot> = {
    ready: false,
    notReady: [HOSTILE],
    markets: [market],
    bases: [{ url: HOSTILE, up: false, pingMs: null, lastProblem: HOSTILE, used: true, outage: true }],
    bots: [{ bot: HOSTILE, mode: HOSTILE, state: 'stale', evidenceAgeMs: null, ttlMs: null }],
  };
  const made: Made = {
    events: [{ atWallMs: 1, level: 'error', event: HOSTILE, market: HOSTILE, text: HOSTILE }],
    cancellations: [{ ...fired, market: HOSTILE }],
    version: HOSTILE,
  };

  test('is text on the page and in its script data', () => {
    const data = renderPage(documentOf(changes, made)).replace(PAGE_SCRIPT, '').replace(PAGE_STYLE, '');
    expect(data).not.toContain('<script>alert');
    expect(data).not.toContain('<img');
    expect(data).not.toContain(`onerror='`);
    expect(data.split('&#60;script&#62;alert(1)').length).toBeGreaterThan(10);
  });

  test('may not be loaded, framed or run: the policy lets exactly this script and this style run', () => {
    const html = renderPage(documentOf({ bases: [] }));
    const [, script = ''] = /<script>([^]*?)<\/script>/.exec(html) ?? [];
    const [, style = ''] = /<style>([^]*?)<\/style>/.exec(html) ?? [];
    const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
    expect(PAGE_POLICY).toContain(`script-src ${hash(script)};`);
    expect(PAGE_POLICY).toContain(`style-src ${hash(style)};`);
    expect(PAGE_POLICY).not.toContain('unsafe');
    expect(html).not.toMatch(/ style="| on\w+="|@import|url\(/);
    // The one place where text becomes HTML takes what the views made, which escape every value.
    expect(PAGE_SCRIPT.match(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(/g)).toEqual([
      'innerHTML',
    ]);
    for (const [, target] of html.matchAll(/(?:href|src)="([^"]*)"/g))
      expect(target).toMatch(/^(?:\/(?!\/)|#|data:image\/svg\+xml,)/);
  });

  test('is shown by the browser as the server rendered it', () => {
    const markets = [
      market,
      sampleMarket(),
      dying,
      sampleMarket({ market: 'SOL_USDT', state: 'arming', guaranteedMs: null, slackHistory: [] }),
    ];
    const status = documentOf({ ...changes, markets }, made);
    const looks: readonly Look[] = [
      LOADED,
      { ...LOADED, elapsedSeconds: 3.4, now: NOW + 3.4, link: 'stream', find: 'BTC' },
      { ...LOADED, elapsedSeconds: 70, now: NOW + 70, gone: 'lost', link: 'poll' },
      { ...LOADED, elapsedSeconds: 2, gone: 'ended' },
    ];
    const source = `${VIEW_SOURCE}\nJSON.stringify(looks.map((look) => viewPage(status, look, say)))`;
    const seen: unknown = JSON.parse(
      runInContext(
        source,
        createContext({ status, looks: JSON.parse(JSON.stringify(looks)) as unknown, Intl }),
      ),
    );
    expect(seen).toEqual(JSON.parse(JSON.stringify(looks.map((one) => viewPage(status, one)))));
    expect(() => new Script(PAGE_SCRIPT)).not.toThrow();
  });
});
