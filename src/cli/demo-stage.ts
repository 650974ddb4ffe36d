import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { toCoreSettings } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { readSecrets } from '../config/secrets.ts';
import { boundsOf } from '../core/promise.ts';
import { type Daemon, startDaemon } from '../daemon/daemon.ts';
import { lookAtProc } from '../liveness/process.ts';
import type { Clock } from '../ports.ts';
import { type SimulatedServer, startSimulatedServer } from '../simulator/server.ts';
import { DEMO_KEY } from '../simulator/simulated-exchange.ts';
import { PACKAGE, VERSION } from '../version.ts';
import type { BotEnd } from './bot-process.ts';
import type { Edge } from './edge.ts';

/** The example that is there to be copied, and the configuration of the demonstration, as they are shipped. */
const BOT_SOURCE = fileURLToPath(new URL('config/clients/bot.js', PACKAGE));
const CONFIG = fileURLToPath(new URL('config/demo.yaml', PACKAGE));

export interface DemoBot {
  readonly pid: number;
  readonly signal: (signal: 'SIGSTOP' | 'SIGCONT' | 'SIGTERM' | 'SIGKILL') => void;
  /** Null while it lives. */
  readonly end: () => BotEnd | null;
  readonly ended: Promise<unknown>;
}

/** The exchange and the daemon of the demonstration, in this process. */
export interface DemoStage {
  readonly exchange: SimulatedServer;
  readonly daemon: Daemon;
  readonly markets: readonly string[];
  readonly timeoutMs: number;
  readonly ttlMs: number;
  /** After the bot's last sign of life its orders are cancelled within this. */
  readonly promisedMs: number;
  /** Starts the example bot in a process of its own; `onLine` is told what it prints. */
  readonly startBot: (onLine: (line: string) => void) => DemoBot;
  /** Ends the bot, whatever it does, and then everything else. Asking again joins the first end. */
  readonly end: () => Promise<unknown>;
}

/** Listens at free ports of the loopback and looks at nothing of the environment: no exchange of the user's is touched. */
export async function setStage(edge: Edge, clock: Clock): Promise<DemoStage> {
  const exchange = await startSimulatedServer({ clock, listen: { host: '127.0.0.1', port: 0 } });
  const env = {
    KILLSWITCHD_BASE_URL: exchange.url,
    KILLSWITCHD_API_KEY: DEMO_KEY.key,
    KILLSWITCHD_API_SECRET: DEMO_KEY.secret,
  };
  const options = { env, flags: { config: CONFIG }, command: 'run' } as const;
  const loaded = loadConfig(options);
  if (loaded.kind === 'invalid') throw new Error(loaded.problems.join('\n'));
  const { config } = loaded;
  const daemon = await startDaemon({
    config,
    warnings: [],
    fileHash: loaded.fileHash,
    clock,
    version: VERSION,
    nodeVersion: edge.nodeVersion,
    manager: null,
    load: () => loadConfig(options),
    lookAtProcess: lookAtProc,
    filesAnswer: () => Promise.resolve(true),
    rereadSecrets: () => readSecrets(env, { demo: false }),
    // The timeline says it in its own words.
    write: (bytes, done) => queueMicrotask(() => done(null, bytes.length)),
  });
  let bot: DemoBot | null = null;
  let ending: Promise<unknown> | null = null;
  const endAll = async () => {
    bot?.signal('SIGKILL');
    await bot?.ended;
    await daemon.stop('the demonstration ends');
    await exchange.close();
  };
  const settings = toCoreSettings(config, [exchange.url]);
  return {
    exchange,
    daemon,
    markets: config.markets.map(({ market }) => market),
    timeoutMs: config.defaults.timeoutSeconds * 1000,
    ttlMs: config.liveness.ttlSeconds * 1000,
    promisedMs: boundsOf(settings, 0, 0).botDeathMs ?? 0,
    startBot(onLine) {
      const [control = ''] = daemon.controls;
      bot = startDemoBot(edge.nodePath ?? 'node', control.replace('http://', ''), onLine);
      return bot;
    },
    end() {
      ending ??= endAll();
      return ending;
    },
  };
}

function startDemoBot(nodePath: string, control: string, onLine: (line: string) => void): DemoBot {
  const args = ['--title=killswitchd-demo-bot', BOT_SOURCE];
  const child = spawn(nodePath, args, {
    env: { KILLSWITCHD_CONTROL: control },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let end: BotEnd | null = null;
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      onLine(error.message);
      end = { code: null, signal: null };
      resolve();
    });
    child.once('exit', (code, signal) => {
      end = { code, signal };
    });
    child.once('close', () => resolve());
  });
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', onLine);
  return { pid: child.pid ?? 0, signal: (signal) => void child.kill(signal), end: () => end, ended };
}
