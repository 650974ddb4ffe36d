import { describe, expect, test } from 'vitest';
import { asker, type Reply } from './control.ts';
import {
  judgeSlack,
  nothingHappens,
  type Play,
  play,
  refusalsCounted,
  secretsShownBy,
  since,
  tally,
} from './control-stage.ts';
import { scopeOfBlock } from './harness.ts';

const THOUSAND = Array.from({ length: 1000 }, (_, index) => index);

/** What of a thousand requests each sends: five of seven are refused, each for another reason. */
function sending(overUnix: Play['ask'], overTcp: Play['ask'], { authorised }: Play) {
  return (index: number): Promise<Reply> => {
    const listener = index % 2 === 0 ? overUnix : overTcp;
    const headers: Record<string, string> = index % 2 === 0 ? {} : authorised;
    switch (index % 7) {
      case 0:
        return listener('/v1/trip', { headers: { ...headers, origin: 'https://evil.example' } });
      case 1:
        return listener('/v1/trip', { headers, body: { markets: ['x'.repeat(70_000)] } });
      case 2:
        return listener('/v1/disarm', { headers, body: '{"markets":' });
      case 3:
        return listener('/v1/trip', { headers, body: { markets: [`M${index}_USDT`] } });
      case 4:
        return overTcp('/v1/trip');
      default:
        return listener('/v1/beat', { headers, body: {} });
    }
  };
}

// One daemon is flooded by one test after the other.
describe('requests to the control listener delay no renewal:', { timeout: 60_000 }, () => {
  const scope = scopeOfBlock();
  let playing: Promise<Play>;

  test('a thousand at once, good beats among them, again and again', async () => {
    playing = play(scope);
    const stand = await playing;
    const { daemon, unix, tcp } = stand;
    const before = await refusalsCounted(daemon);
    const beatsBefore = await daemon.metric('killswitch_bot_beats_total');
    const judgeRest = await nothingHappens(stand);
    const send = sending(asker(scope, unix, 50), asker(scope, tcp, 50), stand);
    const codes: string[] = [];
    let beats = 0;
    for (const untilMs = performance.now() + 3000; performance.now() < untilMs; ) {
      const replies = await Promise.all(THOUSAND.map(send));
      for (const { status, code, text } of replies) {
        if (status === 200) beats += 1;
        else codes.push(String(code));
        if (status !== 200) expect(text).toContain('"message":');
      }
      const statuses = tally(replies.map(({ status }) => String(status)));
      expect(statuses).toEqual({ 200: 285, 400: 143, 401: 143, 403: 143, 404: 143, 413: 143 });
    }
    await judgeSlack(`while ${beats} beats and ${codes.length} refused requests came in`, daemon);
    expect(since(before, await refusalsCounted(daemon))).toEqual(tally(codes));
    expect((await daemon.metric('killswitch_bot_beats_total')) - beatsBefore).toBe(beats);
    await judgeRest();
    expect(daemon.logged('control-refused').length).toBe(new Set(codes).size);
    expect(await secretsShownBy(daemon, [])).toEqual([]);
  });

  test('a thousand connections at once, and the bot that was there before them goes on beating', async () => {
    const stand = await playing;
    const { daemon, unix, tcp, ask: bot, authorised } = stand;
    await bot('/v1/beat');
    await bot('/v1/beat');
    const judgeRest = await nothingHappens(stand);
    const overUnix = asker(scope, unix, 500);
    const overTcp = asker(scope, tcp, 500);
    const ends: string[] = [];
    const beatStatuses: number[] = [];
    for (const untilMs = performance.now() + 2500; performance.now() < untilMs; ) {
      const [beat, ...asked] = await Promise.allSettled([
        bot('/v1/beat'),
        ...THOUSAND.map((index) =>
          index % 2 === 0
            ? overUnix('/v1/trip', { body: '{' })
            : overTcp('/v1/beat', { headers: authorised }),
        ),
      ]);
      beatStatuses.push(beat.status === 'fulfilled' ? beat.value.status : 0);
      for (const end of asked) {
        ends.push(end.status === 'fulfilled' ? `${end.value.status} ${end.value.code}` : 'closed');
      }
    }
    const counts = tally(ends);
    console.log(`a thousand connections at once came to: ${JSON.stringify(counts)}`);
    const allowed = ['200 null', '400 malformed_json', '503 too_many_connections', 'closed'];
    expect(Object.keys(counts).filter((end) => !allowed.includes(end))).toEqual([]);
    expect(beatStatuses.filter((status) => status !== 200)).toEqual([]);
    await judgeSlack('while a thousand connections came at once', daemon);
    await judgeRest();
  });
});
