import { writeFileSync } from 'node:fs';
import { createClient, marketNames, type PeerOptions } from './clients.ts';
import { nowMs } from './protocol.ts';

const TICK_MS = 25;
const options = JSON.parse(process.argv[2] ?? '{}') as PeerOptions;
const { kind, markets, timeoutSeconds, periodMs, connections } = options;
const names = marketNames(markets);
const client = await createClient(options);
const timers: NodeJS.Timeout[] = [];
/** When each renewal was planned, and when it was sent. Unix milliseconds. */
const record: number[] = [];
const ignore = () => undefined;
let stopped = false;

/** Once for every market, as many at a time as there are connections. */
async function each(timeout: number | null): Promise<void> {
  let at = 0;
  const lane = (over: () => void) => {
    const name = names[at];
    at += 1;
    if (name === undefined) over();
    else client(name, timeout, () => lane(over));
  };
  await Promise.all(Array.from({ length: connections }, () => new Promise<void>(lane)));
}

function renew(market: string, plannedMs: number): void {
  record.push(plannedMs, nowMs());
  client(market, timeoutSeconds, ignore);
}

/** An interval per market, started where the market stands on the grid. */
function pace(): void {
  const startMs = nowMs();
  names.forEach((name, index) => {
    const phaseMs = (periodMs * index) / markets;
    let plannedMs = startMs + phaseMs;
    const next = () => {
      renew(name, plannedMs);
      plannedMs += periodMs;
    };
    timers[index] = setTimeout(() => {
      next();
      timers[index] = setInterval(next, periodMs);
    }, phaseMs);
  });
}

/** One timer for all: what is due is sent together. */
function paceInTicks(): void {
  const startMs = nowMs();
  let sent = 0;
  const tick = () => {
    const due = Math.floor(((nowMs() - startMs) * markets) / periodMs) + 1;
    for (; sent < due; sent += 1) renew(names[sent % markets] ?? '', startMs + (sent * periodMs) / markets);
  };
  timers.push(setInterval(tick, TICK_MS));
}

function flood(): void {
  let at = 0;
  const lane = () => {
    at = (at + 1) % markets;
    client(names[at] ?? '', timeoutSeconds, lane);
  };
  for (let lanes = 0; lanes < connections; lanes += 1) lane();
}

/** What stands in the `finally` of such a loop. */
async function stop(): Promise<void> {
  stopped = true;
  for (const timer of timers) clearTimeout(timer);
  await each(null);
  writeFileSync(options.record, Float64Array.from(record));
  process.exit(0);
}

process.once('SIGTERM', () => void stop());
if (periodMs === 0) {
  flood();
} else {
  await each(timeoutSeconds);
  if (!stopped) (kind === 'floor' ? paceInTicks : pace)();
}
