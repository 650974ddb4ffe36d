import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { botsOf, type Config, diffConfig, hashOf } from '../config/config.ts';
import { lookAtFile } from '../config/file.ts';
import type { Load, Loaded, LoadedConfig } from '../config/load.ts';
import { type Environment, SECRET_VARIABLES } from '../config/secrets.ts';
import type { ReloadReport } from '../operator/control-sources.ts';
import type { Cancel, Clock } from '../ports.ts';
import type { Supervision } from '../telemetry/systemd.ts';
import { within } from '../util/pace.ts';
import type { Guard } from './guard.ts';
import type { ReloadTrigger, Telling } from './telling.ts';

/** Where a daemon begins, and what it reads its configuration from again. */
export interface Origin {
  readonly clock: Clock;
  readonly loaded: LoadedConfig;
  readonly load: Load;
  readonly env: Environment;
}

/** What a configuration changes while the daemon runs. */
export interface Running extends Origin {
  readonly inForce: ReturnType<typeof createInForce>;
  /** Whether the file systems of all that is read again answer: reading holds up the loop. */
  readonly filesAnswer: () => Promise<boolean>;
  readonly telling: Telling;
  readonly guard: Guard;
  readonly supervision: Supervision | null;
}

const LOOK_GAP_MS = 100;
/** Half of a secret is a secret in its own right: one that has changed is waited for longer. */
const SECRET_LOOKS = 11;
const MOST_LOOKS = 50;
const LONGEST_RETRY_MS = 300_000;

const HANGS =
  'the file system of the configuration, of a secret or of a token does not answer: nothing is read, and what is in force stays';
const CHANGES =
  'the configuration file, or that of a secret or of a token, is being written: it was another one at each look';
const STOPPING = 'the daemon stops: nothing is reloaded any more';

/** Reads the configuration again. One that is wrong, or differs in what cannot change, changes nothing at all. */
export function createReloading(daemon: Running) {
  const { inForce, guard, telling, supervision } = daemon;
  const { operations } = telling;
  let underWay: Promise<ReloadReport> | null = null;
  let fresh: Promise<ReloadReport> | null = null;
  let over = false;
  const poll = createPoll(daemon, () => take('poll'));
  const lookAtSecrets = (config: Config) => lookAtAll(secretFilesOf(config, daemon.env));
  let secrets = lookAtSecrets(inForce.config());

  async function run(trigger: ReloadTrigger): Promise<ReloadReport> {
    const loaded = await read(daemon, secrets);
    if (over) return { kind: 'rejected', problems: [STOPPING] };
    if (loaded.kind === 'invalid') return reject(trigger, loaded.problems);
    const next = loaded.config;
    const { refusals, added, removed, moved, changed, same } = diffConfig(inForce.config(), next);
    if (refusals.length > 0) return reject(trigger, refusals);
    secrets = lookAtSecrets(next);
    if (!same) {
      telling.follow(next);
      guard.replaceSecrets(next);
      inForce.follow(next);
    }
    poll.took(loaded);
    operations[same ? 'reloadUnchanged' : 'reloadApplied'](trigger, hashOf(next));
    return same ? { kind: 'unchanged' } : { kind: 'applied', added, removed, moved, changed, progress: [] };
  }
  function reject(trigger: ReloadTrigger, found: readonly string[]): ReloadReport {
    const problems = found.map(guard.hide);
    operations.reloadRejected(trigger, problems);
    return { kind: 'rejected', problems };
  }
  function take(trigger: ReloadTrigger): Promise<ReloadReport> {
    if (underWay === null) {
      supervision?.reloading();
      underWay = run(trigger).finally(() => {
        underWay = null;
        supervision?.reloaded();
      });
      return underWay;
    }
    // The file may have changed since the reload under way has read it: another reload follows.
    fresh ??= underWay.then(() => {
      fresh = null;
      return take(trigger);
    });
    return fresh;
  }
  /** Waits only for its own markets: a mended file is in force at once, whoever still waits. Never rejects. */
  async function reload(trigger: ReloadTrigger, waitMs: number): Promise<ReloadReport> {
    const taken = await take(trigger);
    if (taken.kind !== 'applied') return taken;
    const { settled } = guard.keeper;
    const armed = settled('arm', [...taken.added, ...taken.changed], waitMs);
    const progress = await Promise.all([armed, settled('remove', taken.removed, waitMs)]);
    return { ...taken, progress: progress.flat() };
  }
  return {
    reload,
    watch: (): void => poll.took(daemon.loaded),
    stop(): void {
      over = true;
      poll.stop();
    },
  };
}

/**
 * Reads the configuration and all that it names once all files were the same at two looks, and secrets that are not the
 * ones known for a second: half of a file is no configuration. Each look, and the reading after the last, follows right
 * after an answer of the file systems.
 */
async function read({ clock, inForce, filesAnswer, env, load }: Running, known: string): Promise<Loaded> {
  const refused = (why: string): Loaded => ({ kind: 'invalid', problems: [why], shown: () => [] });
  let files = secretFilesOf(inForce.config(), env);
  let seen: string | null = null;
  let same = 0;
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    if (looks > 0) await new Promise<void>((resolve) => clock.after(LOOK_GAP_MS, resolve));
    if (!(await filesAnswer())) return refused(HANGS);
    const secrets = lookAtAll(files);
    const found = `${look(inForce.config())} ${secrets}`;
    same = found === seen ? same + 1 : 1;
    seen = found;
    if (same < (secrets === known ? 2 : SECRET_LOOKS)) continue;
    const loaded = load();
    const named = loaded.kind === 'ok' ? secretFilesOf(loaded.config, env) : files;
    if (named.every((file) => files.includes(file))) return loaded;
    // It names files that were not looked at yet.
    files = named;
  }
  return refused(CHANGES);
}

