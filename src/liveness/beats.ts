import type { BotWord, CoreSettings } from '../core/events.ts';
import type { BeatProof, Cancel, Hear, Heard } from '../ports.ts';

/** What a bot has shown so far. */
interface Shown {
  session: string | null;
  /** The last number in that session, null before the first one. */
  numbered: number | null;
  /** The same of words that carry a number and no session. */
  nameless: number | null;
  /** Sessions that others have followed, oldest first. */
  readonly past: Set<string>;
}

/** About 1 MB for a bot that starts anew every minute, and a week of such starts. */
const SESSIONS_KEPT = 10_000;

const IN_PLACE_OF_BEATS = {
  none: 'nobody watches the bots',
  file: "evidence comes from the bot's file",
  http: "evidence comes from the bot's URL",
  process: "evidence comes from the bot's process",
} as const;

/**
 * Evidence by what bots say themselves. Sorts out copies: a word counts once, and not after a newer one. Within a
 * session the numbers must rise; in a new session they start anew, and the session before is over. A word without a
 * number counts unless the bot has numbered its words in that session before. A session that this process never heard
 * of is taken for a new one. No answer repeats what the bot sends as a session: it may be a secret by mistake.
 */
export function createBeats(options: {
  readonly mode: CoreSettings['liveness']['mode'];
  /** As the configuration in force has them. */
  readonly bots: () => readonly string[];
}) {
  const { mode, bots } = options;
  const shownBy = new Map<string, Shown>();
  let listener: Hear | null = null;

  function shown(bot: string): Shown {
    const known = shownBy.get(bot);
    if (known !== undefined) return known;
    const names = new Set(bots());
    for (const other of shownBy.keys()) if (!names.has(other)) shownBy.delete(other);
    const made: Shown = { session: null, numbered: null, nameless: null, past: new Set() };
    shownBy.set(bot, made);
    return made;
  }
  return {
    start(hear: Hear): Cancel {
      listener = hear;
      return () => {
        listener = null;
      };
    },
    /** Takes a bot's word in, `agoMs` after it was received at the earliest, and passes it on if it is a new one. */
    hear(bot: string, says: BotWord, proof: BeatProof, agoMs: number): Heard {
      if (mode !== 'beat') {
        const instead = IN_PLACE_OF_BEATS[mode];
        return refuse(`liveness.mode is ${mode}: ${instead}, so that beats count for nothing`);
      }
      if (listener === null) return refuse('the daemon does not listen to bots now: it starts or stops');
      if (!bots().includes(bot)) return refuse(`no market of the configuration belongs to bot ${bot}`);
      const why = whyNot(shown(bot), proof);
      if (why !== null) return refuse(why);
      listener(bot, says, agoMs);
      return { counted: true };
    },
  };
}

function refuse(why: string): Heard {
  return { counted: false, why };
}

/** Why a word is not a new one, or null where it is; what it shows is then kept. */
function whyNot(shown: Shown, { session, seq }: BeatProof): string | null {
  if (session !== null && shown.past.has(session)) {
    return 'this session is over: the bot has begun another one since';
  }
  if (session !== null && session !== shown.session) begin(shown, session);
  const count = session === null ? 'nameless' : 'numbered';
  const last = shown[count];
  const where = session === null ? '' : ' in this session';
  if (seq === null) {
    if (last === null) return null;
    return `seq is missing: the bot has numbered its words${where} before, the last was ${last}`;
  }
  if (last !== null && !(seq > last)) {
    const advice = session === null ? '; a bot that counts from the start again needs a new session' : '';
    return `replayed: seq is ${seq}${where} and must be more than ${last}${advice}`;
  }
  shown[count] = seq;
  return null;
}

function begin(shown: Shown, session: string): void {
  if (shown.session !== null) shown.past.add(shown.session);
  const [oldest] = shown.past;
  if (shown.past.size > SESSIONS_KEPT && oldest !== undefined) shown.past.delete(oldest);
  shown.session = session;
  shown.numbered = null;
}
