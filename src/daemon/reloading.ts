import { botsOf, type Config, diffConfig, hashOf } from '../config/config.ts';
import { contentOf } from '../config/file.ts';
import type { Load, LoadedConfig } from '../config/load.ts';
import { wrong } from '../config/problem.ts';
import {
  type Environment,
  type Look,
  type LookAt,
  lookAside,
  lookNow,
  readSecrets,
  SECRET_VARIABLES,
} from '../config/secrets.ts';
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
  readonly lookAtFiles: LookAtFiles;
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
  let underWay: Promise<unknown> = Promise.resolve();
  let waiting: Promise<ReloadReport> | null = null;
  let over = false;
  const poll = createPoll(daemon, () => take('poll'));
  const secretsIn = (config: Config, lookAt: LookAt) => contentsOf(secretFilesOf(config, daemon.env), lookAt);
  let secrets = secretsIn(inForce.config(), lookNow);

  async function run(trigger: ReloadTrigger): Promise<ReloadReport> {
    const found = await read(daemon, secrets);
    if (over) return { kind: 'rejected', problems: [STOPPING] };
    if ('problems' in found) return reject(trigger, found.problems);
    const { loaded, seen } = found;
    const next = loaded.config;
    const { refusals, added, removed, moved, changed, ...diff } = diffConfig(inForce.config(), next);
    if (refusals.length > 0) return reject(trigger, refusals);
    secrets = secretsIn(next, seen);
    // While the key was refused another one may have been read, which the configuration in force does not know.
    const same = !guard.replaceSecrets(next) && diff.same;
    if (!same) {
      telling.follow(next);
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
  /** The file may have changed since the reload under way has read it: another one follows, for all who ask meanwhile. */
  function take(trigger: ReloadTrigger): Promise<ReloadReport> {
    waiting ??= underWay.then(() => {
      waiting = null;
      supervision?.reloading();
      const report = run(trigger).finally(() => supervision?.reloaded());
      underWay = report;
      return report;
    });
    return waiting;
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

const UNSEEN: Look = { content: wrong('was not looked at yet'), changedMs: null };
const seenIn = (looks: Looks) => (path: string) => looks.get(path) ?? UNSEEN;

/**
 * Reads the configuration and all that it names once all files were the same at two looks, and secrets that are not the
 * ones known for a second: half of a file is no configuration. It is read out of the last look.
 */
async function read({ clock, inForce, lookAtFiles, env, load }: Running, known: string) {
  const named = secretFilesOf(inForce.config(), env);
  const { file } = inForce.config();
  let before: string | null = null;
  let same = 0;
  for (let count = 0; count < MOST_LOOKS; count += 1) {
    if (count > 0) await new Promise<void>((resolve) => clock.after(LOOK_GAP_MS, resolve));
    const looks = await lookAtFiles(named);
    if (looks === null) return { problems: [HANGS] };
    const seen = seenIn(looks);
    const secrets = contentsOf(named, seen);
    const found = `${file === null ? null : contentOf(seen(file))} ${secrets}`;
    same = found === before ? same + 1 : 1;
    before = found;
    if (same < (secrets === known ? 2 : SECRET_LOOKS)) continue;
    const unseen = new Set<string>();
    const loaded = load((path) => {
      if (!looks.has(path)) unseen.add(path);
      return seen(path);
    });
    if (unseen.size === 0) return loaded.kind === 'ok' ? { loaded, seen } : loaded;
    // It names files that were not looked at yet.
    named.push(...unseen);
  }
  return { problems: [CHANGES] };
}

const contentsOf = (files: readonly string[], lookAt: LookAt) =>
  files.map((file) => contentOf(lookAt(file))).join();

/** Reloads once the file has changed and was the same at two looks. What was rejected is tried again, ever more rarely. */
function createPoll(daemon: Running, reload: () => Promise<ReloadReport>) {
  const { clock, lookAtFiles } = daemon;
  const { config } = daemon.inForce;
  let over = false;
  let cancel: Cancel = () => {};
  /** The file as it was taken over or refused last. */
  let taken: string | null = null;
  let seen: string | null = null;
  let retry: { readonly atMs: number; readonly gapMs: number } | null = null;
  async function turn(): Promise<void> {
    const looks = await lookAtFiles();
    if (looks !== null) await compare(looks);
    wait();
  }
  async function compare(looks: Looks): Promise<void> {
    const { file } = config();
    const found = file === null ? null : contentOf(seenIn(looks)(file));
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

/** The secret files once more, for a key that is refused; null where their file systems do not answer. */
export async function rereadSecrets({ env, loaded }: Origin, lookAtFiles: LookAtFiles) {
  const looks = await lookAtFiles();
  if (looks === null) return null;
  return readSecrets(env, { demo: loaded.config.embeddedExchange, lookAt: seenIn(looks) });
}

/** The files of secrets, of the token and of addresses that `load` and `readSecrets` read. */
function secretFilesOf({ control, notify }: Config, env: Environment): string[] {
  const secrets = SECRET_VARIABLES.flatMap((name) => (/_(FILE|SOURCE)$/.test(name) ? env[name] : []));
  const named = [...secrets, control.tokenFile, notify.urlFile, notify.pingUrlFile];
  return named.filter((path) => path != null);
}

const ANSWER_WITHIN_MS = 5000;

/** What files were at one look, by their paths. */
type Looks = ReadonlyMap<string, Look>;
/** Looks at all that `load` reads, and at `more`; null where a file system does not answer within 5 s. */
export type LookAtFiles = (more?: readonly string[]) => Promise<Looks | null>;

/**
 * A thread of libuv reads the files one after the other: one that hangs holds up no renewal. The configuration file
 * comes last, so that its content is the newest. While one look hangs, every later question waits for the same look.
 */
export function createLooks({ clock, env }: Origin, config: () => Config): LookAtFiles {
  let underWay: Promise<Looks> | null = null;
  return (more = []) => {
    const paths = [...secretFilesOf(config(), env), ...more, config().file ?? []].flat();
    underWay ??= lookAtEach(new Set(paths)).finally(() => {
      underWay = null;
    });
    return within(clock, ANSWER_WITHIN_MS, underWay);
  };
}

async function lookAtEach(paths: ReadonlySet<string>): Promise<Looks> {
  const looks = new Map<string, Look>();
  for (const path of paths) looks.set(path, await lookAside(path));
  return looks;
}