/** What the configuration file is now: a digest, or why it cannot be read; null without a file. */
const look = ({ file }: Config) => (file === null ? null : lookAtFile(file));

const lookAtAll = (files: readonly string[]) => files.map(lookAtFile).join();

/** Reloads once the file has changed and was the same at two looks. What was rejected is tried again, ever more rarely. */
function createPoll(daemon: Running, reload: () => Promise<ReloadReport>) {
  const { clock, filesAnswer } = daemon;
  const { config } = daemon.inForce;
  let over = false;
  let cancel: Cancel = () => {};
  /** The file as it was taken over or refused last. */
  let taken: string | null = null;
  let seen: string | null = null;
  let retry: { readonly atMs: number; readonly gapMs: number } | null = null;
  async function turn(): Promise<void> {
    if (await filesAnswer()) await compare();
    wait();
  }
  async function compare(): Promise<void> {
    const found = look(config());
    const wasSeen = seen === found;
    seen = found;
    const isNew = found !== taken;
    if (isNew ? !wasSeen : retry === null || clock.now().monoMs < retry.atMs) return;
    taken = found;
    const { kind } = await reload();
    // A rejected file is tried again: its secret may not have been there yet, while a deployment went on.
    const pollMs = config().reload.pollSeconds * 1000;
    const gapMs = isNew || retry === null ? 0 : Math.min(retry.gapMs * 2, LONGEST_RETRY_MS);
    const nextMs = Math.max(pollMs, gapMs);
    retry = kind === 'rejected' ? { gapMs: nextMs, atMs: clock.now().monoMs + nextMs } : null;
  }
  /** Waits for the next look as long as the configuration in force says. */
  function wait(): void {
    const { pollSeconds } = config().reload;
    cancel();
    if (pollSeconds > 0 && !over) cancel = clock.after(pollSeconds * 1000, () => void turn());
  }
  return {
    /** A file was taken over, at the start or by a reload that anybody asked for. */
    took({ fileHash }: LoadedConfig): void {
      [taken, seen, retry] = [fileHash, fileHash, null];
      wait();
    },
    stop(): void {
      over = true;
      cancel();
    },
  };
}

/**
 * The configuration in force, and with it the markets that a reload gave to another shard. That one may learn of it
 * later: this one goes on renewing them for a while; both renew the same timer, which changes nothing. `guard` is told
 * whenever other markets are to be guarded here, or in another way.
 */
export function createInForce(clock: Clock, initial: Config, guard: (guarded: Config) => void) {
  let config = initial;
  let guarded = initial;
  let bots = botsOf(initial.fleet);
  /** Until when a market stays here, by its name; monotonic milliseconds. */
  let staying: ReadonlyMap<string, number> = new Map();
  let cancel: Cancel = () => {};

  function keep(until: ReadonlyMap<string, number>): void {
    cancel();
    const own = new Set(config.markets.map(({ market }) => market));
    const nowMs = clock.now().monoMs;
    const endOf = (market: string) => until.get(market) ?? nowMs;
    const others = config.fleet.filter(({ market }) => !own.has(market) && endOf(market) > nowMs);
    staying = new Map(others.map(({ market }) => [market, endOf(market)]));
    guarded = others.length === 0 ? config : { ...config, markets: [...config.markets, ...others] };
    guard(guarded);
    if (others.length === 0) return;
    const nextMs = [...staying.values()].reduce((least, untilMs) => Math.min(least, untilMs));
    cancel = clock.after(nextMs - nowMs, () => keep(staying));
  }
  return {
    config: () => config,
    /** The same with the markets that stay. */
    guarded: () => guarded,
    /** Those of all shards: their beats are known here. */
    bots: (): readonly string[] => bots,
    /** Another configuration is in force. Markets that it gives to another shard stay for `shard.handoverSeconds`. */
    follow(next: Config): void {
      const untilMs = clock.now().monoMs + next.shard.handoverSeconds * 1000;
      config = next;
      bots = botsOf(next.fleet);
      keep(new Map(guarded.markets.map(({ market }) => [market, staying.get(market) ?? untilMs])));
    },
    /** Lets go of all that stay at once: the daemon stops, and deletes no timer that another shard renews. */
    end(): void {
      if (staying.size > 0) keep(new Map());
    },
  };
}

/** The files of secrets, of the token and of addresses that `load` and `readSecrets` read. */
function secretFilesOf({ control, notify }: Config, env: Environment): string[] {
  const secrets = SECRET_VARIABLES.flatMap((name) => (/_(FILE|SOURCE)$/.test(name) ? env[name] : []));
  const named = [...secrets, control.tokenFile, notify.urlFile, notify.pingUrlFile];
  return named.filter((path) => path != null);
}

const ANSWER_WITHIN_MS = 5000;

/**
 * Whether the file systems of all that `load` reads answer within 5 s; a missing file is an answer. A thread of libuv
 * opens the files one after the other: one that hangs does not hold up the loop. The configuration file comes last, so
 * that its answer is the newest. While one look hangs, every later question waits for the same look.
 */
export function createFilesAnswer({ clock, env }: Origin, config: () => Config): () => Promise<boolean> {
  let looks: Promise<void> | null = null;
  return async () => {
    looks ??= lookAtFiles([secretFilesOf(config(), env), config().file ?? []].flat()).finally(() => {
      looks = null;
    });
    return (await within(clock, ANSWER_WITHIN_MS, looks)) !== null;
  };
}

async function lookAtFiles(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    try {
      // Without a wait for the writer of a pipe.
      await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
      if ((await file.stat()).isFile()) await file.read(Buffer.alloc(1), 0, 1, 0);
    } catch {
      // The reader of the file reports why it cannot be read.
    }
  }
}
