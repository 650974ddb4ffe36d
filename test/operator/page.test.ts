import { createHash } from 'node:crypto';
import { createContext, runInContext, Script } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { MarketSnapshot, Snapshot } from '../../src/core/snapshot.ts';
import { PAGE_POLICY, renderPage } from '../../src/operator/page.ts';
import { PAGE_SCRIPT } from '../../src/operator/page-script.ts';
import { PAGE_STYLE } from '../../src/operator/page-style.ts';
import { VIEW_SOURCE, viewPage } from '../../src/operator/page-view.ts';
import { type Look, WORDS } from '../../src/operator/page-words.ts';
import { describeStatus, type RecentEvent, type StatusDocument } from '../../src/operator/status.ts';
import { sampleMarket, sampleSnapshot } from './sample-snapshot.ts';

const now = { ...createSystemClock().now(), wallMs: 1_795_000_010_000 };
const { time: formatTime } = WORDS;
const HOSTILE = `"><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;`;

const LOADED: Look = { elapsedSeconds: 0, gone: null, heardAt: 1_795_000_010, link: 'none' };

function documentOf(
  snapshot = sampleSnapshot(),
  events: readonly RecentEvent[] = [],
  version = '1.2.3',
): StatusDocument {
  return describeStatus({ snapshot, events, version, startedAtWallMs: 1_795_000_000_000, now }, 200);
}

/** The page without its own script and style, which are written by us. */
function dataOf(html: string): string {
  return html.replace(PAGE_SCRIPT, '').replace(PAGE_STYLE, '');
}

