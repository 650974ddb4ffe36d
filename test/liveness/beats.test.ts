import { describe, expect, test } from 'vitest';
import { createBeats } from '../../src/liveness/beats.ts';
import type { BeatProof } from '../../src/ports.ts';

/** What was passed on, as `bot word agoMs`. */
function listening(
  mode: 'beat' | 'file' | 'http' | 'process' | 'none' = 'beat',
  bots = ['default', 'maker'],
) {
  const said: string[] = [];
  const beats = createBeats({ mode, bots: () => bots });
  const end = beats.start((bot, says, agoMs) => said.push(`${bot} ${says} ${agoMs}`));
  const hear = (
    session: string | null,
    seq: number | null,
    says: 'beat' | 'goodbye' | 'fail' = 'beat',
    bot = 'default',
  ) => {
    const heard = beats.hear(bot, says, { session, seq }, 0);
    return heard.counted ? 'counted' : heard.why;
  };
  return { beats, bots, end, hear, said };
}

describe('a word of a bot', () => {
  test('counts every time where it carries neither session nor number, and keeps its age', () => {
    const { beats, said } = listening();
    const bare: BeatProof = { session: null, seq: null };
    expect(beats.hear('default', 'beat', bare, 0)).toEqual({ counted: true });
    expect(beats.hear('maker', 'fail', bare, 12.5)).toEqual({ counted: true });
    expect(said).toEqual(['default beat 0', 'maker fail 12.5']);
  });

  test('counts once, and not after a newer one or a newer session, and is told why', () => {
    const { hear } = listening();
    expect(hear('a', 5)).toBe('counted');
    expect(hear('a', 5)).toBe('replayed: seq is 5 in this session and must be more than 5');
    expect(hear('a', 4)).toBe('replayed: seq is 4 in this session and must be more than 5');
    expect(hear('b', 1)).toBe('counted');
    expect(hear('a', 6)).toBe('this session is over: the bot has begun another one since');
  });

  test('of an old session does not count after thousands of others either, and does not end the one in use', () => {
    const { hear } = listening();
    for (let session = 0; session <= 9000; session += 1) expect(hear(`s${session}`, 1)).toBe('counted');
    for (const session of ['s0', 's1', 's8999']) expect(hear(session, 50)).toContain('is over');
    expect(hear('s9000', 2)).toBe('counted');
  });

  test('without a number does not count where the bot has numbered its words', () => {
    const { hear } = listening();
    expect(hear('a', null)).toBe('counted');
    expect(hear('a', 4)).toBe('counted');
    expect(hear('a', null)).toBe(
      'seq is missing: the bot has numbered its words in this session before, the last was 4',
    );
    expect(hear('b', null)).toBe('counted');
  });

  test('with a number and no session is counted through, and the way out is said', () => {
    const { hear } = listening();
    expect(hear(null, 10)).toBe('counted');
    expect(hear(null, 1)).toBe(
      'replayed: seq is 1 and must be more than 10; a bot that counts from the start again needs a new session',
    );
    expect(hear('a', 1)).toBe('counted');
    expect(hear(null, 11)).toBe('counted');
    expect(hear('a', 2)).toBe('counted');
  });

  test('counts for nothing in another mode, and says so', () => {
    expect(listening('file').hear(null, null)).toBe(
      "liveness.mode is file: evidence comes from the bot's file, so that beats count for nothing",
    );
    expect(listening('none').hear(null, null)).toContain('nobody watches the bots');
    const { hear, said } = listening('process');
    expect(hear('a', 1, 'goodbye')).toContain('liveness.mode is process');
    expect(said).toEqual([]);
  });

  test('counts for nothing once the daemon has stopped listening, and is not used up by that', () => {
    const { beats, end, hear, said } = listening();
    end();
    expect(hear('a', 1)).toBe('the daemon does not listen to bots now: it starts or stops');
    beats.start((bot, says) => said.push(`${bot} ${says} again`));
    expect(hear('a', 1)).toBe('counted');
    expect(said).toEqual(['default beat again']);
  });

  test('of a bot that a reload took out does not count, and nothing is kept of it', () => {
    const { bots, hear } = listening();
    expect(hear('a', 9, 'beat', 'maker')).toBe('counted');
    bots.pop();
    expect(hear('a', 10, 'beat', 'maker')).toBe('no market of the configuration belongs to bot maker');
    expect(hear('a', 1)).toBe('counted');
    bots.push('maker');
    expect(hear('a', 1, 'beat', 'maker')).toBe('counted');
  });
});
