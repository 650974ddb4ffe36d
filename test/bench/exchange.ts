import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type Ask, type ExchangeOptions, marketName, nowMs, type Seen } from './protocol.ts';

/** The exchange of the bench, as a process of its own: timers and nothing else. It looks at no signature. */
const SYNC = '/api/v4/order/kill-switch';
const REFUSED = '{"code":30,"message":"Validation failed","errors":{"timeout":[]}}';

const options = JSON.parse(process.argv[2] ?? '{}') as ExchangeOptions;
const firstHealthy = marketName(options.sick);
interface Timer {
  untilMs: number;
  fired: boolean;
}
const timers = new Map<string, Timer>();
const fresh = () => ({ renewals: 0, lapses: 0, leastSlack: 1 });
let tally = fresh();
let firstArmedAt = 0;

function fire(timer: Timer): void {
  if (!timer.fired) tally.lapses += 1;
  timer.fired = true;
  tally.leastSlack = 0;
}

function renew(market: string, timeoutMs: number): void {
  const now = nowMs();
  tally.renewals += 1;
  const timer = timers.get(market);
  if (timer === undefined) {
    if (timers.size === 0) firstArmedAt = now;
  } else {
    if (now > timer.untilMs) fire(timer);
    tally.leastSlack = Math.min(tally.leastSlack, Math.max(0, timer.untilMs - now) / timeoutMs);
  }
  timers.set(market, { untilMs: now + timeoutMs, fired: false });
}

function read(): Seen {
  const now = nowMs();
  for (const timer of timers.values()) if (now > timer.untilMs) fire(timer);
  return { ...tally, armed: timers.size, firstArmedAt };
}

/** Status and body; null for no answer at all. */
function sync(body: string): readonly [number, string] | null {
  const { market, timeout } = JSON.parse(body) as { market: string; timeout: string | null };
  if (market < firstHealthy)
    return Number(market.slice(1, 6)) % 2 === 1 ? [500, '{"message":"internal"}'] : null;
  const seconds = Number(timeout);
  if (timeout === null) timers.delete(market);
  else if (seconds < 5) return [400, REFUSED];
  else renew(market, seconds * 1000);
  const startTime = Math.floor(nowMs() / 1000);
  const types = ['spot', 'margin', 'futures'];
  return [200, JSON.stringify({ market, startTime, cancellationTime: startTime + seconds, types })];
}

function serve(request: IncomingMessage, response: ServerResponse): void {
  let body = '';
  request.setEncoding('utf8').on('data', (chunk: string) => {
    body += chunk;
  });
  request.on('end', () => {
    const answer = request.url === SYNC ? sync(body) : ([200, '["pong"]'] as const);
    if (answer === null) return;
    const headers = { 'content-type': 'application/json' };
    setTimeout(() => response.writeHead(answer[0], headers).end(answer[1]), options.answerMs);
  });
}

process.on('message', (ask: Ask) => {
  if (ask === 'forget') timers.clear();
  if (ask !== 'read') tally = fresh();
  process.send?.(read());
});
process.on('disconnect', () => process.exit(0));
const [cert, key] = [options.certFile, options.keyFile].map((file) => readFileSync(file));
const server = createServer({ cert, key, keepAliveTimeout: 0 }, serve);
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
