import { createHash } from 'node:crypto';
import { createContext, runInContext, Script } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { PAGE_POLICY, renderPage } from '../../src/operator/page.ts';
import { PAGE_SCRIPT } from '../../src/operator/page-script.ts';
import { PAGE_STYLE } from '../../src/operator/page-style.ts';
import { VIEW_SOURCE, viewStatus } from '../../src/operator/page-view.ts';
import { describeStatus, type RecentEvent, type StatusDocument } from '../../src/operator/status.ts';
import { sampleMarket, sampleSnapshot } from './sample-snapshot.ts';

const now = { ...createSystemClock().now(), wallMs: 1_795_000_010_000 };
const HOSTILE = `"><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;`;

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
    expect(html).toContain('lowest slack 85 %');
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
    const browser = createContext({ status, Intl });
    for (const [elapsed, lost] of [
      [0, false],
      [3.4, false],
      [70, true],
    ] as const) {
      const json = runInContext(
        `${VIEW_SOURCE}\nJSON.stringify(viewStatus(status, ${elapsed}, ${lost}))`,
        browser,
      );
      expect(JSON.parse(json)).toEqual(viewStatus(status, elapsed, lost));
    }
  });

  test('the script is one that a browser can read', () => {
    expect(() => new Script(PAGE_SCRIPT)).not.toThrow();
  });

  test('once the daemon is lost nothing on the page claims to be armed', () => {
    const { fields, lists } = viewStatus(documentOf(), 70, true);
    expect(fields).toMatchObject({
      word: 'no connection',
      tone: 'bad',
      sentence: 'The daemon does not answer.',
    });
    expect(lists.markets[0]).toMatchObject({ state: 'was armed', tone: 'idle', remaining: '0\u00a0s' });
  });

  test('every slot that the page has is filled by the view', () => {
    const html = dataOf(renderPage(documentOf()));
    const { fields, lists } = viewStatus(
      documentOf(sampleSnapshot({ ready: false, notReady: ['x'] }), [
        { atWallMs: 1, level: 'info', event: 'x', market: null, text: 'x' },
      ]),
      0,
    );
    const names = new Set([fields, ...Object.values(lists).flat()].flatMap((row) => Object.keys(row)));
    for (const [, name] of html.matchAll(/data-f="([^"]+)"/g)) expect(names).toContain(name);
    for (const [, pairs = ''] of html.matchAll(/data-a="([^"]+)"/g)) {
      for (const pair of pairs.split(' ')) expect(names).toContain(pair.split(':')[1]);
    }
  });
});
