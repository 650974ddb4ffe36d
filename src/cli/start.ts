import { existsSync } from 'node:fs';
import type { Flags } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { readSecrets, SECRET_VARIABLES } from '../config/secrets.ts';
import { type Daemon, type DaemonOptions, startDaemon } from '../daemon/daemon.ts';
import { createFilesAnswer } from '../daemon/files-answer.ts';
import { VERSION } from '../version.ts';
import { flagsFrom } from './config-flags.ts';
import { type Edge, EXIT } from './edge.ts';

/** The configuration that `run` or `exec` is to guard by, and how it is read again. */
export interface Loaded {
  readonly command: 'run' | 'exec';
  readonly options: Parameters<typeof loadConfig>[0];
  readonly found: Extract<ReturnType<typeof loadConfig>, { kind: 'ok' }>;
}

/** Reads the configuration. Where it cannot be used, says why, ends with 78 and returns null. */
export function loadFor(edge: Edge, command: 'run' | 'exec', given: Record<string, unknown>): Loaded | null {
  const options = { env: edge.env, flags: flagsFrom(given), command } as const;
  const found = loadConfig(options);
  if (found.kind === 'ok') return { command, options, found };
  tellWrong(edge, options.flags, found.shown);
  edge.finish(EXIT.config);
  return null;
}

/** Says what is wrong with a configuration. Where no file was named, that comes first: it is often all that is wrong. */
export function tellWrong(edge: Edge, { config }: Flags, shown: readonly string[]): void {
  if (config === undefined && edge.env['KILLSWITCHD_CONFIG'] === undefined) {
    const advice = existsSync(USUAL_FILE)
      ? `${USUAL_FILE} lies here: write --config ${USUAL_FILE}`
      : 'write --config FILE or set KILLSWITCHD_CONFIG, or set all that it would say in the environment';
    edge.err(`No configuration file is named; ${advice}.`);
  }
  for (const problem of shown) edge.err(problem);
}

const USUAL_FILE = './killswitchd.yaml';

/** Starts the daemon. Where an address cannot be bound, says so, ends with 78 and returns null. */
export async function startFor(
  edge: Edge,
  { command, options, found }: Loaded,
  own: Pick<DaemonOptions, 'clock' | 'lookAtProcess' | 'ownsBot' | 'terminal' | 'write'>,
): Promise<Daemon | null> {
  const { config, warnings, fileHash } = found;
  const filesAnswer = createFilesAnswer(own.clock);
  const named = SECRET_VARIABLES.filter((variable) => /_(FILE|SOURCE)$/.test(variable));
  const secretFiles = named.map((variable) => edge.env[variable]);
  try {
    return await startDaemon({
      ...own,
      config,
      warnings,
      fileHash,
      version: VERSION,
      nodeVersion: edge.nodeVersion,
      manager: edge.serviceManager?.() ?? null,
      filesAnswer: ({ file, control, notify }) =>
        filesAnswer(
          [...secretFiles, control.tokenFile, notify.urlFile, notify.pingUrlFile, file].filter(
            (path) => path !== null && path !== undefined,
          ),
        ),
      load: () => loadConfig(options),
      rereadSecrets: () => readSecrets(edge.env, { demo: config.embeddedExchange }),
    });
  } catch (error) {
    edge.err(`killswitchd ${command}: ${error instanceof Error ? error.message : String(error)}`);
    edge.exitNow(EXIT.config);
    return null;
  }
}

/** How long a slow reader of the log is waited for. */
const FLUSH_MS = 500;

export interface CrashWatch {
  /** To be resolved with the daemon once it has started. */
  readonly daemon: PromiseWithResolvers<Daemon>;
  /** Ends the process because of an error of its own. */
  readonly crash: (error: unknown) => void;
}

/**
 * An error that nobody caught leaves nothing to rely on: the process ends at once and touches no timer, so that the
 * exchange fires them. Install it before anything is started. `also` adds what else is left behind.
 */
export function watchForCrash(edge: Edge, also: () => string = () => ''): CrashWatch {
  const daemon = Promise.withResolvers<Daemon>();
  let log: Daemon['log'] | null = null;
  const crash = (error: unknown) => {
    const text = `Internal error: the process ends and leaves all timers alone; the exchange will fire them.${also()}`;
    const stack = error instanceof Error ? error.stack : String(error);
    if (log === null) edge.err(`${text} ${stack}`);
    else log.logger.fatal({ event: 'crashed', stack }, text);
    const exit = () => edge.exitNow(EXIT.internal);
    if (log === null) exit();
    else log.flush(FLUSH_MS).then(exit, exit);
  };
  edge.onCrash(crash);
  daemon.promise.then((started) => {
    log = started.log;
    edge.onExit?.(() => started.cut());
  }, crash);
  return { daemon, crash };
}
