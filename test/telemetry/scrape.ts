import { expect } from 'vitest';
import type { Metrics } from '../../src/telemetry/metrics.ts';

/** Every sample of a page by name and labels, as Prometheus would read it; none may be there twice. */
export async function scrape(metrics: Metrics): Promise<Map<string, number>> {
  const samples = new Map<string, number>();
  for (const line of (await metrics.render()).split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const end = line.lastIndexOf(' ');
    expect(samples.has(line.slice(0, end)), `${line} twice`).toBe(false);
    samples.set(line.slice(0, end), Number(line.slice(end + 1).replace('+Inf', 'Infinity')));
  }
  return samples;
}
