import type { Page } from 'playwright-core';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually, runProgram, said } from '../process/program.ts';
import { colourOf, fillOf, openGate, useBrowser } from './page-browser.ts';
import { CUT_OFF, FAINT, NAMELESS } from './page-checks.ts';
import { playTrouble, playWell } from './page-stage.ts';

const HOSTILE = `"><script>document.title='hit'</script><img src=x onerror="alert('hit')"><a href=javascript:alert('hit')>x</a>${'W'.repeat(90)}`;

const look = useBrowser();
/** Waits for something on the page that follows within a second or two. */
const soon = (probe: () => Promise<unknown>) => expect.poll(probe, { timeout: 8000 });
/** Waits for what takes the page a few attempts. */
const late = (probe: () => Promise<unknown>) => expect.poll(probe, { timeout: 15_000 });
const link = (page: Page) => () => page.locator('header .link').innerText();
const isLive = (page: Page) => soon(link(page)).toContain('live');
const market = (page: Page, name: string) => page.locator('.market', { hasText: name });
const badge = (page: Page, name: string) => () => market(page, name).locator('.badge').first().innerText();
const headline = (page: Page) => () => page.getByRole('heading', { level: 1 }).innerText();
const alertOn = (page: Page) => () => page.getByRole('alert').innerText();
const streams = (asked: readonly string[]) => asked.filter((url) => url.endsWith('/api/v1/events')).length;
const questions = (asked: readonly string[]) => asked.filter((url) => url.includes('?view=page')).length;

