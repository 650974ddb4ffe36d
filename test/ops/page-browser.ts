import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core';
import { afterAll, beforeAll, onTestFinished } from 'vitest';

const CHROMIUM = '/usr/bin/chromium';
const PLAIN = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];
const SILENT = ['--disable-background-networking', '--disable-component-update', '--disable-sync'];

/**
 * Starts Debian's Chromium, without a window, for the tests of a file. Returns what opens an address in a browser context
 * of its own; no test passes whose page asked for something elsewhere.
 */
export function useBrowser() {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM, args: [...PLAIN, ...SILENT] });
  }, 60_000);
  afterAll(() => browser.close());
  return async (
    url: string,
    options: BrowserContextOptions = {},
    prepare: (page: Page) => Promise<unknown> = async () => undefined,
  ) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    /** Errors and warnings on the console, exceptions, and dialogs. */
    const complaints: string[] = [];
    const foreign: string[] = [];
    /** Everything that it asked for, in order. */
    const asked: string[] = [];
    const { origin } = new URL(url);
    await context.route(
      (address) => address.origin !== origin,
      (route) => route.abort(),
    );
    context.on('request', (request) => {
      asked.push(request.url());
      const isOwn = request.url().startsWith(`${origin}/`) || request.url().startsWith('data:');
      if (!isOwn) foreign.push(request.url());
    });
    const page = await context.newPage();
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('dialog', (dialog) => {
      complaints.push(dialog.message());
      void dialog.dismiss();
    });
    onTestFinished(async () => {
      await context.close();
      if (foreign.length > 0) throw new Error(`asked elsewhere for ${foreign.join(', ')}`);
    });
    await prepare(page);
    await page.goto(url);
    return { page, complaints, asked };
  };
}

/** A colour of the first element found, as the browser computes it: red, green and blue from 0 to 255. */
export async function colourOf(page: Page, selector: string, property: string): Promise<readonly number[]> {
  const text = await page.evaluate(
    `getComputedStyle(document.querySelector(${JSON.stringify(selector)})).getPropertyValue('${property}')`,
  );
  return (String(text).match(/[\d.]+/g) ?? []).map(Number);
}

/** How long a bar is on the screen now, as a share of its whole length. */
export async function fillOf(bar: Locator): Promise<number> {
  const [whole, filled] = await Promise.all([bar.boundingBox(), bar.locator('rect').boundingBox()]);
  return (filled?.width ?? 0) / (whole?.width ?? 1);
}

/** Between a browser and a daemon: a connection that a test can hold up or cut. */
export async function openGate(target: string) {
  const sockets = new Set<Socket>();
  let held = false;
  const server = createServer((inner) => {
    const outer = connect(Number(new URL(target).port), '127.0.0.1');
    for (const [from, to] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      sockets.add(from);
      from.on('data', (data) => {
        if (!held) to.write(data);
      });
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  const listen = (at: number) => once(server.listen(at, '127.0.0.1'), 'listening');
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const dropAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${port}`,
    /** What is said is neither passed on nor refused, as with a daemon that hangs. */
    hold() {
      held = true;
    },
    /** Nobody listens any more, as after a crash. */
    cut: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        dropAll();
      }),
    /** Lets everything through again, on the same port. */
    async mend() {
      held = false;
      dropAll();
      if (!server.listening) await listen(port);
    },
  };
}
