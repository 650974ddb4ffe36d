import type { Registry } from 'prom-client';
import type { Breathe } from './fleet.ts';
import { headerOf } from './series.ts';
import type { Shard } from './shard.ts';

/** About what one write to a socket should carry. */
const CHUNK_CHARS = 64 * 1024;

/** A shard as the page needs it. */
type Page = Pick<Shard<never, never, unknown>, 'metrics'>;

/** The page in pieces: the metrics of the registry, then for each fleet every metric over all of its shards. */
export async function renderChunks(
  registry: Registry,
  fleets: readonly (readonly Page[])[],
  breathe: Breathe,
): Promise<readonly Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  let chunk = '';
  const add = async (text: string): Promise<void> => {
    chunk += text;
    if (chunk.length >= CHUNK_CHARS) {
      // As bytes at once: kept as text, the thousands of pieces that it was made of would be kept along with it.
      chunks.push(Buffer.from(chunk));
      chunk = '';
    }
    await breathe();
  };
  for (const { name } of registry.getMetricsAsArray()) {
    await add(`${await registry.getSingleMetricAsString(name)}\n`);
  }
  for (const shards of fleets) {
    for (const [metric, described] of (shards[0]?.metrics ?? []).entries()) {
      await add(headerOf(described));
      for (const { metrics } of shards) await add(metrics[metric]?.samples() ?? '');
    }
  }
  chunks.push(Buffer.from(chunk));
  return chunks;
}