describe('the status page in Chromium', () => {
  test('bars drain by themselves between two renewals, and fill up with each', async () => {
    const { page, complaints, asked } = await look(await playWell().open());
    const bar = market(page, 'ETH_USDT').locator('.time .bar');
    const looks: { share: number; fromMs: number; toMs: number }[] = [];
    const untilMs = performance.now() + 6000;
    while (performance.now() < untilMs) {
      const fromMs = performance.now();
      looks.push({ share: await fillOf(bar), fromMs, toMs: performance.now() });
      // Slower than the page is painted, or most looks would see the same bar.
      await page.waitForTimeout(50);
    }
    const seen = looks.map(({ share }) => share);
    const steps = seen.slice(1).map((share, index) => share - (seen[index] ?? 0));
    // Without what a timer of 10 s has lost in the time between two looks.
    const jumps = steps.map(
      (step, index) => step + ((looks[index + 1]?.toMs ?? 0) - (looks[index]?.fromMs ?? 0)) / 10_000,
    );
    expect(Math.max(...seen)).toBeGreaterThan(Math.min(...seen) + 0.1);
    expect(steps.filter((step) => step < 0).length).toBeGreaterThan(steps.length / 2);
    expect(Math.min(...jumps)).toBeGreaterThan(-0.05);
    expect(steps.filter((step) => step > 0.02).length).toBeGreaterThan(0);
    expect(await link(page)()).toContain('live');
    expect(streams(asked)).toBe(1);
    expect(asked.filter((url) => url.includes('/api/v1/status'))).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test('a timer that ran out turns red, is announced once, and shows in the title', async () => {
    const play = playWell();
    const { page, complaints } = await look(await play.open());
    const one = market(page, 'ETH_USDT');
    await soon(badge(page, 'ETH_USDT')).toContain('armed');
    const part = play.parts.get('ETH_USDT');
    if (part === undefined) throw new Error('no such part');
    part.renews = false;
    part.armedAtMs = performance.now() - 9500;
    await soon(() => one.getAttribute('data-tone')).toBe('bad');
    expect(await badge(page, 'ETH_USDT')()).toMatch(/×\s*expired/);
    const [red = 0, green = 0, blue = 0] = await colourOf(page, '.market[data-tone=bad] .badge', 'color');
    expect(red).toBeGreaterThan(2 * Math.max(green, blue));
    expect(await page.title()).toBe('× Orders of 1 market may be cancelled at any moment · killswitchd');
    expect(await headline(page)()).toBe('Orders of 1 market may be cancelled at any moment.');
    expect(await page.getByText('ETH_USDT is not confirmed armed (expired)').count()).toBe(1);
    expect(await page.getByRole('status').innerText()).toContain('ETH_USDT is expired');
    part.renews = true;
    const cancelled = { market: 'ETH_USDT', certainty: 'certain', why: 'unrenewed', count: 1 } as const;
    play.cancellations = [{ ...cancelled, byWallMs: Date.now() }];
    await soon(badge(page, 'ETH_USDT')).toContain('armed');
    expect(await headline(page)()).toMatch(
      /^Orders of ETH_USDT were cancelled by \d\d:\d\d:\d\d UTC: no renewal was confirmed in time\.$/,
    );
    expect(await page.getByText('killswitchd ack ETH_USDT').count()).toBe(1);
    expect(await one.getAttribute('data-tone')).toBe('bad');
    play.cancellations = [];
    await soon(() => page.title()).toBe('✓ 2/2 armed · killswitchd');
    expect(await one.getAttribute('data-tone')).toBe('ok');
    expect(complaints).toEqual([]);
  });

  test('of 200 markets the worst are seen first, the others are turned to, and any is found', async () => {
    const play = playWell();
    for (let index = 0; index < 198; index += 1) play.add(`M${index}_USDT`, 60_000, 6000);
    play.add('BAD_USDT', 60_000, 6000, { state: 'rejected', lastProblem: 'code 30' });
    const { page, complaints } = await look(await play.open());
    const names = () => page.locator('.market h3').allInnerTexts();
    await soon(async () => (await names())[0]).toBe('BAD_USDT');
    expect(await names()).toHaveLength(50);
    expect(await page.evaluate('document.body.scrollHeight')).toBeLessThan(6000);
    await page.getByRole('button', { name: 'Next' }).click();
    expect(await page.getByText('Page 2 of 4').count()).toBe(1);
    // 201 markets: the one that is left out is found all the same.
    await page.getByRole('searchbox').fill('m197');
    await soon(names).toEqual(['M197_USDT']);
    await page.waitForTimeout(1500);
    expect(await page.getByRole('searchbox').inputValue()).toBe('m197');
    expect(await names()).toEqual(['M197_USDT']);
    expect(complaints).toEqual([]);
  });

  test.each(['hold', 'cut'] as const)(
    'a lost connection is announced with the time, everything stands still, and the page recovers (%s)',
    async (how) => {
      const gate = await openGate(await playWell().open());
      onTestFinished(() => gate.cut());
      const { page } = await look(gate.url);
      await isLive(page);
      await (how === 'hold' ? gate.hold() : gate.cut());
      await late(alertOn(page)).toMatch(/^No answer since \d\d:\d\d:\d\d UTC\./);
      expect(await page.title()).toBe('× no connection · killswitchd');
      expect(await headline(page)()).toMatch(
        /^The daemon does not answer: orders are cancelled from \d\d:\d\d:\d\d UTC on unless something else renews the timers\.$/,
      );
      const badges = await page.locator('.market .badge').allInnerTexts();
      expect(badges.map((text) => text.includes('was armed'))).toEqual([true, true]);
      const bar = page.locator('.market .bar').first();
      const colour = await colourOf(page, '.market .bar rect', 'fill');
      expect(Math.max(...colour) - Math.min(...colour)).toBeLessThan(40);
      const before = await fillOf(bar);
      await page.waitForTimeout(2000);
      expect(await fillOf(bar)).toBe(before);
      await gate.mend();
      await late(alertOn(page)).toBe('');
      await late(link(page)).toContain('live');
      expect(await page.title()).toBe('✓ 2/2 armed · killswitchd');
      await soon(() => fillOf(bar)).not.toBe(before);
    },
    60_000,
  );

  test('where no stream can be had it asks every second instead', async () => {
    const play = playWell();
    const { page, asked } = await look(await play.open(), {}, (blank) =>
      blank.route('**/api/v1/events', (route) => route.abort()),
    );
    await soon(link(page)).toContain('asking every second');
    play.shows = { authorised: false };
    await soon(() => page.title()).toContain('× The exchange refuses the API key');
    expect(questions(asked)).toBeGreaterThan(0);
  });

  test('hidden it gives its stream back and asks now and then; seen again it is live at once', async () => {
    const play = playWell();
    const { page, asked } = await look(await play.open());
    await isLive(page);
    const hide = (hidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));`);
    await hide(true);
    play.shows = { authorised: false };
    await late(() => page.title()).toContain('× The exchange refuses the API key');
    expect(questions(asked)).toBeGreaterThan(0);
    await page.waitForTimeout(6000);
    expect(await alertOn(page)()).toBe('');
    await hide(false);
    await isLive(page);
    expect(streams(asked)).toBe(2);
  }, 40_000);

  test('texts from outside stay texts, at first sight and later on', async () => {
    const play = playWell();
    const spoil = () => {
      play.bases = [{ url: HOSTILE, up: false, pingMs: 1, lastProblem: HOSTILE, used: true, outage: true }];
      play.bots = [{ bot: HOSTILE, mode: HOSTILE, state: 'stale', ttlMs: 1, heardAtMs: 1 }];
      play.shows = { ready: false, notReady: [HOSTILE] };
      play.say('error', HOSTILE, HOSTILE);
      const texts = { bot: HOSTILE, lastProblem: HOSTILE, onStop: HOSTILE, promise: [HOSTILE] };
      play.add(HOSTILE, 60_000, 6000, { ...texts, state: 'rejected' });
    };
    const later = await look(await play.open(), { viewport: { width: 360, height: 740 } });
    await isLive(later.page);
    spoil();
    const name = later.page.getByRole('heading', { level: 3, name: HOSTILE });
    await soon(() => name.count()).toBe(1);
    const first = await look(later.page.url().replace(/\/$/, ''));
    for (const { page, complaints } of [later, first]) {
      expect(await page.locator('main').innerText()).toContain(`bot ${HOSTILE}`);
      expect(await page.locator('main :is(img, script, a)').count()).toBe(0);
      expect(await page.title()).not.toBe('hit');
      expect(complaints).toEqual([]);
    }
    expect(await later.page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  });

  test('shows the real daemon: armed, ended by a signal, found again, and lost when it is killed', async () => {
    const start = async (port: string) => {
      const args = ['run', '--embedded-exchange', '--config', 'config/local.yaml'];
      const env = { KILLSWITCHD_WEB_LISTEN: `127.0.0.1:${port}`, KILLSWITCHD_LIVENESS_MODE: 'none' };
      const program = runProgram(args, { env });
      onTestFinished(() => program.signal('SIGKILL'));
      const url = await eventually(`the status page\n${said(program)}`, 15_000, () => {
        return /Status page, health and metrics: (http:[^\s"]+)/.exec(program.stdout())?.[1];
      });
      return { program, url };
    };
    const daemon = await start('0');
    const { page, complaints } = await look(daemon.url);
    await late(() => page.title()).toBe('✓ 3/3 armed · killswitchd');
    const recent = page.getByRole('region', { name: 'Recent events' });
    expect(await recent.innerText()).toContain('ETH_USDT is armed');
    expect(complaints).toEqual([]);
    daemon.program.signal('SIGTERM');
    await daemon.program.exit();
    await soon(headline(page)).toBe('The daemon has ended.');
    expect(await alertOn(page)()).toMatch(/^The daemon was stopped at \d\d:\d\d:\d\d UTC /);
    expect(await page.locator('.market .badge').first().innerText()).toMatch(/deleted$/);
    const next = await start(new URL(daemon.url).port);
    await late(() => page.title()).toBe('✓ 3/3 armed · killswitchd');
    next.program.signal('SIGKILL');
    await late(() => page.title()).toBe('× no connection · killswitchd');
  }, 90_000);
});

describe('the status page for everybody', () => {
  test('is told to a screen reader when a state changes, and not every second', async () => {
    const play = playWell();
    const { page } = await look(await play.open());
    await page.evaluate(`window.spoken = 0; for (const region of document.querySelectorAll('[aria-live],[role=alert],[role=status]'))
      new MutationObserver((found) => { window.spoken += found.length; }).observe(region, { childList: true, characterData: true, subtree: true });`);
    await page.waitForTimeout(4000);
    expect(await page.evaluate('window.spoken')).toBe(0);
    play.bots = play.bots.map((bot) => ({ ...bot, state: 'stale' }));
    await soon(() => page.getByRole('status').innerText()).toContain('bot main is silent');
  });

  test('can be used with the keyboard alone, and what was opened stays open', async () => {
    const { page } = await look(await playWell().open());
    await isLive(page);
    await page.keyboard.press('Tab');
    const skip = page.getByRole('link', { name: 'Skip to the timers' });
    const focused = () => page.evaluate('document.activeElement.textContent');
    expect(await focused()).toBe('Skip to the timers');
    expect((await skip.boundingBox())?.x).toBeGreaterThanOrEqual(0);
    await page.keyboard.press('Enter');
    await soon(async () => page.url()).toContain('#timers');
    await page.keyboard.press('Tab');
    expect(await focused()).toContain('Numbers, promise and stop of BTC_USDT');
    expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
    await page.keyboard.press('Enter');
    const promise = page.getByText('An outage of the exchange shorter than 52.55 s cancels nothing.');
    expect(await promise.isVisible()).toBe(true);
    await page.waitForTimeout(2500);
    expect(await promise.isVisible()).toBe(true);
    const stops = [];
    for (let press = 0; press < 4; press += 1) {
      await page.keyboard.press('Tab');
      stops.push(await focused());
    }
    expect(stops).toEqual([expect.stringContaining('ETH_USDT'), 'Metrics', 'Readiness', 'Status as JSON']);
  });

  test.each([
    [320, 'light'],
    [360, 'dark'],
    [768, 'dark'],
    [1920, 'light'],
  ] as const)(
    'on a screen of %i pixels, in %s, fits, has enough contrast whatever the state, landmarks, headings in order, a name for everything, and nothing that moves for who wants none',
    async (width, colorScheme) => {
      const gate = await openGate(await playTrouble().open());
      onTestFinished(() => gate.cut());
      const viewport = { width, height: 740 };
      const { page } = await look(gate.url, { viewport, colorScheme, reducedMotion: 'reduce' });
      await isLive(page);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
      expect(await page.evaluate('document.getAnimations().length')).toBe(0);
      for (const check of [CUT_OFF, FAINT, NAMELESS]) expect(await page.evaluate(check)).toEqual([]);
      for (const role of ['banner', 'main', 'contentinfo'] as const)
        expect(await page.getByRole(role).count(), role).toBe(1);
      const regions = ['Timers', 'Bots', 'Exchange', 'If this daemon were stopped now', 'Recent events'];
      for (const name of regions) expect(await page.getByRole('region', { name }).count(), name).toBe(1);
      const headings = 'document.querySelectorAll("h1,h2,h3,h4")';
      const levels = (await page.evaluate(
        `[...${headings}].map(({ tagName }) => Number(tagName[1]))`,
      )) as number[];
      expect(levels.filter((level) => level === 1)).toHaveLength(1);
      for (const [index, level] of levels.entries()) expect(level - (levels[index - 1] ?? 0)).toBeLessThan(2);
      expect(await page.locator('html').getAttribute('lang')).toBe('en');
      await gate.cut();
      await late(alertOn(page)).toContain('No answer since');
      expect(await page.evaluate(FAINT)).toEqual([]);
    },
    40_000,
  );
});
