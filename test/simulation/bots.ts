import type { BotWord } from '../../src/core/events.ts';
import { createFileEvidence } from '../../src/liveness/file.ts';
import { createHttpEvidence } from '../../src/liveness/http.ts';
import { createProcessEvidence } from '../../src/liveness/process.ts';
import type { Evidence } from '../../src/ports.ts';
import type { Incarnation } from './court.ts';
import type { Fleet } from './hosts.ts';
import type { Judge } from './judge.ts';
import { botName, type EVIDENCE_MODES, type Plan } from './plan.ts';
import type { Timeline } from './virtual-clock.ts';

const BEAT_MS = 3_000;

/** The simulated bots: each gives signs of life to every daemon, unless it is silent. */
export function createBots(plan: Plan, timeline: Timeline, fleet: Fleet, judge: Judge) {
  const { evidence: mode = 'beat' } = plan;
  const silences = createSilences(timeline.nowMs);
  /** How often each bot has touched its file. */
  const touches = Array.from({ length: plan.bots }, () => 0);

  const sources = new Map<Incarnation, SimulatedEvidence>();
  const knows = (host: Incarnation, bot: number) =>
    fleet.running.get(host.daemon) === host && host.bots.has(bot);
  /** From this moment the bot's life counts; when the daemon hears of it is another matter. */
  function testify(host: Incarnation, bot: number): void {
    // A file is touched, and a process runs, whether the daemon looks or not.
    if (!plan.watched || fleet.running.get(host.daemon) !== host) return;
    judge.onEvidence(host, bot, 'beat', timeline.nowMs());
    judge.onBack(host, bot);
  }
  const say = (bot: number, says: BotWord) => {
    for (const host of fleet.running.values())
      if (plan.watched && knows(host, bot)) tell(host, bot, says, timeline, judge);
  };
  /** The one process of all bots ends, and its parent hears of it. */
  function end(says: 'goodbye' | 'fail'): void {
    for (const host of fleet.running.values()) {
      host.clock.whenRunning(() => {
        const source = sources.get(host);
        if (source?.runs?.() !== true) return;
        for (let bot = 0; bot < plan.bots; bot += 1)
          if (knows(host, bot)) judge.onEvidence(host, bot, says, timeline.nowMs());
        source.end?.(says);
      });
    }
  }
  /** One round of the bot's loop. */
  function live(bot: number): void {
    timeline.at(timeline.nowMs() + BEAT_MS, () => live(bot));
    if (silences.isSilent(bot)) return;
    touches[bot] = (touches[bot] ?? 0) + 1;
    if (mode === 'beat') say(bot, 'beat');
    else if (mode === 'file') for (const host of fleet.running.values()) testify(host, bot);
  }

  for (let bot = 0; bot < plan.bots; bot += 1) timeline.at(500 + 100 * bot, () => live(bot));
  return {
    say(bot: number, says: BotWord): void {
      // A file or a URL cannot say more than that the bot lives.
      if (mode === 'beat') say(bot, says);
      else if (mode === 'process' && says !== 'beat' && plan.watched) end(says);
    },
    /** No signs of life before the moment; with `turnMs` they come again in every second stretch of this length. */
    silence: silences.add,
    /** Everybody lives from now on. */
    wake: silences.clear,
    /** The daemon's own way to find out begins to look, where it does not wait for beats. */
    watch(host: Incarnation): void {
      if (!plan.watched) return;
      const bots = Array.from({ length: plan.bots }, (_, bot) => bot);
      const touchesOf = (bot: number) => touches[bot] ?? 0;
      const onSeen = (bot: number) => testify(host, bot);
      const { isSilent } = silences;
      const source = SOURCES[mode]({ plan, timeline, host, bots, isSilent, touchesOf, onSeen });
      if (source === null) return;
      sources.set(host, source);
      // A source looks at the bots that are configured.
      source.start((name, says, agoMs) => {
        const bot = bots.find((one) => botName(one) === name);
        if (bot !== undefined && host.bots.has(bot)) host.keeper.hear(name, says, agoMs);
      });
    },
  };
}

/** Words wait in the sockets of a host that stands still, and are as old as they are. */
function tell(host: Incarnation, bot: number, says: BotWord, timeline: Timeline, judge: Judge): void {
  const saidMs = timeline.nowMs();
  host.clock.whenRunning(() => {
    // The control listener refuses a bot that no market names any more.
    if (!host.bots.has(bot)) return;
    judge.onEvidence(host, bot, says, saidMs);
    if (says === 'beat') judge.onBack(host, bot);
    host.keeper.hear(botName(bot), says, 0);
  });
}

