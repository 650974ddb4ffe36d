import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { Clock } from '../ports.ts';
import { createBreather, within } from '../util/pace.ts';
import { onOver } from './share.ts';

type Render = () => Promise<Buffer>;

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
  /** When each of them was written to last. */
  const streams = new Map<ServerResponse, number>();
  const breathe = createBreather(clock);
  let isServing = false;
  let closed = false;

  /** Writes, unless what was written before is still waiting; lets the reader go where that lasts too long. */
  const send = (raw: ServerResponse, bytes: Buffer | string): void => {
    const nowMs = clock.now().monoMs;
    if (raw.writableLength > 0) {
      if (nowMs - (streams.get(raw) ?? nowMs) >= BEHIND_MS) raw.destroy();
      return;
    }
    streams.set(raw, nowMs);
    raw.write(bytes);
  };
  const serve = async (): Promise<void> => {
    isServing = true;
    while (streams.size > 0 && !closed) {
      await new Promise<void>((resolve) => void clock.after(EVERY_MS, resolve));
      // A status that cannot be made is missed.
      const event = await within(clock, LATE_MS, status().then(toEvent)).catch(() => null);
      for (const raw of streams.keys()) {
        await breathe();
        if (!closed && streams.has(raw)) send(raw, event ?? COMMENT);
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
      void reply.header('content-type', EVENT_STREAM_TYPE).header('x-accel-buffering', 'no').hijack();
      for (const [name, value] of Object.entries(reply.getHeaders())) raw.setHeader(name, value ?? '');
      send(raw, Buffer.concat([Buffer.from(RETRY), toEvent(first)]));
      onOver(reply, () => streams.delete(raw));
      if (!isServing) void serve();
      return reply;
    },
    /** Sends everybody the last status and the event `end`, and ends every stream, at the latest after a moment. */
    async close(): Promise<void> {
      closed = true;
      if (streams.size === 0) return;
      const last = await within(clock, LAST_WORD_MS, lastStatus().then(toEvent)).catch(() => null);
      const ends = [...streams.keys()].map((raw) => sayEnd(raw, last));
      await within(clock, LAST_WORD_MS, Promise.all(ends));
      for (const raw of streams.keys()) raw.destroy();
    },
  };
}

function toEvent(line: Buffer): Buffer {
  return Buffer.concat([Buffer.from('event: status\ndata: '), line, Buffer.from('\n')]);
}

/** Resolves when the reader has been handed everything, or is gone. */
function sayEnd(raw: ServerResponse, last: Buffer | null): Promise<void> {
  return new Promise((resolve) => {
    raw.once('close', resolve);
    if (last !== null && raw.writableLength === 0) raw.write(last);
    raw.end(END, resolve);
  });
}
