import { describe, expect, onTestFinished, test } from 'vitest';
import { openGate, useBrowser } from './page-browser.ts';
import { CUT_OFF, FAINT, NAMELESS } from './page-checks.ts';
import { playTrouble, playWell } from './page-plays.ts';

const look = useBrowser();
/** How long something on the page may take that follows within a second or two. */
const SOON = { timeout: 8000 };

describe('the status page for everybody', () => {
  test('is told to a screen reader when a state changes, and not every second', async () => {
    const play = playWell();
    const { page } = await look(await play.open());
    await page.evaluate(`window.spoken = 0; for (const region of document.querySelectorAll('[aria-live],[role=alert],[role=status]'))
      new MutationObserver((found) => { window.spoken += found.length; }).observe(region, { childList: true, characterData: true, subtree: true });`);
    await page.waitForTimeout(4000);
    expect(await page.evaluate('window.spoken')).toBe(0);
    play.bots = play.bots.map((bot) => ({ ...bot, state: 'stale' }));
    await expect.poll(() => page.getByRole('status').innerText(), SOON).toContain('bot main is silent');
  });

  test('can be used with the keyboard alone, and what was opened stays open', async () => {
    const { page } = await look(await playWell().open());
    await expect.poll(() => page.locator('header .link').innerText(), SOON).toContain('live');
    await page.keyboard.press('Tab');
    const skip = page.getByRole('link', { name: 'Skip to the timers' });
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the timers');
    expect((await skip.boundingBox())?.x).toBeGreaterThanOrEqual(0);
    await page.keyboard.press('Enter');
    expect(page.url()).toContain('#timers');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toContain(
      'Numbers, promise and stop of BTC_USDT',
    );
    expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
    await page.keyboard.press('Enter');
    const promise = page.getByText('An outage of the exchange shorter than 52.55 s cancels nothing.');
    expect(await promise.isVisible()).toBe(true);
    await page.waitForTimeout(2500);
    expect(await promise.isVisible()).toBe(true);
    const stops = [];
    for (let press = 0; press < 4; press += 1) {
      await page.keyboard.press('Tab');
      stops.push(await page.evaluate('document.activeElement.textContent'));
    }
    expect(stops).toEqual([expect.stringContaining('ETH_USDT'), 'Metrics', 'Readiness', 'Status as JSON']);
  });

  test('has landmarks, headings in order, and a name for everything', async () => {
    const { page } = await look(await playTrouble().open());
    for (const role of ['banner', 'main', 'contentinfo'] as const) {
      expect(await page.getByRole(role).count(), role).toBe(1);
    }
    const regions = ['Timers', 'Bots', 'Exchange', 'If this daemon were stopped now', 'Recent events'];
    for (const name of regions) expect(await page.getByRole('region', { name }).count(), name).toBe(1);
    const levels = (await page.evaluate(
      `[...document.querySelectorAll('h1,h2,h3,h4')].map((heading) => Number(heading.tagName[1]))`,
    )) as number[];
    expect(levels.filter((level) => level === 1)).toHaveLength(1);
    expect(levels[0]).toBe(1);
    for (const [index, level] of levels.slice(1).entries())
      expect(level - (levels[index] ?? 0)).toBeLessThan(2);
    expect(await page.evaluate(NAMELESS)).toEqual([]);
    expect(await page.locator('html').getAttribute('lang')).toBe('en');
  });

  test.each(['light', 'dark'] as const)(
    'has enough contrast in %s, whatever the state',
    async (colorScheme) => {
      const gate = await openGate(await playTrouble().open());
      onTestFinished(() => gate.cut());
      const { page } = await look(gate.url, { colorScheme, reducedMotion: 'reduce' });
      await expect.poll(() => page.locator('header .link').innerText(), SOON).toContain('live');
      expect(await page.evaluate(FAINT)).toEqual([]);
      await gate.cut();
      await expect
        .poll(() => page.getByRole('alert').innerText(), { timeout: 15_000 })
        .toContain('No answer since');
      expect(await page.evaluate(FAINT)).toEqual([]);
    },
    40_000,
  );

  test.each([320, 360, 768, 1280, 1920])('fits on a screen of %i pixels', async (width) => {
    const { page } = await look(await playTrouble().open(), { viewport: { width, height: 740 } });
    await expect.poll(() => page.locator('header .link').innerText(), SOON).toContain('live');
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    expect(await page.evaluate(CUT_OFF)).toEqual([]);
  });
});
