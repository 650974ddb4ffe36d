import { createHash } from 'node:crypto';
import { type Config, diffConfig } from '../config/config.ts';
import { lookAtConfigFile } from '../config/file.ts';
import type { Loaded } from '../config/load.ts';
import type { Progress } from '../core/events.ts';
import type { ReloadReport } from '../operator/control-sources.ts';
import type { Cancel, Clock } from '../ports.ts';
import type { Operations, ReloadTrigger } from '../telemetry/operations.ts';
import type { Supervision } from '../telemetry/systemd.ts';

export interface ReloadingOptions {
  readonly clock: Clock;
  readonly operations: Operations;
  readonly supervision: Pick<Supervision, 'reloading' | 'reloaded'>;
  /** The configuration in force. */
  readonly config: () => Config;
  /** SHA-256 of the bytes of the file that the first configuration was read from, in hex; null without one. */
  readonly fileHash: string | null;
  /** Whether the file systems of what `load` reads answer: reading holds up the loop. */
  readonly filesAnswer: () => Promise<boolean>;
  /** Reads everything again: file, environment, secrets. */
  readonly load: () => Loaded;
  /** Puts the new configuration in force. */
  readonly apply: (next: Config) => Promise<void>;
  /** Waits for what the new configuration asks of the exchange. */
  readonly settled: (
    markets: {
      readonly armed: readonly string[];
      readonly gone: readonly string[];
    },
    waitMs: number,
  ) => Promise<readonly Progress[]>;
  /** Blots secrets out of what is said about a wrong configuration. */
  readonly hide: (text: string) => string;
}

export interface Reloading {
  /**
   * Resolves when the exchange has confirmed what the new configuration asks for, at the latest after `waitMs`. Nobody
   * waits for the waiting of others: a file that was mended is in force at once. Never rejects.
   */
  reload(trigger: ReloadTrigger, waitMs: number): Promise<ReloadReport>;
  /**
   * Looks at the file every `reload.pollSeconds`, and reloads when its bytes have changed and were the same at two looks.
   * What was rejected is tried again, ever more rarely: the reason may lie outside of the file. Returned function ends
   * it.
   */
  watch(): Cancel;
  /** From here on nothing is reloaded any more: the daemon stops. */
  stop(): void;
}

/** Between two looks at a file that somebody asked to be read. */
const LOOK_GAP_MS = 100;
const MOST_LOOKS = 20;

/** What was rejected is tried again at least this often. */
const LONGEST_RETRY_MS = 300_000;

/** What a reload came to, before anybody waits for the exchange. */
type Taken = Exclude<ReloadReport, { kind: 'applied' }> | Omit<Applied, 'progress'>;
type Applied = Extract<ReloadReport, { kind: 'applied' }>;

const HANGS =
  'the file system of the configuration, of a secret or of a token does not answer: nothing is read, and what is in force stays';

const STOPPING: Taken = {
  kind: 'rejected',
  problems: ['the daemon stops: nothing is reloaded any more'],
};

/**
 * Reads the configuration again while the daemon runs. The whole of the new one is checked first: a wrong one, or one
 * that differs in what cannot change, changes nothing and is told to whoever asked, the log and the metrics.
 */
