import { isDeepStrictEqual } from 'node:util';
import { botsOf, type Config, diffConfig, hashOf } from '../config/config.ts';
import type { Load, LoadedConfig } from '../config/load.ts';
import { wrong } from '../config/problem.ts';
import {
  type Contents,
  contentOf,
  type Environment,
  type Look,
  lookInThread,
  readSecrets,
} from '../config/secrets.ts';
import type { ReloadReport } from '../operator/control-sources.ts';
import type { Cancel, Clock } from '../ports.ts';
import type { Supervision } from '../telemetry/systemd.ts';
import { within } from '../util/pace.ts';
import type { Guard } from './guard.ts';
import type { ReloadTrigger, Telemetry } from './telemetry.ts';

/** What a daemon starts with, and reads its configuration from again. */
export interface ReloadOptions {
  readonly clock: Clock;
  readonly loaded: LoadedConfig;
  readonly load: Load;
  readonly env: Environment;
}

/** What a configuration changes while the daemon runs. */
export interface Running extends ReloadOptions {
  readonly inForce: ReturnType<typeof createInForce>;
  readonly telemetry: Telemetry;
  readonly guard: Guard;
  readonly supervision: Supervision | null;
}

const LOOK_GAP_MS = 100;
/** Half of a secret looks like a secret: one that has changed must stay the same for longer. */
const SECRET_LOOKS = 11;
const MOST_LOOKS = 50;
const LONGEST_RETRY_MS = 300_000;

const HANGS =
  'the file system of the configuration, of a secret or of a token does not answer: nothing is read, and what is in force stays';
const CHANGES =
  'the configuration file, or that of a secret or of a token, is being written: it was another one at each look';
const FAULT =
  'the configuration cannot be checked, which is a fault of killswitchd: nothing of it is taken over, and what is in force stays';
const STOPPING = 'the daemon stops: nothing is reloaded any more';

/** Reads the configuration again. One that is wrong, or differs in what cannot change, changes nothing at all. */
export function createReloading(daemon: Running) {
  const { inForce, guard, telemetry, supervision, loaded } = daemon;
  const { operations } = telemetry;
  /** What the configuration in force was read from. */
  let { contents } = loaded;
  const lookAtFiles = createLooks(daemon, () => contents);
  let underWay: Promise<unknown> = Promise.resolve();
  let waiting: Promise<ReloadReport> | null = null;
  let over = false;
  const poll = createPoll(daemon, lookAtFiles, () => take('poll'));

  async function run(trigger: ReloadTrigger): Promise<ReloadReport> {
    const found = await check(daemon, lookAtFiles, contents);
    if (over) return { kind: 'rejected', problems: [STOPPING] };
    if ('problems' in found) return reject(trigger, found.problems);
    const next = found.config;
    const { added, removed, moved, changed } = found.diff;
    contents = found.contents;
    // While the key was refused, another one may have been read that the configuration in force does not have.
    const same = !guard.replaceSecrets(next) && found.diff.same;
    if (!same) {
      telemetry.follow(next);
      inForce.follow(next);
    }
    poll.took(contents);
    operations[same ? 'reloadUnchanged' : 'reloadApplied'](trigger, hashOf(next));
    return same ? { kind: 'unchanged' } : { kind: 'applied', added, removed, moved, changed, progress: [] };
  }
  function reject(trigger: ReloadTrigger, found: readonly string[]): ReloadReport {
    const problems = found.map(guard.hide);
    operations.reloadRejected(trigger, problems);
    return { kind: 'rejected', problems };
  }
  /** One reload at a time. Who asks while one is under way gets the next, as the file may have changed since it was read. */
  function take(trigger: ReloadTrigger): Promise<ReloadReport> {
    waiting ??= underWay.then(() => {
      waiting = null;
      supervision?.reloading();
      const report = run(trigger).finally(() => supervision?.reloaded());
      underWay = report.catch(() => {});
      return report;
    });
    return waiting;
  }
  /** Waits for the markets of this reload. The next reload does not wait for that. Never rejects. */
  async function reload(trigger: ReloadTrigger, waitMs: number): Promise<ReloadReport> {
    const taken = await take(trigger);
    if (taken.kind !== 'applied') return taken;
    const { whenDone } = guard.keeper;
    const armed = whenDone('arm', [...taken.added, ...taken.changed], waitMs);
    const progress = await Promise.all([armed, whenDone('remove', taken.removed, waitMs)]);
    return { ...taken, progress: progress.flat() };
  }
  return {
    take,
    reload,
    watch: (): void => poll.took(contents),
    /** The secret files once more, for a key that is refused; null where their file systems do not answer. */
    async rereadSecrets() {
      const looks = await lookAtFiles();
      if (looks === null) return null;
      return readSecrets(daemon.env, { demo: loaded.config.embeddedExchange, lookAt: seenIn(looks) });
    },
    stop(): void {
      over = true;
      poll.stop();
    },
  };
}

const UNSEEN: Look = { content: wrong('was not looked at yet'), changedMs: null };
const seenIn = (looks: Looks) => (path: string) => looks.get(path) ?? UNSEEN;

