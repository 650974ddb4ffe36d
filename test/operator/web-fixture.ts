import { onTestFinished } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { Snapshot } from '../../src/core/view.ts';
import type { Cancellation } from '../../src/operator/cancellations.ts';
import { startWeb, type Web } from '../../src/operator/web.ts';
import type { Clock, RecentEvent } from '../../src/ports.ts';
import { addressOf, asker } from './control-fixture.ts';
import { sampleSnapshot } from './sample-snapshot.ts';

export const clock = createSystemClock();
const LAPSE: RecentEvent = {
  atWallMs: 1_795_000_000_500,
  level: 'error',
  event: 'lapsed',
  market: 'BTC_USDT',
  text: 'BTC_USDT LAPSED.',
};

interface Made {
  readonly listen?: string;
  readonly page?: string;
  readonly clock?: Clock;
  readonly cancellations?: readonly Cancellation[];
  readonly mostConnections?: () => number;
}

/** Starts a listener with made-up sources; it is closed after the test. */
export async function start(
  snapshot: () => Snapshot = () => sampleSnapshot(),
  { listen = '127.0.0.1:0', page = 'metric_a 1\nmetric_b 2\n', cancellations = [], ...made }: Made = {},
): Promise<Web> {
  const web = await startWeb({
    clock,
    ...made,
    listen: [addressOf(listen)],
    snapshot,
    metrics: { render: async (_, open) => Buffer.from(open ? `${page}# EOF\n` : page) },
    recentEvents: () => [LAPSE],
    cancellations: () => cancellations,
    version: '1.2.3',
  });
  onTestFinished(() => web.close());
  return web;
}

/** One request over a connection of its own; of a stream its first event. */
export async function ask(web: Web, path: string, method = 'GET', headers: Record<string, string> = {}) {
  const sent = method === 'POST' ? { body: '<beat/>' } : {};
  const { text, ...reply } = await asker(web.addresses[0])(path, { method, headers, ...sent });
  return { ...reply, body: text };
}
