import { describe, expect, test } from 'vitest';
import { asker, type Reply } from './control.ts';
import {
  expectNoGap,
  judgeSlack,
  play,
  refusalsCounted,
  secretsShownBy,
  settingsOf,
  slackOf,
  tally,
} from './control-stage.ts';

const THOUSAND = Array.from({ length: 1000 }, (_, index) => index);

describe.concurrent('requests to the control listener delay no renewal:', { timeout: 60_000 }, () => {
  test('a thousand at once, good beats among them, again and again, while every renewal comes in time', async (context) => {
    const stand = await play(context);
    const { exchange, daemon, unix, tcp, authorised = {} } = stand;
    const ask = asker(context, unix);
    const before = await settingsOf(stand, ask);
    const beatsBefore = await daemon.metric('killswitch_bot_beats_total');
    const fromMs = await exchange.nowMs();
    const overUnix = asker(context, unix, 50);
    const overTcp = asker(context, tcp, 50);
    const send = (index: number): Promise<Reply> => {
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
    const expected: Record<string, number> = {};
    let beats = 0;
    for (const untilMs = performance.now() + 3000; performance.now() < untilMs; ) {
      const replies = await Promise.all(THOUSAND.map(send));
      for (const { status, code, text } of replies) {
        if (status === 200) beats += 1;
        else expected[String(code)] = (expected[String(code)] ?? 0) + 1;
        if (status !== 200) expect(text).toContain('"message":');
      }
      expect(tally(replies.map(({ status }) => String(status)))).toEqual({
        200: 285,
        400: 143,
        401: 143,
        403: 143,
        404: 143,
        413: 143,
      });
    }
    judgeSlack(
      `while ${beats} beats and ${Object.values(expected).reduce((sum, one) => sum + one, 0)} refused requests came in`,
      await slackOf(daemon),
    );
    expect(await refusalsCounted(daemon)).toEqual(expected);
    expect((await daemon.metric('killswitch_bot_beats_total')) - beatsBefore).toBe(beats);
    expect(await settingsOf(stand, ask)).toEqual(before);
    await expectNoGap(stand, fromMs);
    expect(daemon.logged('control-refused').length).toBe(Object.keys(expected).length);
    expect(await secretsShownBy(daemon, [])).toEqual([]);
  });

  test('a thousand connections at once, and the bot that was there before them goes on beating', async (context) => {
    const stand = await play(context);
    const { exchange, daemon, unix, tcp, authorised = {} } = stand;
    const bot = asker(context, unix);
    await bot('/v1/beat');
    await bot('/v1/beat');
    const before = await settingsOf(stand, bot);
    const fromMs = await exchange.nowMs();
    const overUnix = asker(context, unix, 500);
    const overTcp = asker(context, tcp, 500);
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
    judgeSlack('while a thousand connections came at once', await slackOf(daemon));
    expect(await settingsOf(stand, bot)).toEqual(before);
    await expectNoGap(stand, fromMs);
  });
});
