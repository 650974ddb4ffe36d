import { createHash } from 'node:crypto';
import { createContext, runInContext, Script } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { Snapshot } from '../../src/core/view.ts';
import type { Cancellation } from '../../src/operator/cancellations.ts';
import { PAGE_POLICY, PAGE_STYLE, renderPage } from '../../src/operator/page.ts';
import { PAGE_SCRIPT, VIEW_SOURCE } from '../../src/operator/page-script.ts';
import { viewPage } from '../../src/operator/page-view.ts';
import { type Look, lookAtOnce } from '../../src/operator/page-words.ts';
import { describeStatus, type StatusDocument } from '../../src/operator/status.ts';
import type { RecentEvent } from '../../src/ports.ts';
import { sampleBot, sampleMarket, sampleSnapshot } from './sample-snapshot.ts';

const NOW = 1_795_000_010;
const HOSTILE = `"><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;`;
const LOADED = lookAtOnce({ now: NOW });

interface Made {
  readonly events?: readonly RecentEvent[];
  readonly cancellations?: readonly Cancellation[];
  readonly version?: string;
  /** What is searched for. */
  readonly find?: string;
}

function documentOf(
  changes: Partial<Snapshot> = {},
  { events = [], cancellations = [], version = '1.2.3', find = '' }: Made = {},
): StatusDocument {
  return describeStatus(
    {
      clock: { ...createSystemClock(), now: () => ({ monoMs: 0, bootMs: 0, wallMs: NOW * 1000 }) },
      snapshot: () => sampleSnapshot(changes),
      recentEvents: () => events,
      cancellations: () => cancellations,
      version,
      startedAtWallMs: 1_795_000_000_000,
    },
    200,
    find,
  );
}

const look = (changes: Partial<Snapshot>, made?: Made, at: Partial<Look> = {}) => {
  const { summary, body } = viewPage(documentOf(changes, made), { ...LOADED, ...at });
  return { ...summary, html: body.html };
};
/** The page from its top to the markets as a person reads it: without tags, and without what is folded away. */
const textOf = (html: string) =>
  html
    .replace(/<div class="pair">[^]*/, '')
    .replaceAll(/<details>[^]*?<\/details>|<svg[^]*?<\/svg>/g, '')
    .split(/<\/(?:p|li|h1|h3|dl|div)>/)
    .map((part) =>
      part
        .replaceAll(/<[^>]*>/g, ' ')
        .replaceAll(/\s+/g, ' ')
        .trim(),
    )
    .filter((line) => line !== '' && !/^(?:Timers|The worst come first|Lowest slack|killswitchd)/.test(line));
