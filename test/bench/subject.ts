import { readFileSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import type { PeerOptions } from './clients.ts';
import { type Histogram, histogramOf } from './histogram.ts';
import { lateInRecord } from './lateness.ts';
import { cpuSeconds, rssMb } from './machine.ts';
import { kill, type Running, startNode } from './processes.ts';
import { type Lateness, marketName } from './protocol.ts';
import { freePort, type Rig } from './rig.ts';
import { CONNECTIONS, PERIOD_MS, TIMEOUT_SECONDS } from './stage.ts';

export const SUBJECTS = ['daemon', 'undici', 'fetch', 'ccxt', 'floor'] as const;
export type SubjectName = (typeof SUBJECTS)[number];
export type PeerName = Exclude<SubjectName, 'daemon'>;

/** What keeps timers armed in one run. */
export interface Subject {
  readonly running: Running;
  readonly cpu: () => number;
  readonly rss: () => number;
  readonly kill: () => Promise<void>;
}

export interface PeerSubject extends Subject {
  /** How late it sent its renewals between two moments (Unix milliseconds), once it was stopped by SIGTERM. */
  readonly lateness: (window: { readonly fromMs: number; readonly untilMs: number }) => Lateness | null;
}

export interface DaemonSubject extends Subject {
  /** How late it was so far with what it sent, by its own metrics. */
  readonly delays: () => Promise<Histogram>;
  /** Sum of the series of a metric. */
  readonly metric: (name: string) => Promise<number>;
  /** The period in force of the first market, in milliseconds. */
  readonly periodMs: () => Promise<number>;
  readonly get: (path: string) => Promise<string>;
  /** Reads the page of metrics as a Prometheus does, compressed. */
  readonly scrape: () => Promise<unknown>;
  readonly post: (path: string, body: object) => Promise<string>;
  /** From now on a bot beats, a Prometheus scrapes and the status page is open: for one that was started alone. */
  readonly keepCompany: () => void;
  readonly configFile: string;
}

export interface DaemonOptions {
  readonly url: string;
  readonly markets: number;
  readonly config?: Readonly<Record<string, Record<string, unknown>>>;
  readonly preload?: readonly string[];
  readonly flags?: readonly string[];
  readonly channel?: boolean;
  /** Nobody beats, scrapes or looks until it is given company. */
  readonly alone?: boolean;
}

const SCRAPE_EVERY_MS = 5000;
const BEAT_EVERY_MS = 1000;
const PAGE_RETRY_MS = 250;

function subjectOf(running: Running): Subject {
  const { pid } = running;
  return { running, cpu: () => cpuSeconds(pid), rss: () => rssMb(pid), kill: () => kill(running) };
}

/** The configuration of a daemon under measure: nonces in a window, the whole documented limit, a watched bot. */
export function configOf({ url, markets, config = {} }: DaemonOptions, web: string, socket: string): object {
  return {
    ...config,
    exchange: { baseUrls: [url], nonce: 'window', budgetShare: 1, ...config['exchange'] },
    defaults: { timeoutSeconds: TIMEOUT_SECONDS, ...config['defaults'] },
    markets: Array.from({ length: markets }, (_, index) => marketName(index)),
    liveness: { mode: 'beat', ...config['liveness'] },
    shutdown: { policy: 'delete', budgetSeconds: 60, ...config['shutdown'] },
    web: { listen: [web] },
    control: { listen: [`unix:${socket}`] },
  };
}

/** The program as shipped: its log in a file, a bot that beats, scrapes every 5 s, and the status page open. */
export async function startDaemon(rig: Rig, options: DaemonOptions): Promise<DaemonSubject> {
  const web = `127.0.0.1:${await freePort()}`;
  const socketPath = rig.file('s');
  const configFile = rig.file('config.json');
  writeFileSync(configFile, JSON.stringify(configOf(options, web, socketPath)));
  const { preload = [], flags = [], channel = false } = options;
  const running = startNode([rig.program, 'run', '--config', configFile], {
    cores: rig.cores,
    on: 'subject',
    logFile: rig.file('daemon.log'),
    env: {
      KILLSWITCHD_API_KEY: 'bench-key',
      KILLSWITCHD_API_SECRET: rig.secret,
      NODE_EXTRA_CA_CERTS: rig.certificate.certFile,
    },
    preload,
    flags,
    channel,
  });
  const get = (path: string) => ask(whereOf(web, path));
  // As Prometheus does it.
  const scrape = () =>
    ask({ ...whereOf(web, '/metrics'), headers: { accept: 'application/openmetrics-text' } });
  const post = (path: string, body: object) =>
    ask({ socketPath, path, method: 'POST' }, JSON.stringify(body));
  const company = () => {
    const leave = keepCompany(running, web, { scrape, post });
    void running.ended.then(leave);
  };
  if (options.alone !== true) company();
  return {
    ...subjectOf(running),
    get,
    scrape,
    post,
    configFile,
    keepCompany: company,
    delays: async () => histogramOf(await get('/metrics'), 'killswitch_schedule_delay_seconds'),
    metric: async (name) => sumOf(await get('/metrics'), name),
    async periodMs() {
      const status = JSON.parse(await get('/api/v1/status?view=page')) as {
        markets: { renewEverySeconds: number }[];
      };
      return (status.markets[0]?.renewEverySeconds ?? 0) * 1000;
    },
  };
}

/** A bot, a Prometheus, and a browser with the status page. */
function keepCompany(
  running: Running,
  web: string,
  { scrape: page, post }: Pick<DaemonSubject, 'scrape' | 'post'>,
): () => void {
  let seq = 0;
  const ignore = () => undefined;
  const beat = setInterval(() => {
    seq += 1;
    post('/v1/beat', { bot: 'default', session: `bench-${running.pid}`, seq }).catch(ignore);
  }, BEAT_EVERY_MS);
  const scrape = setInterval(() => void page().catch(ignore), SCRAPE_EVERY_MS);
  const closePage = openPage(web);
  return () => {
    clearInterval(beat);
    clearInterval(scrape);
    closePage();
  };
}

/** Holds the stream open that the status page reads, as a browser does: it tries again until it is there. */
function openPage(web: string): () => void {
  let closed = false;
  let close = () => undefined as void;
  const open = () => {
    if (closed) return;
    const call = request(`http://${web}/api/v1/events`, { agent: false }, (answer) => answer.resume());
    call.on('error', () => undefined);
    call.on('close', () => setTimeout(open, PAGE_RETRY_MS));
    call.end();
    close = () => void call.destroy();
  };
  open();
  return () => {
    closed = true;
    close();
  };
}

function whereOf(web: string, path: string): Where {
  const { hostname: host, port } = new URL(`http://${web}`);
  return { host, port: Number(port), path };
}

interface Where {
  readonly host?: string;
  readonly port?: number;
  readonly socketPath?: string;
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function ask(where: Where, body?: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const headers = { ...where.headers, ...type };
  const call = request({ ...where, headers, agent: false }, (answer: IncomingMessage) => {
    let text = '';
    answer.setEncoding('utf8');
    answer.on('data', (chunk: string) => {
      text += chunk;
    });
    answer.on('end', () => resolve(text));
    answer.on('error', reject);
  });
  call.on('error', reject);
  call.end(body);
  return promise;
}

/** The sum of all series of a metric. */
export function sumOf(page: string, name: string): number {
  return page
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

const PEER = new URL('./peer.ts', import.meta.url).pathname;

/** What a peer does otherwise than all others. */
export type PeerStart = Pick<PeerOptions, 'kind' | 'url' | 'markets'> & Partial<PeerOptions>;

/** A loop of a user's own. */
export function startPeer(rig: Rig, options: PeerStart, preload: readonly string[] = []): PeerSubject {
  const record = rig.file('record');
  const given: PeerOptions = {
    timeoutSeconds: TIMEOUT_SECONDS,
    periodMs: PERIOD_MS,
    connections: CONNECTIONS,
    ...options,
    record,
    secret: rig.secret,
    ...('module' in rig.ccxt ? { ccxt: rig.ccxt.module } : {}),
  };
  const running = startNode([PEER, JSON.stringify(given)], {
    cores: rig.cores,
    on: 'subject',
    logFile: rig.file(`${options.kind}.log`),
    env: { NODE_EXTRA_CA_CERTS: rig.certificate.certFile },
    preload,
    channel: preload.length > 0,
  });
  return {
    ...subjectOf(running),
    lateness({ fromMs, untilMs }) {
      const { buffer } = Uint8Array.from(readFileSync(record));
      return lateInRecord(new Float64Array(buffer), fromMs, untilMs);
    },
  };
}
