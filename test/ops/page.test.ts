import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually, runProgram, said } from '../process/program.ts';
import { fillOf, openGate, useBrowser } from './page-browser.ts';
import { colourOf } from './page-checks.ts';
import { playWell } from './page-plays.ts';

const HOSTILE = `"><script>document.title='hit'</script><img src=x onerror="alert('hit')"><a href=javascript:alert('hit')>x</a>${'W'.repeat(90)}`;

const look = useBrowser();
/** How long something on the page may take that follows within a second or two. */
const SOON = { timeout: 8000 };

describe('the status page in Chromium', () => {
  test('bars drain by themselves between two renewals, and fill up with each', async () => {
    const { page, complaints, asked } = await look(await playWell().open());
    const bar = page.locator('.market', { hasText: 'ETH_USDT' }).locator('.time .bar');
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
    expect(await page.locator('header .link').innerText()).toContain('live');
    expect(asked.filter((url) => url.endsWith('/api/v1/events'))).toHaveLength(1);
    expect(asked.filter((url) => url.includes('/api/v1/status'))).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test('who asks for reduced motion gets bars that step and nothing that moves by itself', async () => {
    const { page, complaints } = await look(await playWell().open(), { reducedMotion: 'reduce' });
    const rect = page.locator('.market', { hasText: 'ETH_USDT' }).locator('.bar rect');
    const before = await rect.getAttribute('transform');
    await expect.poll(() => rect.getAttribute('transform'), SOON).not.toBe(before);
    expect(await page.evaluate('document.getAnimations().length')).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('a timer that ran out turns red, is announced once, and shows in the title', async () => {
    const play = playWell();
    const { page, complaints } = await look(await play.open());
    const market = page.locator('.market', { hasText: 'ETH_USDT' });
    await expect.poll(() => market.locator('.badge').first().innerText(), SOON).toContain('armed');
    const part = play.parts.get('ETH_USDT');
    if (part === undefined) throw new Error('no such part');
    part.renews = false;
    part.armedAtMs = performance.now() - 9500;
    await expect.poll(() => market.getAttribute('data-tone'), SOON).toBe('bad');
    expect(await market.locator('.badge').first().innerText()).toMatch(/×\s*expired/);
    const [red = 0, green = 0, blue = 0] = await colourOf(page, '.market[data-tone=bad] .badge', 'color');
    expect(red).toBeGreaterThan(2 * Math.max(green, blue));
    expect(await page.title()).toBe('× Orders of 1 market may be cancelled at any moment · killswitchd');
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe(
      'Orders of 1 market may be cancelled at any moment.',
    );
    expect(await page.getByText('ETH_USDT is not confirmed armed (expired)').count()).toBe(1);
    expect(await page.getByRole('status').innerText()).toContain('ETH_USDT is expired');
    part.renews = true;
    const cancelled = {
      market: 'ETH_USDT',
      certainty: 'certain',
      why: 'unrenewed',
      byWallMs: Date.now(),
      count: 1,
    } as const;
    play.cancellations = [cancelled];
    await expect.poll(() => market.locator('.badge').first().innerText(), SOON).toContain('armed');
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toMatch(
      /^Orders of ETH_USDT were cancelled by \d\d:\d\d:\d\d UTC: no renewal was confirmed in time\.$/,
    );
    expect(await page.getByText('killswitchd ack ETH_USDT').count()).toBe(1);
    expect(await market.getAttribute('data-tone')).toBe('bad');
    play.cancellations = [];
    await expect.poll(() => page.title(), SOON).toBe('✓ 2/2 armed · killswitchd');
    expect(await market.getAttribute('data-tone')).toBe('ok');
    expect(complaints).toEqual([]);
  });

  test('of 200 markets the worst are seen first, the others are turned to, and any is found', async () => {
    const play = playWell();
    for (let index = 0; index < 198; index += 1) play.add(`M${index}_USDT`, 60_000, 6000);
    play.add('BAD_USDT', 60_000, 6000, { state: 'rejected', lastProblem: 'code 30' });
    const { page, complaints } = await look(await play.open());
    const names = () => page.locator('.market h3').allInnerTexts();
    await expect.poll(async () => (await names())[0], SOON).toBe('BAD_USDT');
    expect(await names()).toHaveLength(50);
    expect(await page.evaluate('document.body.scrollHeight')).toBeLessThan(6000);
    await page.getByRole('button', { name: 'Next' }).click();
    expect(await page.getByText('Page 2 of 4').count()).toBe(1);
    // 201 markets: the one that is left out is found all the same.
    await page.getByRole('searchbox').fill('m197');
    await expect.poll(names, SOON).toEqual(['M197_USDT']);
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
      await expect.poll(() => page.locator('header .link').innerText(), SOON).toContain('live');
      await (how === 'hold' ? gate.hold() : gate.cut());
      const alert = page.getByRole('alert');
      await expect
        .poll(() => alert.innerText(), { timeout: 15_000 })
        .toMatch(/^No answer since \d\d:\d\d:\d\d UTC\./);
      expect(await page.title()).toBe('× no connection · killswitchd');
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toMatch(
        /^The daemon does not answer: orders are cancelled from \d\d:\d\d:\d\d UTC on unless something else renews the timers\.$/,
      );
      expect(await page.locator('.market .badge').allInnerTexts()).toEqual([
        expect.stringContaining('was armed'),
        expect.stringContaining('was armed'),
      ]);
      const bar = page.locator('.market .bar').first();
      const [red = 0, green = 0, blue = 0] = await colourOf(page, '.market .bar rect', 'fill');
      expect(Math.max(red, green, blue) - Math.min(red, green, blue)).toBeLessThan(40);
      const before = await fillOf(bar);
      await page.waitForTimeout(2000);
      expect(await fillOf(bar)).toBe(before);
      await gate.mend();
      await expect.poll(() => alert.innerText(), { timeout: 15_000 }).toBe('');
      await expect
        .poll(() => page.locator('header .link').innerText(), { timeout: 15_000 })
        .toContain('live');
      expect(await page.title()).toBe('✓ 2/2 armed · killswitchd');
      await expect.poll(() => fillOf(bar), SOON).not.toBe(before);
    },
    60_000,
  );

  test('a daemon that is stopped says so, and one that is started again is found', async () => {
    const play = playWell();
    const { page } = await look(await play.open());
    await expect.poll(() => page.locator('header .link').innerText(), SOON).toContain('live');
    play.shows = { phase: 'stopped', ready: false };
    await play.shut();
    await expect
      .poll(() => page.getByRole('heading', { level: 1 }).innerText(), SOON)
      .toMatch(/^The daemon has ended: orders are cancelled from .* UTC on unless/);
    expect(await page.getByRole('alert').innerText()).toMatch(
      /^The daemon was stopped at \d\d:\d\d:\d\d UTC /,
    );
    play.shows = {};
    await play.open();
    await expect.poll(() => page.title(), { timeout: 15_000 }).toBe('✓ 2/2 armed · killswitchd');
    await expect.poll(() => page.locator('header .link').innerText(), { timeout: 15_000 }).toContain('live');
  }, 60_000);

  test('where no stream can be had it asks every second instead', async () => {
    const play = playWell();
    const { page, asked } = await look(await play.open(), {}, (blank) =>
      blank.route('**/api/v1/events', (route) => route.abort()),
    );
    await expect.poll(() => page.locator('header .link').innerText(), SOON).toContain('asking every second');
    play.shows = { authorised: false };
    await expect.poll(() => page.title(), SOON).toContain('× The exchange refuses the API key');
    expect(asked.filter((url) => url.includes('?view=page')).length).toBeGreaterThan(0);
  });

  test('hidden it gives its stream back and asks now and then; seen again it is live at once', async () => {
    const play = playWell();
    const { page, asked } = await look(await play.open());
    await expect.poll(() => page.locator('header .link').innerText(), SOON).toContain('live');
    const hide = (hidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));`);
    await hide(true);
    play.shows = { authorised: false };
    await expect
      .poll(() => page.title(), { timeout: 15_000 })
      .toContain('× The exchange refuses the API key');
    expect(asked.filter((url) => url.includes('?view=page')).length).toBeGreaterThan(0);
    await page.waitForTimeout(6000);
    expect(await page.getByRole('alert').innerText()).toBe('');
    await hide(false);
    await expect.poll(() => page.locator('header .link').innerText(), SOON).toContain('live');
    expect(asked.filter((url) => url.endsWith('/api/v1/events'))).toHaveLength(2);
  }, 40_000);

  test('texts from outside stay texts, at first sight and later on', async () => {
    const play = playWell();
    const spoil = () => {
      play.bases = [{ url: HOSTILE, up: false, pingMs: 1, lastProblem: HOSTILE, outage: true }];
      play.bots = [{ bot: HOSTILE, mode: HOSTILE, state: 'stale', ttlMs: 1, heardAtMs: 1 }];
      play.shows = { ready: false, notReady: [HOSTILE] };
      play.say('error', HOSTILE, HOSTILE);
      play.add(HOSTILE, 60_000, 6000, {
        bot: HOSTILE,
        state: 'rejected',
        lastProblem: HOSTILE,
        onStop: HOSTILE,
        promise: [HOSTILE],
      });
    };
    const later = await look(await play.open(), { viewport: { width: 360, height: 740 } });
    await expect.poll(() => later.page.locator('header .link').innerText(), SOON).toContain('live');
    spoil();
    const name = later.page.getByRole('heading', { level: 3, name: HOSTILE });
    await expect.poll(() => name.count(), SOON).toBe(1);
    const first = await look(later.page.url().replace(/\/$/, ''));
    for (const { page, complaints } of [later, first]) {
      expect(await page.locator('main').innerText()).toContain(`bot ${HOSTILE}`);
      expect(await page.locator('main :is(img, script, a)').count()).toBe(0);
      expect(await page.title()).not.toBe('hit');
      expect(complaints).toEqual([]);
    }
    expect(await later.page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  });

  test('shows the real daemon: armed, ended by a signal, and lost when it is killed', async () => {
    const start = async (port: string) => {
      const args = ['run', '--embedded-exchange', '--config', 'config/local.yaml'];
      const env = { KILLSWITCHD_WEB_LISTEN: `127.0.0.1:${port}`, KILLSWITCHD_LIVENESS_MODE: 'none' };
      const program = runProgram(args, { env });
      onTestFinished(() => program.signal('SIGKILL'));
      const url = await eventually('the address of the status page', 15_000, () => {
        if (program.hasExited()) throw new Error(`the daemon ended:\n${said(program)}`);
        return /Status page, health and metrics: (http:[^\s"]+)/.exec(program.stdout())?.[1] ?? null;
      });
      return { program, url };
    };
    const daemon = await start('0');
    const { page, complaints } = await look(daemon.url);
    await expect.poll(() => page.title(), { timeout: 15_000 }).toBe('✓ 3/3 armed · killswitchd');
    const bar = page.locator('.market', { hasText: 'ETH_USDT' }).locator('.bar');
    const seen = new Set<number>();
    for (let time = 0; time < 20; time += 1) {
      seen.add(await fillOf(bar));
      await page.waitForTimeout(100);
    }
    expect(seen.size).toBeGreaterThan(10);
    expect(await page.getByRole('region', { name: 'Recent events' }).innerText()).toContain(
      'ETH_USDT is armed',
    );
    expect(complaints).toEqual([]);
    daemon.program.signal('SIGTERM');
    await daemon.program.exit();
    await expect
      .poll(() => page.getByRole('heading', { level: 1 }).innerText(), SOON)
      .toBe('The daemon has ended.');
    expect(await page.locator('.market .badge').first().innerText()).toMatch(/deleted$/);
    const next = await start(new URL(daemon.url).port);
    await expect.poll(() => page.title(), { timeout: 15_000 }).toBe('✓ 3/3 armed · killswitchd');
    next.program.signal('SIGKILL');
    await expect.poll(() => page.title(), { timeout: 15_000 }).toBe('× no connection · killswitchd');
  }, 90_000);
});
