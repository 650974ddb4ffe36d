import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { Clock } from '../ports.ts';
import { createBreather, within } from '../util/pace.ts';
import { onOver } from './share.ts';

type Render = () => Promise<Buffer>;

interface Stream {
  readonly raw: ServerResponse;
  /** Since when it has not taken what was sent to it; null where it has. */
  behindSinceMs: number | null;
}

/** What a stream is answered with; `x-accel-buffering` keeps a proxy from holding events back. */
export const EVENT_STREAM_TYPE = 'text/event-stream; charset=utf-8';
const MAX_STREAMS = 32;
const EVERY_MS = 1000;
/** A status that takes longer is missed. Silence is broken by a comment then, for proxies that end silent connections. */
const LATE_MS = 3000;
/** A reader that does not take one status within this is let go. */
const BEHIND_MS = 10_000;
const LAST_WORD_MS = 200;
const COMMENT = ': still here\n\n';
const RETRY = 'retry: 2000\n\n';
const END = 'event: end\ndata: {}\n\n';

/**
 * The status as server-sent events. One is made each second while somebody listens, and the same bytes go to all. A
 * reader that has not taken the last one misses the next, so that at most one waits for anybody. `status`: the brief
 * status as a line of JSON, up to a second old; `lastStatus`: the same, made now, for the end.
 */
export function createEventStream(clock: Clock, status: Render, lastStatus: Render) {
  const streams = new Set<Stream>();
  const breathe = createBreather(clock);
  let isServing = false;
  let closed = false;

  const serve = async (): Promise<void> => {
    isServing = true;
    while (streams.size > 0 && !closed) {
      await new Promise<void>((resolve) => void clock.after(EVERY_MS, resolve));
      // A status that cannot be made is missed.
      const event = await within(clock, LATE_MS, status().then(toEvent)).catch(() => null);
      for (const stream of streams) {
        await breathe();
        if (!closed) send(stream, event ?? COMMENT, clock.now().monoMs);
      }
    }
    isServing = false;
  };

  return {
    /** Answers with a stream whose first event is the whole status. Rejects where that cannot be made. */
    async open(reply: FastifyReply): Promise<FastifyReply> {
      const first = await status();
      if (closed || streams.size >= MAX_STREAMS) {
        return reply.code(503).header('retry-after', '5').send('too many readers at once\n');
      }
      const { raw } = reply;
      const stream: Stream = { raw, behindSinceMs: null };
      streams.add(stream);
      onOver(reply, () => streams.delete(stream));
      void reply.header('content-type', EVENT_STREAM_TYPE).header('x-accel-buffering', 'no').hijack();
      for (const [name, value] of Object.entries(reply.getHeaders())) raw.setHeader(name, value ?? '');
      send(stream, Buffer.concat([Buffer.from(RETRY), toEvent(first)]), clock.now().monoMs);
      if (!isServing) void serve();
      return reply;
    },
    /** Sends everybody the last status and the event `end`, and ends every stream, at the latest after a moment. */
    async close(): Promise<void> {
      closed = true;
      if (streams.size === 0) return;
      const last = await within(clock, LAST_WORD_MS, lastStatus().then(toEvent)).catch(() => null);
      const ends = [...streams].map((stream) => sayEnd(stream, last));
      await within(clock, LAST_WORD_MS, Promise.all(ends));
      for (const { raw } of streams) raw.destroy();
    },
  };
}

function toEvent(line: Buffer): Buffer {
  return Buffer.concat([Buffer.from('event: status\ndata: '), line, Buffer.from('\n')]);
}

/** Writes, unless what was written before is still waiting; lets the reader go where that lasts too long. */
function send(stream: Stream, bytes: Buffer | string, nowMs: number): void {
  if (stream.raw.writableLength > 0) {
    stream.behindSinceMs ??= nowMs;
    if (nowMs - stream.behindSinceMs >= BEHIND_MS) stream.raw.destroy();
    return;
  }
  stream.behindSinceMs = null;
  stream.raw.write(bytes);
}

/** Resolves when the reader has been handed everything, or is gone. */
function sayEnd({ raw }: Stream, last: Buffer | null): Promise<void> {
  return new Promise((resolve) => {
    raw.once('close', resolve);
    if (last !== null && raw.writableLength === 0) raw.write(last);
    raw.end(END, resolve);
  });
}