function createSilences(nowMs: () => number) {
  const silences: { bot: number; fromMs: number; untilMs: number; turnMs: number | null }[] = [];
  return {
    add: (bot: number, untilMs: number, turnMs: number | null) =>
      void silences.push({ bot, fromMs: nowMs(), untilMs, turnMs }),
    clear: () => void silences.splice(0),
    isSilent: (bot: number): boolean =>
      silences.some((one) => {
        if (one.bot !== bot || nowMs() >= one.untilMs) return false;
        return one.turnMs === null || Math.floor((nowMs() - one.fromMs) / one.turnMs) % 2 === 0;
      }),
  };
}

interface EvidenceWorld {
  readonly plan: Plan;
  readonly timeline: Timeline;
  readonly host: Incarnation;
  readonly bots: readonly number[];
  readonly isSilent: (bot: number) => boolean;
  readonly touchesOf: (bot: number) => number;
  /** The bot was truly seen alive at this very moment. */
  readonly onSeen: (bot: number) => void;
}

/** Evidence, and the end of a child process where that is where it comes from. */
interface SimulatedEvidence extends Evidence {
  /** Is there a process that could end? */
  readonly runs?: () => boolean;
  readonly end?: (says: 'goodbye' | 'fail') => void;
}

const LOOK_EVERY_MS = 1000;
const PROBE_EVERY_MS = 3750;
/** A look at a file or a process takes this long. */
const LOOK_MS = 2;
const CHILD = 4711;

/** The production sources of evidence over a simulated file system, network and process table; none for beats. */
const SOURCES: Record<(typeof EVIDENCE_MODES)[number], (world: EvidenceWorld) => SimulatedEvidence | null> = {
  beat: () => null,
  file: watchFiles,
  http: probeUrls,
  process: watchProcess,
};

const ignore = () => {};

function watchFiles({ host, bots, touchesOf }: EvidenceWorld): Evidence {
  const { clock } = host;
  return createFileEvidence({
    clock,
    files: () => bots.map((bot) => ({ bot: botName(bot), at: String(bot) })),
    probeEveryMs: () => LOOK_EVERY_MS,
    look(path, done) {
      const mtimeMs = touchesOf(Number(path));
      clock.after(LOOK_MS, () => done({ kind: 'present', state: { mtimeMs, size: 0, ino: 1 } }));
    },
    onProblem: ignore,
  });
}

function probeUrls({ plan, timeline, host, bots, isSilent, onSeen }: EvidenceWorld): Evidence {
  const { clock } = host;
  const tripMs = plan.roundTripMs / 2;
  return createHttpEvidence({
    clock,
    urls: () => bots.map((bot) => ({ bot: botName(bot), at: String(bot) })),
    probeEveryMs: () => PROBE_EVERY_MS,
    open: (url) => ({
      probe(timeoutMs, done) {
        let over = false;
        const finish = (problem: string | null) => {
          if (over) return;
          over = true;
          done(problem);
        };
        clock.after(timeoutMs, () => finish('no answer'));
        timeline.at(timeline.nowMs() + tripMs, () => {
          if (isSilent(Number(url))) return;
          onSeen(Number(url));
          timeline.at(timeline.nowMs() + tripMs, () => clock.whenRunning(() => finish(null)));
        });
      },
      close: ignore,
    }),
    onProblem: ignore,
  });
}

function watchProcess({ timeline, host, bots, isSilent, onSeen }: EvidenceWorld): SimulatedEvidence {
  const { clock } = host;
  const source = createProcessEvidence({
    clock,
    bots: () => bots.map(botName),
    probeEveryMs: () => LOOK_EVERY_MS,
    look(_pid, done) {
      const stopped = bots.some(isSilent);
      if (!stopped) for (const bot of bots) onSeen(bot);
      clock.after(LOOK_MS, () => done({ state: stopped ? 'T' : 'S', startedAt: '1' }));
    },
    onProblem: ignore,
  });
  let runs = true;
  return {
    start(hear) {
      const cancel = source.start(hear);
      source.began(CHILD);
      return cancel;
    },
    runs: () => runs,
    end: (says) => {
      runs = false;
      source.ended(says === 'goodbye' ? 0 : 1);
      // Started again at once; while it is silent, a look at it shows it stopped.
      timeline.at(timeline.nowMs() + 1, () =>
        clock.whenRunning(() => {
          runs = true;
          source.began(CHILD);
        }),
      );
    },
  };
}
