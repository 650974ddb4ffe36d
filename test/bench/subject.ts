import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'undici';
import { freePort } from '../process/program.ts';
import type { SubjectName } from './book.ts';
import type { PeerOptions } from './peer.ts';
import { kill, type Running, startNode, whileAlive } from './processes.ts';
import { marketNames } from './protocol.ts';
import type { Exchange, Rig } from './rig.ts';

export interface DaemonOptions {
  readonly url: string;
  readonly markets: number;
  readonly config?: Readonly<Record<string, Record<string, unknown>>>;
  /** Flags of Node. The process gets a channel along with them. */
  readonly flags?: readonly string[];
  readonly alone?: boolean;
}

export interface Fleet {
  readonly markets: number;
  readonly timeoutSeconds: number;
  /** So many of them get no answer that helps. */
  readonly sick?: number;
}

/** As many renewals a second as the documented limit has room for. */
const LIMIT_PER_SECOND = 933;
const [BEAT_EVERY_MS, SCRAPE_EVERY_MS, PAGE_RETRY_MS] = [1000, 5000, 250];

/** The configuration of a daemon under measure: nonces in a window, the whole documented limit, a watched bot. */
export function configOf({ url, markets, config = {} }: DaemonOptions, web: string, socket: string): object {
  return {
    ...config,
    exchange: { baseUrls: [url], nonce: 'window', budgetShare: 1, ...config['exchange'] },
    markets: marketNames(markets),
    liveness: { mode: 'beat', ...config['liveness'] },
    shutdown: { policy: 'delete', budgetSeconds: 60 },
    web: { listen: [web] },
    control: { listen: [`unix:${socket}`] },
  };
}

/** The program as packaged: its log in a file, a bot that beats, scrapes every 5 s, and the status page open. */
export async function startDaemon(rig: Rig, options: DaemonOptions) {
  const web = `127.0.0.1:${await freePort()}`;
  const [socketPath, configFile, logFile] = [rig.file('s'), rig.file('config.json'), rig.file('daemon.log')];
  writeFileSync(configFile, JSON.stringify(configOf(options, web, socketPath)));
  const { flags = [], alone = false } = options;
  const { cores, env } = rig;
  const memory = ['--max-semi-space-size=4', '--max-old-space-size=2000'];
  const node = [...memory, ...flags, rig.bundle('dist/main.js')];
  const how = { cores, on: 'subject', logFile, env, channel: flags.length > 0 } as const;
  const running = startNode([...node, 'run', '--config', configFile], how);
  const get = async (path: string) => (await fetch(`http://${web}${path}`)).text();
  if (!alone) void running.ended.then(keepCompany(running, web, socketPath));
  return { running, configFile, get };
}

/** A bot, a Prometheus, and a browser with the status page. Returns how to send them home. */
function keepCompany({ pid }: Running, web: string, socketPath: string): () => void {
  const home = new AbortController();
  const { signal } = home;
  const bot = new Client('http://localhost', { connect: { socketPath } });
  const ignore = () => undefined;
  let seq = 0;
  const beat = setInterval(() => {
    seq += 1;
    const body = JSON.stringify({ bot: 'default', session: `bench-${pid}`, seq });
    const headers = { 'content-type': 'application/json' };
    const answer = bot.request({ path: '/v1/beat', method: 'POST', headers, body });
    answer.then((heard) => heard.body.dump()).catch(ignore);
  }, BEAT_EVERY_MS);
  const headers = { accept: 'application/openmetrics-text' };
  const read = async (path: string) => {
    const page = await fetch(`http://${web}${path}`, { signal, headers }).catch(ignore);
    await page?.text().catch(ignore);
  };
  const scrape = setInterval(() => void read('/metrics'), SCRAPE_EVERY_MS);
  // The stream of the status page stays open, as in a browser: it tries again until it is there.
  const openPage = async (): Promise<void> => {
    await read('/api/v1/events');
    if (!signal.aborted) setTimeout(() => void openPage(), PAGE_RETRY_MS);
  };
  void openPage();
  return () => {
    home.abort();
    clearInterval(beat);
    clearInterval(scrape);
    void bot.destroy();
  };
}

/** Gives `work` the daemon, or a loop of a user's own in its place, once its markets are armed. */
export async function withSubject(
  rig: Rig,
  exchange: Exchange,
  name: SubjectName,
  fleet: Fleet,
  work: (subject: Awaited<ReturnType<typeof start>>) => Promise<void>,
): Promise<void> {
  const subject = await start(rig, exchange, name, fleet);
  try {
    await exchange.allArmed(fleet.markets - (fleet.sick ?? 0));
    await whileAlive(subject.running, work(subject));
  } finally {
    await kill(subject.running);
  }
}

async function start(rig: Rig, { url }: Exchange, name: SubjectName, { markets, timeoutSeconds }: Fleet) {
  if (name === 'daemon' || name === 'rising')
    return startDaemon(rig, { url, markets, config: configFor(name, timeoutSeconds) });
  const { cores, secret, env } = rig;
  const ccxt = name === 'ccxt' ? { ccxt: await rig.ccxt() } : {};
  const periodMs = Math.max(timeoutSeconds * 100, (markets / LIMIT_PER_SECOND) * 1000, 1000);
  const options: PeerOptions = { ...ccxt, kind: name, url, markets, timeoutSeconds, periodMs, secret };
  const args = [join(import.meta.dirname, 'peer.ts'), JSON.stringify(options)];
  const running = startNode(args, { cores, on: 'subject', logFile: rig.file(`${name}.log`), env });
  return { running, get: async () => '' };
}

export function configFor(name: SubjectName, timeoutSeconds: number) {
  const nonce = name === 'rising' ? 'increasing' : 'window';
  return { exchange: { nonce }, defaults: { timeoutSeconds } };
}
