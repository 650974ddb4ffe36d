import type { Registry } from 'prom-client';
import type { Breathe } from './fleet.ts';
import type { Shard } from './shard.ts';

/** About what one write to a socket should carry. */
const CHUNK_CHARS = 64 * 1024;

/** A shard as the page needs it. */
type Page = Pick<Shard<never, never, unknown>, 'names' | 'text'>;

/** The page in pieces: the metrics of the registry, then for each fleet every metric over all of its shards. */
export async function renderChunks(
  registry: Registry,
  fleets: readonly (readonly Page[])[],
  breathe: Breathe,
): Promise<readonly string[]> {
  const chunks: string[] = [];
  let chunk = '';
  const add = async (text: string): Promise<void> => {
    chunk += `${text}\n`;
    if (chunk.length >= CHUNK_CHARS) {
      chunks.push(chunk);
      chunk = '';
    }
    await breathe();
  };
  for (const { name } of registry.getMetricsAsArray()) {
    await add(await registry.getSingleMetricAsString(name));
  }
  for (const shards of fleets) {
    for (const name of shards[0]?.names ?? []) {
      for (const [index, shard] of shards.entries()) {
        const text = await shard.text(name);
        const samples = index === 0 ? text : withoutHeader(text);
        if (samples !== '') await add(samples);
      }
    }
  }
  chunks.push(chunk);
  return chunks;
}

/** Without the HELP and TYPE lines, which a metric may have only once on a page. */
function withoutHeader(text: string): string {
  const endOfHelp = text.indexOf('\n');
  const endOfType = text.indexOf('\n', endOfHelp + 1);
  return endOfType === -1 ? '' : text.slice(endOfType + 1);
}
