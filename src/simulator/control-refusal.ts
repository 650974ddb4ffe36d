import type { FastifyReply } from 'fastify';

/** Refuses a request to a control endpoint with one sentence. */
export function fail(reply: FastifyReply, status: number, error: string): FastifyReply {
  return reply.code(status).send({ error });
}