export function createReloading(options: ReloadingOptions): Reloading {
  const { operations, supervision } = options;
  let underWay: Promise<Taken> | null = null;
  let fresh: Promise<Taken> | null = null;
  let over = false;
  const poll = createPoll(options, () => reload('poll', 0));

  async function run(trigger: ReloadTrigger): Promise<Taken> {
    if (!(await options.filesAnswer())) return reject(trigger, [HANGS]);
    // The poll has looked twice already.
    if (trigger !== 'poll' && !(await isWritten(options))) {
      return reject(trigger, ['the configuration file is being written: it was another one at each look']);
    }
    if (over) return STOPPING;
    const loaded = options.load();
    if (loaded.kind === 'invalid') return reject(trigger, loaded.problems);
    const next = loaded.config;
    const { refusals, added, removed, moved, changed, same } = diffConfig(options.config(), next);
    if (refusals.length > 0) return reject(trigger, refusals);
    if (same) {
      operations.reloadUnchanged(trigger, hashOf(next));
      return { kind: 'unchanged' };
    }
    await options.apply(next);
    poll.follow();
    operations.reloadApplied(trigger, hashOf(next));
    return { kind: 'applied', added, removed, moved, changed };
  }
  function reject(trigger: ReloadTrigger, found: readonly string[]): Taken {
    const problems = found.map(options.hide);
    operations.reloadRejected(trigger, problems);
    return { kind: 'rejected', problems };
  }
  function take(trigger: ReloadTrigger): Promise<Taken> {
    // Whoever asks while one is under way may have changed the file since it was read: theirs comes after it.
    if (underWay !== null) {
      fresh ??= underWay.then(() => {
        fresh = null;
        return take(trigger);
      });
      return fresh;
    }
    supervision.reloading();
    underWay = run(trigger).finally(() => {
      underWay = null;
      supervision.reloaded();
    });
    return underWay;
  }
  async function reload(trigger: ReloadTrigger, waitMs: number): Promise<ReloadReport> {
    const taken = await take(trigger);
    if (taken.kind !== 'applied') return taken;
    const { added, removed, changed } = taken;
    const progress = await options.settled({ armed: [...added, ...changed], gone: removed }, waitMs);
    return { ...taken, progress };
  }
  return {
    reload,
    watch() {
      poll.follow();
      return () => poll.end();
    },
    stop() {
      over = true;
    },
  };
}

/** Whether the file is the same at two looks: half of a file is no configuration. */
async function isWritten({ clock, config }: ReloadingOptions): Promise<boolean> {
  let seen = look(config());
  for (let looks = 1; looks < MOST_LOOKS; looks += 1) {
    await new Promise<void>((resolve) => clock.after(LOOK_GAP_MS, resolve));
    const found = look(config());
    if (found === seen) return true;
    seen = found;
  }
  return false;
}

/** What the configuration file is now: a digest, or why it cannot be read; null without a file. */
function look({ file }: Config): string | null {
  return file === null ? null : lookAtConfigFile(file);
}

/** `follow` begins to look where the configuration in force says so and nobody looks yet. */
function createPoll(options: ReloadingOptions, reload: () => Promise<ReloadReport>) {
  const { clock, config } = options;
  let over = false;
  let cancel: Cancel | null = null;
  /** What was taken over or refused last. It may have been replaced since; null after a time in which nobody looked. */
  let taken = options.fileHash;
  /** What the last look found. */
  let seen = taken;
  let retry: { readonly atMs: number; readonly gapMs: number } | null = null;
  /** What the file was rejected for may have passed: a secret that was not there yet, while a deployment went on. */
  async function take(isNew: boolean): Promise<void> {
    const { kind } = await reload();
    const pollMs = config().reload.pollSeconds * 1000;
    const gapMs =
      isNew || retry === null ? pollMs : Math.max(pollMs, Math.min(retry.gapMs * 2, LONGEST_RETRY_MS));
    retry = kind === 'rejected' ? { gapMs, atMs: clock.now().monoMs + gapMs } : null;
  }
  async function turn(): Promise<void> {
    if (config().reload.pollSeconds > 0 && !(await options.filesAnswer())) {
      cancel = null;
      follow();
      return;
    }
    const found = config().reload.pollSeconds === 0 ? null : look(config());
    const wasSeen = seen === found;
    seen = found;
    if (found === null) {
      taken = null;
      retry = null;
    } else if (found !== taken ? wasSeen : retry !== null && clock.now().monoMs >= retry.atMs) {
      const isNew = found !== taken;
      taken = found;
      await take(isNew);
    }
    cancel = null;
    follow();
  }
  function follow(): void {
    const { pollSeconds } = config().reload;
    if (over || cancel !== null) return;
    if (pollSeconds === 0) taken = null;
    else cancel = clock.after(pollSeconds * 1000, () => void turn());
  }
  return {
    follow,
    end() {
      over = true;
      cancel?.();
    },
  };
}

/** Of what the configuration says, without the secrets. */
export function hashOf({ secrets: _secrets, control, ...rest }: Config): string {
  const { token: _token, ...listening } = control;
  return createHash('sha256')
    .update(JSON.stringify({ ...rest, control: listening }))
    .digest('hex');
}
