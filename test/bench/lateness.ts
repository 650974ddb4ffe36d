/** By upper bound in seconds, how much lay at or below it: of a histogram without labels. */
function histogramOf(page: string, name: string): ReadonlyMap<number, number> {
  const buckets = page.matchAll(new RegExp(`^${name}_bucket\\{le="([^"]+)"\\} (\\S+)$`, 'gm'));
  return new Map([...buckets].map(([, le = '', count]) => [Number(le.replace('+Inf', '60')), Number(count)]));
}

/** What two pages of metrics observed between them, in milliseconds: evenly spread within a bucket, as Prometheus does. */
export function latenessBetween(beforePage: string, afterPage: string, name: string) {
  const before = histogramOf(beforePage, name);
  const buckets = [...histogramOf(afterPage, name)].map(([bound, count]) => ({
    bound,
    count: count - (before.get(bound) ?? 0),
  }));
  const total = buckets.at(-1)?.count ?? 0;
  const rank = 0.99 * total;
  const place = buckets.findIndex(({ count }) => count >= rank);
  const { bound = Number.NaN, count = 0 } = buckets[place] ?? {};
  const below = buckets[place - 1] ?? { bound: 0, count: 0 };
  const p99 = below.bound + ((bound - below.bound) * (rank - below.count)) / (count - below.count);
  const max = buckets.find((bucket) => bucket.count >= total)?.bound ?? Number.NaN;
  return { p99: p99 * 1000, max: max * 1000 };
}
