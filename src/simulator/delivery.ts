import type { ServerResponse } from 'node:http';
import type { Reply } from './answer.ts';
import type { CannedReply, ReplyFate } from './faults.ts';

/** Runs something later on the server's clock. */
export type Later = (delayMs: number, run: () => void) => void;

/** A slow body is sent in at most this many pieces. */
const MAX_PIECES = 20;

/** Sends a reply as its fate wants it. Does nothing where the client has gone. */
export function deliver(
  response: ServerResponse,
  own: Reply,
  fate: ReplyFate,
  bodyMs: number,
  later: Later,
): void {
  // Not that of the response: it has none while the reply to an earlier request of the connection is under way.
  const { socket } = response.req;
  if (response.destroyed || socket.destroyed) return;
  switch (fate.kind) {
    case 'reset':
      socket.resetAndDestroy();
      return;
    case 'cut-off':
      sendHalf(response, own);
      return;
    case 'cached':
    case 'own':
      send(response, own, bodyMs, later);
      return;
    case 'canned':
      send(response, fate.reply, bodyMs, later);
      return;
    case 'padded':
      send(response, { ...own, body: `${own.body}${' '.repeat(fate.bytes)}` }, bodyMs, later);
  }
}

function send(response: ServerResponse, reply: CannedReply, bodyMs: number, later: Later): void {
  const body = Buffer.from(reply.body);
  response.writeHead(reply.status, { ...reply.headers, 'content-length': body.length });
  if (bodyMs <= 0) {
    response.end(body);
    return;
  }
  response.flushHeaders();
  const pieces = Math.max(1, Math.min(MAX_PIECES, body.length));
  const sendFrom = (piece: number) => {
    if (response.destroyed) return;
    const part = body.subarray(cut(body, piece, pieces), cut(body, piece + 1, pieces));
    if (piece + 1 < pieces) {
      response.write(part);
      later(bodyMs / pieces, () => sendFrom(piece + 1));
    } else {
      response.end(part);
    }
  };
  later(bodyMs / pieces, () => sendFrom(0));
}

function cut(body: Buffer, piece: number, pieces: number): number {
  return Math.floor((body.length * piece) / pieces);
}

function sendHalf(response: ServerResponse, reply: Reply): void {
  const body = Buffer.from(reply.body);
  const half = body.subarray(0, Math.floor(body.length / 2));
  response.writeHead(reply.status, { ...reply.headers, 'content-length': Math.max(1, body.length) });
  response.flushHeaders();
  response.write(half, () => response.destroy());
}