/** What is read, and what it would change. Nothing is changed yet, so whatever is thrown here need not end the process. */
async function check(daemon: Running, lookAtFiles: LookAtFiles, known: Contents) {
  try {
    const found = await read(daemon, lookAtFiles, known);
    if ('problems' in found) return found;
    const diff = diffConfig(daemon.inForce.config(), found.config);
    return diff.refusals.length > 0 ? { problems: diff.refusals } : { ...found, diff };
  } catch (error) {
    return { problems: [`${FAULT}: ${String(error)}`] };
  }
}

/**
 * Reads the configuration and all that it names, once all files were the same at two looks, and changed secrets for a
 * second: a file that is being written is no configuration. What is read is the content of the last look.
 */
async function read({ clock, load, loaded }: Running, lookAtFiles: LookAtFiles, known: Contents) {
  const isKnown = ([path, content]: [string, string]) =>
    path === loaded.config.file || content === known.get(path);
  const more: string[] = [];
  let before: Contents = new Map();
  let same = 0;
  for (let count = 0; count < MOST_LOOKS; count += 1) {
    if (count > 0) await new Promise<void>((resolve) => clock.after(LOOK_GAP_MS, resolve));
    const looks = await lookAtFiles(more);
    if (looks === null) return { problems: [HANGS] };
    const contents: Contents = new Map(Array.from(looks, ([path, look]) => [path, contentOf(look)]));
    same = isDeepStrictEqual(contents, before) ? same + 1 : 1;
    before = contents;
    if (same < ([...contents].every(isKnown) ? 2 : SECRET_LOOKS)) continue;
    const found = load(seenIn(looks));
    const unseen = [...found.contents.keys()].filter((path) => !looks.has(path));
    if (unseen.length === 0) return found;
    // It names files that were not looked at yet.
    more.push(...unseen);
  }
  return { problems: [CHANGES] };
}

/** Reloads once the file has changed and was the same at two looks. What was rejected is tried again, ever more rarely. */
function createPoll(
  { clock, inForce: { config }, loaded }: Running,
  lookAtFiles: LookAtFiles,
  reload: () => Promise<ReloadReport>,
) {
  const file = loaded.config.file ?? '';
  let over = false;
  let cancel: Cancel = () => {};
  /** The file as it was taken over or refused last, and as it was at the last look. */
  let taken: string | undefined;
  let seen: string | undefined;
  /** When a refused file is tried again, and how long after the time before. */
  let retryAtMs = Infinity;
  let retryGapMs = 0;
  async function turn(): Promise<void> {
    const look = (await lookAtFiles())?.get(file);
    if (look !== undefined) await compare(contentOf(look));
    wait();
  }
  async function compare(found: string): Promise<void> {
    const wasSeen = seen === found;
    seen = found;
    const isNew = found !== taken;
    if (isNew ? !wasSeen : clock.now().monoMs < retryAtMs) return;
    taken = found;
    const { kind } = await reload();
    // Its secret may not have been there yet, while a deployment went on.
    const gapMs = isNew ? 0 : Math.min(retryGapMs * 2, LONGEST_RETRY_MS);
    retryGapMs = Math.max(config().reload.pollSeconds * 1000, gapMs);
    retryAtMs = kind === 'rejected' ? clock.now().monoMs + retryGapMs : Infinity;
  }
  /** Waits for the next look as long as the configuration in force says. */
  function wait(): void {
    const { pollSeconds } = config().reload;
    cancel();
    if (pollSeconds > 0 && !over) cancel = clock.after(pollSeconds * 1000, () => void turn());
  }
  return {
    /** A file was taken over, at the start or by a reload that anybody asked for. */
    took(contents: Contents): void {
      taken = contents.get(file);
      seen = taken;
      retryAtMs = Infinity;
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
 * later: this one goes on renewing them for a while; both renew the same timer, which changes nothing. `apply` is told
 * whenever other markets are to be guarded here, or in another way.
 */
export function createInForce(clock: Clock, initial: Config, apply: (guarded: Config) => void) {
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
    apply(guarded);
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
    /** Gives up all markets that stay: the daemon stops, and deletes no timer that another shard renews. */
    end(): void {
      if (staying.size > 0) keep(new Map());
    },
  };
}

const ANSWER_WITHIN_MS = 5000;

/** What files were at one look, by their paths. */
type Looks = ReadonlyMap<string, Look>;
/** Looks at all that `load` reads, and at `more`; null where a file system does not answer within 5 s. */
type LookAtFiles = (more?: readonly string[]) => Promise<Looks | null>;

/**
 * A thread of libuv reads the files one after the other: one that hangs holds up no renewal. The configuration file
 * comes last, so that its content is the newest. While one look hangs, every later question waits for the same look.
 */
function createLooks({ clock, loaded: { config } }: ReloadOptions, contents: () => Contents): LookAtFiles {
  let underWay: Promise<Looks> | null = null;
  return (more = []) => {
    const others = [...contents().keys(), ...more].filter((path) => path !== config.file);
    underWay ??= lookAtEach(new Set([...others, config.file ?? []].flat())).finally(() => {
      underWay = null;
    });
    return within(clock, ANSWER_WITHIN_MS, underWay);
  };
}

async function lookAtEach(paths: ReadonlySet<string>): Promise<Looks> {
  const looks = new Map<string, Look>();
  for (const path of paths) looks.set(path, await lookInThread(path));
  return looks;
}
