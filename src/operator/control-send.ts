import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { Clock } from '../ports.ts';
import { ControlRefusal } from './control-refusal.ts';
import { createBreather, onOver } from './share.ts';

/** What a request is answered with. */
export interface Answer {
  readonly status: number;
  /** JSON, or pieces of it. */
  readonly body: string | readonly string[];
}

/** Readers of the status at one time. */
const MAX_READERS = 32;

export type Send = (reply: FastifyReply, answer: Answer) => FastifyReply;

/** Sends what is long in pieces and with breaks, as fast as its reader takes it, and not to too many at a time. */
export function createSend(clock: Clock): Send {
  const breathe = createBreather(clock);
  let readers = 0;
  async function* paced(pieces: readonly string[]) {
    for (const piece of pieces) {
      await breathe();
      yield piece;
    }
  }
  return (reply, { status, body }) => {
    if (typeof body === 'string') return reply.code(status).send(body);
    if (readers >= MAX_READERS) {
      throw new ControlRefusal('too_many_commands', `${MAX_READERS} are reading the status; try again`);
    }
    readers += 1;
    onOver(reply, () => {
      readers -= 1;
    });
    return reply.code(status).send(Readable.from(paced(body), { objectMode: false }));
  };
}
