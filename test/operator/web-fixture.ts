import { request } from 'node:http';
import { afterEach } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { Snapshot } from '../../src/core/view.ts';
import type { Cancellation } from '../../src/operator/cancellations.ts';
import { startWeb, type Web } from '../../src/operator/web.ts';
import type { Clock, RecentEvent } from '../../src/ports.ts';
import { addressOf } from './control-fixture.ts';
import { sampleSnapshot } from './sample-snapshot.ts';

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
export const clock = createSystemClock();
const LAPSE: RecentEvent = {
  atWallMs: 1_795_000_000_500,
  level: 'error',
  event: 'lapsed',
  market: 'BTC_USDT',
  text: 'BTC_USDT LAPSED.',
};

const open = new Set<Web>();
afterEach(async () => {
  await Promise.all([...open].map((web) => web.close()));
  open.clear();
});

/** Starts the listeners with made-up sources; they are closed after the test. */
export async function start(
  snapshot: () => Snapshot = () => sampleSnapshot(),
  listen: readonly string[] = ['127.0.0.1:0'],
  page = 'metric_a 1\nmetric_b 2\n',
  itsClock: Clock = clock,
  cancellations: readonly Cancellation[] = [],
): Promise<Web> {
  const web = await startWeb({
    listen: listen.map(addressOf),
    snapshot,
    metrics: { render: async (_, __, open) => Buffer.from(open ? `${page}# EOF\n` : page) },
    recentEvents: () => [LAPSE],
    cancellations: () => cancellations,
    version: '1.2.3',
    clock: itsClock,
  });
  open.add(web);
  return web;
}

export interface Reply {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

/** One request with any method and headers, which `fetch` would not let through; of a stream its first event. */
export function ask(
  web: Web,
  path: string,
  method = 'GET',
  headers: Record<string, string> = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${web.addresses[0]}${path}`, { method, headers, agent: false }, (incoming) => {
      let body = '';
      const done = () => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body });
      const isStream = incoming.headers['content-type']?.startsWith('text/event-stream') === true;
      incoming.on('data', (data) => {
        body += String(data);
        if (!isStream || !/^data:.*\n\n/m.test(body)) return;
        incoming.destroy();
        done();
      });
      incoming.on('end', done);
    });
    outgoing.on('error', reject);
    outgoing.end(method === 'POST' ? '<beat/>' : undefined);
  });
}