const bot = (state: 'stale' | 'alive' | 'failed', name = 'main') => sampleBot({ state, bot: name });
const REFUSING = {
  url: 'http://127.0.0.1:1',
  up: false,
  pingMs: null,
  lastProblem: 'HTTP 503',
  used: true,
  outage: false,
};
const base = (changes: Partial<Snapshot['bases'][number]>) => [{ ...REFUSING, ...changes }];
const unarmed = { wanted: false, timer: 'none', guaranteedMs: null, firesByWallMs: null } as const;
const paused = (untilWallMs: number | null, market = 'BTC_USDT') =>
  sampleMarket({
    market,
    state: 'paused',
    ...unarmed,
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

const eth = (changes: Parameters<typeof sampleMarket>[0]) => sampleMarket({ market: 'ETH_USDT', ...changes });
const possible = { ...fired, market: 'ETH_USDT', certainty: 'possible', why: 'unrenewed', count: 3 } as const;
const tripped = { ...fired, why: 'tripped', byWallMs: (NOW + 5) * 1000 } as const;
const outage = base({ outage: true });
const unused = { ...REFUSING, url: 'http://127.0.0.1:2', up: true, used: false };
const refused = sampleMarket({
  state: 'rejected',
  lastProblem: 'HTTP 422: unknown',
  retryWallMs: (NOW + 40) * 1000,
});
const held = (why: 'disarmed' | 'tripped' | 'lapsed') =>
  sampleMarket({ ...unarmed, state: 'disarmed', hold: { why, untilWallMs: null } });
const many = Array.from({ length: 300 }, (_, index) => `M${index}_USDT`);
const dead = many.map((market, index) => ({ ...dying, market, firesByWallMs: (NOW + 20 + index) * 1000 }));
const armed = many.map((market, index) =>
  sampleMarket({ market, guaranteedMs: 50_000 - index, expiryWallMs: (NOW + 400 - index) * 1000 }),
);
const early = sampleMarket({ state: 'arming', timer: 'unconfirmed', guaranteedMs: null });
const late = eth({ state: 'expired', guaranteedMs: -10 });
const cut = sampleMarket({ state: 'disarmed', wanted: false, hold: { why: 'tripped', untilWallMs: null } });
const failed = eth({ ...unarmed, state: 'suspended', bot: 'taker' });
const twoBots = [bot('alive'), bot('failed', 'taker')];
const bothPerhaps = ['BTC_USDT', 'ETH_USDT'].map((market, index) => {
  return { ...possible, market, byWallMs: (NOW - 5 + 4 * index) * 1000 };
});
const left = { phase: 'stopped', ready: false, markets: [dying] } as const;
const done = { ...left, markets: [sampleMarket({ ...unarmed, state: 'deleted' })] };

const stopping = { phase: 'stopping', stopEndsWallMs: (NOW + 8) * 1000 } as const;
/** Nobody renews it, and no answer told of a timer. */
const unconfirmed = { ...dying, timer: 'unconfirmed', guaranteedMs: null, expiryWallMs: null } as const;
const inStop = [{ ...unconfirmed, timer: 'deleting' as const }, eth({ ...unarmed, state: 'deleted' })];
const disarming = sampleMarket({
  wanted: false,
  state: 'disarmed',
  timer: 'deleting',
  hold: { why: 'disarmed', untilWallMs: null },
});
const bare = sampleMarket({ ...unarmed, state: 'suspended' });
const unheard = sampleBot({
  state: 'starting',
  evidenceAgeMs: null,
  ttlMs: 5000,
  graceEndsWallMs: (NOW + 12) * 1000,
});
const second = { ...dying, market: 'ETH_USDT', bot: 'taker' };

const SIX = [
  refused,
  sampleMarket({ market: 'SOL_USDT', state: 'retrying' }),
  paused((NOW + 900) * 1000, 'ADA_USDT'),
  paused((NOW + 60) * 1000, 'ETH_USDT'),
  eth({ market: 'ETH_BTC', state: 'retrying', expiryWallMs: (NOW + 500) * 1000 }),
  eth({ market: 'ETH_EUR', state: 'rejected', guaranteedMs: null, expiryWallMs: null }),
];

const SCENES: readonly (readonly [string, Partial<Snapshot>, Made?, Partial<Look>?])[] = [
  ['all is well', {}],
  ['paused until armed', { markets: [paused(null)] }],
  ['one of two paused for a time', { markets: [sampleMarket(), paused((NOW + 583) * 1000, 'ETH_USDT')] }],
  ['disarmed', { markets: [held('disarmed')] }],
  ['tripped', { markets: [held('tripped')] }],
  ['not armed again after a lapse', { markets: [held('lapsed')] }],
  ['left out of the configuration', { markets: [sampleMarket({ ...unarmed, leaving: true })] }],
  ['an attempt failed', { markets: [sampleMarket({ state: 'retrying' })] }],
  ['one of two refused', { markets: [sampleMarket(), eth({ state: 'rejected' })] }],
  ['refused, and when it is tried again', { markets: [refused] }],
  ['refused, and tried again since', { markets: [refused] }, {}, { now: NOW + 41 }],
  ['refused, and the daemon gone', { markets: [refused] }, {}, { gone: 'lost' }],
  ['no ping is answered', { bases: base({}) }],
  ['expired', { markets: [sampleMarket({ state: 'retrying' }), eth({ state: 'expired' })] }],
  ['the key is refused', { authorised: false }],
  ['an outage', { bases: outage }],
  ['an outage beside an address that renewals do not take', { bases: [...outage, unused] }],
  ['an outage with a market that is retried', { bases: outage, markets: [eth({ state: 'retrying' })] }],
  ['an outage before the first renewal', { bases: outage, markets: [early] }],
  // The record says it with the time: it is not said again without.
  ['an outage that outlasted the timer', { bases: outage, markets: [late] }, { cancellations: [possible] }],
  ['a bot that died', { markets: [dying], bots: [bot('stale')] }],
  ['an operator tripped a market, and another bot has failed', { markets: [cut, failed], bots: twoBots }],
  ['an operator tripped the market of a bot that died', { markets: [cut], bots: [bot('stale')] }],
  ['a bot that died before any timer was confirmed', { markets: [unconfirmed], bots: [bot('stale')] }],
  [
    'bots that died, one of them before its timer was confirmed',
    { markets: [unconfirmed, second], bots: [bot('stale'), bot('failed', 'taker')] },
  ],
  ['a bot that died, and no timer any more', { markets: [bare], bots: [bot('stale')] }],
  ['disarmed in an outage', { bases: outage, markets: [disarming] }],
  ['refused, and its bot has died', { markets: [{ ...dying, state: 'rejected' }], bots: [bot('stale')] }],
  ['a bot that is not heard yet', { bots: [unheard] }],
  ['bots that are not heard yet', { bots: [unheard, { ...unheard, bot: 'taker' }] }],
  ['paused for a time, and its bot died', { markets: [paused((NOW + 583) * 1000)], bots: [bot('stale')] }],
  ['a shard without markets', { markets: [], bots: [] }],
  ['300 markets of a bot that died', { markets: dead, bots: [bot('stale')] }],
  ['300 markets in an outage', { markets: armed, bases: base({ up: true, pingMs: 1, outage: true }) }],
  ['orders were cancelled', {}, { cancellations: [fired] }],
  ['orders of two markets', {}, { cancellations: [fired, { ...fired, market: 'ETH_USDT' }] }],
  ['orders of two markets, one of them perhaps', {}, { cancellations: [fired, possible] }],
  ['orders of two markets, both perhaps', {}, { cancellations: bothPerhaps }],
  ['orders will be cancelled', {}, { cancellations: [tripped, { ...tripped, market: 'ETH_USDT' }] }],
  // Its bot has not been heard since.
  ['the daemon stops', { ...stopping, markets: [sampleMarket({ wanted: false, timer: 'deleting' })] }],
  ['the daemon stops in an outage', { ...stopping, bases: outage, markets: inStop }],
  ['the daemon stops, and leaves its timer', { ...stopping, markets: [sampleMarket({ wanted: false })] }],
  // It says no moment of which only those are known that were searched for.
  ['six markets of which three were searched for', { markets: SIX }, { find: 'eth' }],
  ['no answer any more', {}, {}, { elapsedSeconds: 5, now: NOW + 5, gone: 'lost' }],
  ['no answer for ten minutes', {}, {}, { elapsedSeconds: 5, now: NOW + 600, gone: 'lost' }],
  ['ended, and the timer deleted', done, {}, { gone: 'ended' }],
  // Nobody is there to be told that it was seen.
  ['ended, and a timer left', left, { cancellations: [fired] }, { gone: 'ended' }],
  ['ended, and a timer left that has fired', left, {}, { gone: 'ended', now: NOW + 60 }],
];

describe('the status page', () => {
  test('says without any script what is armed, for how long and what a stop would do', () => {
    const { html } = look({});
    // The data of the script say it all, too.
    expect(renderPage(documentOf())).toContain(html);
    const promise = 'An outage of the exchange shorter than 52 s cancels nothing.';
    for (const part of ['deletes the timer: the orders stay', promise, 'Lowest slack 85\u00a0%'])
      expect(html).toContain(part);
    // Never more than the promise.
    expect(look({ markets: [sampleMarket({ survivesMs: 7550 })] }).html).toContain('of</dt><dd>7.5\u00a0s');
    expect(look({ bots: [unheard] }).html).toContain(
      'no sign of life yet: its timers are not renewed from 11:07:02 UTC on',
    );
  });

  test('says the worst in headline and tab, and of each market what is known, when and why', async () => {
    const said = SCENES.map(([name, changes, made, at]) => {
      const { tone, title, sentence, rest, html } = look(changes, made, at);
      const lines = textOf(html).filter((line) => line !== `${sentence}.` && line !== `${rest}.`);
      return `# ${name}\n${tone}: ${title}\n${sentence} | ${rest}\n${lines.slice(0, 12).join('\n')}\n`;
    });
    // `npx vitest run test/operator/page.test.ts -u` writes it anew.
    await expect(said.join('\n')).toMatchFileSnapshot('page-words.txt');
  });

  test('shows the worst first, by bot where there are several, and 50 on a page', () => {
    const markets = Array.from({ length: 120 }, (_, index) =>
      sampleMarket({ market: `M${index}_USDT`, bot: index % 2 === 0 ? 'maker' : 'taker' }),
    );
    markets[77] = sampleMarket({ market: 'M77_USDT', bot: 'taker', state: 'expired' });
    const bots = [bot('alive', 'maker'), bot('failed', 'taker')];
    const namesOn = (at: Partial<Look>) =>
      [...look({ markets, bots }, {}, at).html.matchAll(/<h3>(M\d+)_USDT/g)].map(([, name]) => name);
    expect(namesOn({})[0]).toBe('M77');
    expect(namesOn({})).toHaveLength(50);
    expect(namesOn({ page: 2 })).toHaveLength(20);
    expect(new Set([0, 1, 2].flatMap((page) => namesOn({ page }))).size).toBe(120);
    const found = [11, ...Array.from({ length: 10 }, (_, index) => 110 + index)].map((n) => `M${n}`);
    expect(new Set(namesOn({ find: 'm11' }))).toEqual(new Set(found));
    const { html } = look({ markets, bots });
    expect(html).toContain('Page 1 of 3');
    expect(html).toMatch(/Worst bot<\/dt><dd>failed/);
  });

  test('of 300 bots shows 100, those that died first, and counts the others', () => {
    const bots = Array.from({ length: 300 }, (_, index) =>
      bot(index === 250 ? 'failed' : index === 280 ? 'stale' : 'alive', `bot${index}`),
    );
    const { html } = look({ bots });
    const names = [...html.matchAll(/<li data-key="(bot\d+)"/g)].map(([, name]) => name);
    expect(names.slice(0, 3)).toEqual(['bot250', 'bot280', 'bot0']);
    expect(names).toHaveLength(100);
    expect(html).toContain('and 200 more bots');
  });

  test('shows nothing green at the top in an outage', () => {
    const { html } = look({ bases: outage, markets: [sampleMarket({ state: 'retrying' })] });
    expect(html).toMatch(/<header data-tone="bad">.*data-tone="idle">.*ready/);
  });
});

describe('what comes from outside', () => {
  const texts = { market: HOSTILE, bot: HOSTILE, lastProblem: HOSTILE, onStop: HOSTILE, promise: [HOSTILE] };
  const market = sampleMarket({ ...texts, state: 'rejected' });
  const changes: Partial<Snapshot> = {
    ready: false,
    notReady: [HOSTILE],
    markets: [market],
    bases: [{ url: HOSTILE, up: false, pingMs: null, lastProblem: HOSTILE, used: true, outage: true }],
    bots: [sampleBot({ bot: HOSTILE, mode: HOSTILE, state: 'stale', evidenceAgeMs: null, ttlMs: null })],
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
    const early = sampleMarket({ market: 'SOL_USDT', state: 'arming', guaranteedMs: null, slackHistory: [] });
    const markets = [market, sampleMarket(), dying, early];
    const status = documentOf({ ...changes, markets }, made);
    const looks: readonly Look[] = [
      LOADED,
      { ...LOADED, elapsedSeconds: 3.4, now: NOW + 3.4, link: 'stream', find: 'BTC' },
      { ...LOADED, elapsedSeconds: 70, now: NOW + 70, gone: 'lost', link: 'poll' },
      { ...LOADED, elapsedSeconds: 2, gone: 'ended' },
    ];
    const source = `${VIEW_SOURCE}\nJSON.stringify(looks.map((look) => viewPage(status, look)))`;
    const context = createContext({ status, looks: structuredClone(looks), Intl });
    expect(runInContext(source, context)).toBe(JSON.stringify(looks.map((one) => viewPage(status, one))));
    expect(() => new Script(PAGE_SCRIPT)).not.toThrow();
  });
});