describe('status page', () => {
  test('says without any script what is armed, for how long and what a stop would do', () => {
    const html = renderPage(documentOf());
    expect(html).toContain('The timer is armed.');
    expect(html).toContain('BTC_USDT');
    expect(html).toContain('55\u00a0s');
    expect(html).toContain('deletes the timer: the orders stay');
    expect(html).toContain('An outage of the exchange shorter than 52 s cancels nothing.');
    expect(html).toContain('Lowest slack 85\u00a0%');
    expect(html).toContain('<dt>Survives outages of</dt><dd data-f="survives">52\u00a0s</dd>');
  });

  test('names the state as a word, and why the daemon is not ready', () => {
    const expired = sampleMarket({
      state: 'expired',
      guaranteedMs: -2000,
      lapses: 2,
      lastProblem: 'timeout',
    });
    const notReady = ['BTC_USDT is not confirmed armed (expired)'];
    const html = renderPage(documentOf(sampleSnapshot({ ready: false, notReady, markets: [expired] })));
    expect(html).toContain('>expired</span>');
    expect(html).toContain('>not ready</span>');
    expect(html).toContain(notReady[0]);
    expect(html).toContain('The timer is not armed.');
  });

  test('is not green where nothing is guarded', () => {
    const hold = { why: 'disarmed', untilWallMs: null } as const;
    const market = sampleMarket({ state: 'disarmed', wanted: false, guaranteedMs: null, hold });
    const html = renderPage(documentOf(sampleSnapshot({ markets: [market] })));
    expect(html).toContain('>not guarding</span>');
    expect(html).toContain('Nothing is guarded: BTC_USDT is disarmed.');
  });

  test('shows hostile texts from outside as text', () => {
    const market = sampleMarket({
      market: HOSTILE,
      bot: HOSTILE,
      state: 'rejected',
      lastProblem: HOSTILE,
      onStop: HOSTILE,
      promise: [HOSTILE],
    });
    const base = { url: HOSTILE, up: false, pingMs: null, lastProblem: HOSTILE, outage: true };
    const bot = { bot: HOSTILE, mode: HOSTILE, state: 'stale', evidenceAgeMs: null, ttlMs: null } as const;
    const event = { atWallMs: 1, level: 'error', event: HOSTILE, market: HOSTILE, text: HOSTILE } as const;
    const snapshot = sampleSnapshot({
      ready: false,
      notReady: [HOSTILE],
      markets: [market],
      bases: [base],
      bots: [bot],
    });
    const data = dataOf(renderPage(documentOf(snapshot, [event], HOSTILE)));
    expect(data).not.toContain('<script>alert');
    expect(data).not.toContain('<img');
    expect(data).not.toContain(`onerror='`);
    expect(data.split('&lt;script&gt;alert(1)&lt;/script&gt;').length).toBeGreaterThan(10);
  });

  test('asks nothing of any other host', () => {
    const html = renderPage(documentOf(sampleSnapshot({ bases: [] })));
    const addresses = [...html.matchAll(/(?:https?:)?\/\/[\w.-]+\.[\w.-]+/g)].map(([address]) => address);
    expect(addresses.filter((address) => !address.includes('www.w3.org'))).toEqual([]);
    expect(html).not.toMatch(/@import|url\(|<link rel="?stylesheet/);
    for (const [, target] of html.matchAll(/(?:href|src)="([^"]*)"/g)) {
      expect(target).toMatch(/^(?:\/(?!\/)|#|data:image\/svg\+xml,)/);
    }
  });

  test('the policy lets exactly this script and this style run', () => {
    const html = renderPage(documentOf());
    const [, script = ''] = /<script>([^]*?)<\/script>/.exec(html) ?? [];
    const [, style = ''] = /<style>([^]*?)<\/style>/.exec(html) ?? [];
    const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
    expect(PAGE_POLICY).toContain(`script-src ${hash(script)};`);
    expect(PAGE_POLICY).toContain(`style-src ${hash(style)};`);
    expect(PAGE_POLICY).not.toContain('unsafe');
    expect(html).not.toMatch(/ style="| on\w+="/);
    expect(PAGE_SCRIPT).not.toMatch(
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|<!--|<\/script/i,
    );
  });

  test('the browser computes from the document what the server rendered', () => {
    const status = documentOf(
      sampleSnapshot({
        markets: [
          sampleMarket(),
          sampleMarket({ market: 'ETH_USDT', state: 'retrying', guaranteedMs: 9000, failureStreak: 3 }),
          sampleMarket({ market: 'SOL_USDT', state: 'arming', guaranteedMs: null, slackHistory: [] }),
        ],
        bots: [{ bot: 'main', mode: 'none', state: 'alive', evidenceAgeMs: null, ttlMs: null }],
      }),
      [{ atWallMs: 1_795_000_000_000, level: 'warn', event: 'x', market: null, text: 'x' }],
    );
    const looks: readonly Look[] = [
      LOADED,
      { ...LOADED, elapsedSeconds: 3.4, link: 'stream' },
      { ...LOADED, elapsedSeconds: 70, gone: 'lost', link: 'poll' },
      { ...LOADED, elapsedSeconds: 2, gone: 'ended' },
    ];
    const browser = createContext({ status, looks, Intl });
    const source = `${VIEW_SOURCE}\nJSON.stringify(looks.map((look) => viewStatus(status, look, say, viewMarket)))`;
    expect(JSON.parse(runInContext(source, browser))).toEqual(looks.map((look) => viewPage(status, look)));
  });

  test('the script is one that a browser can read', () => {
    expect(() => new Script(PAGE_SCRIPT)).not.toThrow();
  });

  test('once the daemon is lost nothing claims to be armed or moves, and it says since when', () => {
    const { fields, lists } = viewPage(documentOf(), { ...LOADED, elapsedSeconds: 5, gone: 'lost' });
    const since = formatTime(LOADED.heardAt);
    expect(fields).toMatchObject({
      word: 'no connection',
      tone: 'bad',
      sentence: 'The daemon does not answer.',
      title: '× no connection · killswitchd',
      link: `since ${since}`,
    });
    expect(fields['gone']).toContain(`No answer since ${since}.`);
    expect(lists.markets[0]).toMatchObject({
      state: 'was armed',
      tone: 'idle',
      remaining: '50\u00a0s',
      remainingLabel: `left then; orders cancelled by ${formatTime(1_795_000_063)} unless renewed`,
      rate: '0',
    });
    expect(lists.bots[0]).toMatchObject({ state: 'was alive', rate: '0' });
    expect(lists.bases[0]).toMatchObject({ state: 'was up', tone: 'idle' });
  });

  test('a daemon that ended is told from one that is lost, and its last word is kept', () => {
    const markets = [
      sampleMarket({ state: 'deleted', wanted: false, guaranteedMs: null, firesByWallMs: null }),
    ];
    const status = documentOf(sampleSnapshot({ phase: 'stopped', ready: false, markets }));
    const { fields, lists } = viewPage(status, { ...LOADED, gone: 'ended' });
    expect(fields).toMatchObject({ sentence: 'The daemon has ended.', title: '– ended · killswitchd' });
    expect(fields['gone']).toContain('The daemon was stopped at');
    expect(lists.markets[0]).toMatchObject({ state: 'deleted', remainingLabel: 'no timer' });
  });

  test('says why a market is left alone, until when, and that it is leaving', () => {
    const held = (changes: Partial<MarketSnapshot>) =>
      viewPage(
        documentOf(
          sampleSnapshot({
            markets: [sampleMarket({ wanted: false, guaranteedMs: null, firesByWallMs: null, ...changes })],
          }),
        ),
        LOADED,
      ).lists.markets[0];
    const untilWallMs = now.wallMs + 583_000;
    expect(held({ state: 'paused', hold: { why: 'paused', untilWallMs } })).toMatchObject({
      state: 'paused',
      remaining: '9\u00a0min\u00a043\u00a0s',
      remainingLabel: 'until it is armed again',
      note: `Paused by an operator until ${formatTime(untilWallMs / 1000)}; armed again by itself then.`,
    });
    expect(held({ state: 'paused', hold: { why: 'paused', untilWallMs: null } })).toMatchObject({
      remaining: '–',
      note: 'Paused by an operator: left alone until somebody resumes it.',
    });
    expect(held({ state: 'disarmed', hold: { why: 'disarmed', untilWallMs: null } })?.['note']).toMatch(
      /^Disarmed by an operator/,
    );
    expect(held({ state: 'disarmed', hold: { why: 'tripped', untilWallMs: null } })?.['note']).toMatch(
      /^Tripped by an operator/,
    );
    expect(held({ state: 'disarmed', hold: { why: 'lapsed', untilWallMs: null } })?.['note']).toMatch(
      /^Held after a lapse/,
    );
    expect(held({ leaving: true })?.['note']).toBe('No longer configured; shown until its timer is gone.');
    expect(held({})?.['note']).toBe('');
  });

  test.each<[string, Partial<Snapshot>]>([
    ['✓ 1/1 armed', {}],
    ['✓ 1/1 armed', { bots: [{ bot: 'a', mode: 'none', state: 'alive', evidenceAgeMs: null, ttlMs: null }] }],
    ['! 1 retrying, 1/1 armed', { markets: [sampleMarket({ state: 'retrying' })] }],
    [
      '× 1 expired, 1/2 armed',
      { markets: [sampleMarket({ state: 'retrying' }), sampleMarket({ market: 'B', state: 'expired' })] },
    ],
    ['× key refused, 1/1 armed', { authorised: false }],
    [
      '× 1 bot silent, 0/1 armed',
      {
        markets: [sampleMarket({ state: 'suspended' })],
        bots: [{ bot: 'a', mode: 'beat', state: 'stale', evidenceAgeMs: 20_000, ttlMs: 15_000 }],
      },
    ],
    [
      '× outage, 1/1 armed',
      { bases: [{ url: 'http://127.0.0.1:1', up: false, pingMs: null, lastProblem: 'x', outage: true }] },
    ],
    ['– 1 paused, 0/1 armed', { markets: [sampleMarket({ state: 'paused' })] }],
    ['! stopping', { phase: 'stopping' }],
  ])('the title of the tab shows the worst of it: %s', (title, changes) => {
    const html = renderPage(documentOf(sampleSnapshot(changes)));
    expect(html).toContain(`<title>${title} · killswitchd</title>`);
  });

  test('every slot that the page has is filled by the view', () => {
    const html = dataOf(renderPage(documentOf()));
    const { fields, lists } = viewPage(
      documentOf(sampleSnapshot({ ready: false, notReady: ['x'] }), [
        { atWallMs: 1, level: 'info', event: 'x', market: null, text: 'x' },
      ]),
      LOADED,
    );
    const names = new Set([fields, ...Object.values(lists).flat()].flatMap((row) => Object.keys(row)));
    for (const [, name] of html.matchAll(/data-f="([^"]+)"/g)) expect(names).toContain(name);
    for (const [, pairs = ''] of html.matchAll(/data-a="([^"]+)"/g)) {
      for (const pair of pairs.split(' ')) expect(names).toContain(pair.split(':')[1]);
    }
  });
});
