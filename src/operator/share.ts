import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { Clock } from '../ports.ts';
import { createBreather } from '../util/pace.ts';
import { ControlRefusal } from './control-sources.ts';

/** A result stays fresh for 20 times as long as it took to make: readers use at most 5 % of the event loop. */
const FRESH_FACTOR = 20;
const FRESH_LIMIT_MS = 1000;

/** One result for all who ask while it is made or still fresh: however many they are, the daemon does no more. */
export function shareWhileFresh<T>(clock: Clock, make: () => T | Promise<T>): () => Promise<T> {
  let shared: Promise<T> | null = null;
  return () => {
    if (shared !== null) return shared;
    const startMs = clock.now().monoMs;
    // The status of ten thousand markets has megabytes: it is dropped before anybody asks again.
    const keepFor = (freshMs: number) =>
      clock.after(freshMs, () => {
        shared = null;
      });
    shared = (async () => make())();
    shared.then(
      () => keepFor(Math.min(FRESH_LIMIT_MS, (clock.now().monoMs - startMs) * FRESH_FACTOR)),
      () => keepFor(0),
    );
    return shared;
  };
}

/** One result after the other, each for whoever asked, with rests: together they use 5 % of the event loop. */
export function oneAtATime<Question, T>(clock: Clock, make: (question: Question) => Promise<T>) {
  let turn: Promise<unknown> = Promise.resolve();
  return (question: Question): Promise<T> => {
    const answer = turn.then(async () => {
      const startMs = clock.now().monoMs;
      const result = await make(question);
      const restMs = Math.min(FRESH_LIMIT_MS, (clock.now().monoMs - startMs) * (FRESH_FACTOR - 1));
      return { result, rest: new Promise<void>((resolve) => void clock.after(restMs, resolve)) };
    });
    turn = answer.then(({ rest }) => rest).catch(() => {});
    return answer.then(({ result }) => result);
  };
}

/** Bodies on their way at one time: each of a slow reader holds memory. */
const MAX_BODIES = 32;
/** A reader that takes longer makes room for another one. */
const SLOW_MS = 10_000;

/** Sends bodies as bytes: all slow readers share one copy. Throws `ControlRefusal` while too many are on their way. */
export function createSender(clock: Clock, refusal: string) {
  const breathe = createBreather(clock);
  /** Since when each is on its way; null while it is made. */
  const underWay = new Map<ServerResponse, number | null>();
  return async (reply: FastifyReply, body: () => Promise<Buffer>) => {
    const { raw } = reply;
    const isSlow = (sinceMs: number | null) => sinceMs !== null && clock.now().monoMs - sinceMs > SLOW_MS;
    if (underWay.size >= MAX_BODIES) {
      const [slow] = [...underWay].find(([, sinceMs]) => isSlow(sinceMs)) ?? [];
      if (slow === undefined) throw new ControlRefusal('too_many_commands', refusal);
      slow.destroy();
      underWay.delete(slow);
    }
    underWay.set(raw, null);
    onOver(reply, () => underWay.delete(raw));
    const bytes = await body();
    await breathe();
    if (underWay.has(raw)) underWay.set(raw, clock.now().monoMs);
    return reply.send(bytes);
  };
}

/** Calls `run` once nobody waits for the reply any more: it was sent, or its connection has ended, maybe long ago. */
export function onOver({ raw }: FastifyReply, run: () => void): void {
  if (raw.destroyed) run();
  else raw.once('close', run);
}
