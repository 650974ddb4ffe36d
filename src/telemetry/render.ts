import type { Registry } from 'prom-client';
import type { Breathe } from './fleet.ts';
import { deflatedPiece, gzipOf, type Piece, plainPiece, textOf } from './gzip.ts';
import { headerOf } from './series.ts';
import type { Shard } from './shard.ts';

/** Shards of which one metric with one line for each member makes about 64 KB. */
const CELL_SHARDS = 16;
/** To compress and keep less would cost more than to make it anew, and to send it as it is. */
const KEPT_CHARS = 16 * 1024;

/** A shard as the page needs it. */
type Metered = Pick<Shard<never, never, unknown>, 'metrics'>;
type Metric = Metered['metrics'][number];

/** A page of metrics in pieces. Whoever has one can read it as often as needed; it does not change any more. */
export interface Page {
  /** As one gzip member, in chunks. */
  gzip(): Iterable<Uint8Array>;
  /** The same as text in UTF-8, in chunks that are made as they are taken. */
  text(): Iterable<Uint8Array>;
}

/** A piece of the last page, and the versions that it shows. */
interface Cell {
  readonly version: number;
  readonly piece: Piece;
}

/**
 * Makes the pages of a registry and of fleets, which may grow meanwhile. A cell is one metric over a fixed group of
 * shards. Of ten thousand markets most lines stay as they are from page to page: cells are kept compressed, and only
 * those are made again in which something has changed. What is small is made anew each time, and goes as it is.
 */
export function createPageMaker(registry: Registry, fleets: readonly (readonly Metered[])[]) {
  /** By the metric in the first shard of the group. */
  const kept = new Map<Metric, Cell>();

  return async (breathe: Breathe): Promise<Page> => {
    const pieces: Piece[] = [];
    let plain = '';
    const endPlain = (): void => {
      if (plain !== '') pieces.push(plainPiece(plain));
      plain = '';
    };
    for (const { name } of registry.getMetricsAsArray()) {
      plain += `${await registry.getSingleMetricAsString(name)}\n`;
      await breathe();
    }
    for (const shards of fleets) {
      for (const [index, described] of (shards[0]?.metrics ?? []).entries()) {
        plain += headerOf(described);
        for (const group of groupsOf(shards, index)) {
          const cell = await cellOf(group, kept, breathe);
          if (typeof cell === 'string') {
            plain += cell;
          } else {
            endPlain();
            pieces.push(cell);
          }
        }
      }
    }
    endPlain();
    return { gzip: () => gzipOf(pieces), text: () => textOf(pieces) };
  };
}

/** The metric at `index` in groups of shards; a group never changes but for growing. */
function* groupsOf(shards: readonly Metered[], index: number): Generator<Metric[]> {
  const width = Math.max(1, Math.round(CELL_SHARDS / (shards[0]?.metrics[index]?.lines ?? 1)));
  for (let at = 0; at < shards.length; at += width)
    yield shards.slice(at, at + width).flatMap(({ metrics }) => metrics[index] ?? []);
}

/** The piece of a group, kept or made again; its text where that is too small to be kept. */
async function cellOf(
  group: readonly Metric[],
  kept: Map<Metric, Cell>,
  breathe: Breathe,
): Promise<Piece | string> {
  const [first] = group;
  if (first === undefined) return '';
  const known = kept.get(first);
  // Versions only ever grow: their sum is the same as before only where each of them is.
  if (known?.version === group.reduce((sum, metric) => sum + metric.version(), 0)) return known.piece;
  let version = 0;
  let text = '';
  for (const metric of group) {
    // In the same synchronous step as the lines: what happens in a pause belongs to the next version.
    version += metric.version();
    text += metric.samples();
    await breathe();
  }
  if (text.length < KEPT_CHARS) {
    kept.delete(first);
    return text;
  }
  const piece = deflatedPiece(text);
  kept.set(first, { version, piece });
  return piece;
}
