import { expect } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { Snapshot } from '../../src/core/view.ts';
import { createMetrics, type Metrics, type MetricsOptions } from '../../src/telemetry/metrics.ts';
import { sampleBot, sampleSnapshot } from '../operator/sample-snapshot.ts';

const system = createSystemClock();
const clock = { ...system, now: () => ({ ...system.now(), wallMs: 1_795_000_010_000 }) };

/** Metrics of a small daemon, with what a test wants to be different. */
export const metricsOf = (changes: Partial<MetricsOptions> = {}): Metrics =>
  createMetrics({
    build: { version: '1.2.3', revision: 'abc', node_version: 'v24' },
    bases: ['http://127.0.0.1:1'],
    controlReasons: ['foreign_origin', 'no_token'],
    shard: { index: 0, count: 1, markets: 2, fleet: 2 },
    clock,
    ...changes,
  });

/** A page as the web listener sends it. */
export async function renderPage(
  metrics: Metrics,
  snapshot: Snapshot = sampleSnapshot({ bots: [sampleBot({ bot: 'maker' }), sampleBot()] }),
  open = false,
): Promise<string> {
  return String(await metrics.render(snapshot, open));
}

/** Every sample of a page by name and labels, as Prometheus would read it; none may be there twice. */
export async function scrape(metrics: Metrics, snapshot?: Snapshot): Promise<Map<string, number>> {
  const samples = new Map<string, number>();
  for (const line of (await renderPage(metrics, snapshot)).split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const end = line.lastIndexOf(' ');
    expect(samples.has(line.slice(0, end)), `${line} twice`).toBe(false);
    samples.set(line.slice(0, end), Number(line.slice(end + 1).replace('+Inf', 'Infinity')));
  }
  return samples;
}
