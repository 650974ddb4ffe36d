import { expect } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { Snapshot } from '../../src/core/view.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { sampleSnapshot } from '../operator/sample-snapshot.ts';

/** A page as the web listener sends it. */
export async function renderPage(
  metrics: Metrics,
  snapshot: Snapshot = sampleSnapshot(),
  open = false,
): Promise<string> {
  const now = { ...createSystemClock().now(), wallMs: 1_795_000_010_000 };
  return (await metrics.render(snapshot, now, open)).join('');
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
