import { describe, expect, it } from 'vitest';
import { statusOf } from './sample-status.ts';
import { daemon, type Reply, refusalWith, run, type Setting } from './stage.ts';

type State = 'done' | 'waiting' | 'impossible';

const progress = (market: string, state: State, says: string) => ({
  market,
  state,
  says: `${market} ${says}.`,
});
const DONE: Reply = {
  json: { done: true, markets: [progress('BTC_USDT', 'done', 'is armed and renewed: 59 s left now')] },
};

/** Runs a command against a daemon that gives this reply, and tells what the daemon was asked. */
async function order(line: string, reply: Reply = DONE, setting: Setting = {}) {
  const status = statusOf([{ market: 'BTC_USDT' }, { market: 'ETH_USDT' }]);
  const fake = await daemon(({ path }) => (path === '/v1/status' ? { json: status } : reply));
  const result = await run([...line.split(' '), '--control', fake.address], setting);
  return { ...result, asked: fake.asked };
}

describe('a command to the running daemon', () => {
  it.each([
    ['arm', { waitSeconds: 15 }],
    ['arm BTC_USDT ETH_USDT BTC_USDT', { markets: ['BTC_USDT', 'ETH_USDT'], waitSeconds: 15 }],
    ['resume --wait 0 --reason done', { waitSeconds: 0, reason: 'done' }],
    ['disarm BTC_USDT --yes --wait 60', { markets: ['BTC_USDT'], waitSeconds: 60 }],
    ['trip --yes', { waitSeconds: 15 }],
    ['pause BTC_USDT --yes --for 1.5h', { markets: ['BTC_USDT'], forSeconds: 5400, waitSeconds: 15 }],
    ['pause --yes --for 1s', { forSeconds: 1, waitSeconds: 15 }],
    ['pause --yes --for 24h', { forSeconds: 86_400, waitSeconds: 15 }],
  ])('%s asks for it and says what has happened', async (line, body) => {
    const { code, out, err, asked } = await order(line);
    const says = 'BTC_USDT is armed and renewed: 59 s left now.';
    expect({ code, out, err }).toEqual({ code: 0, out: [says], err: [] });
    expect(asked).toMatchObject([{ method: 'POST', path: `/v1/${line.split(' ')[0]}`, body }]);
    expect(asked[0]?.headers).toMatchObject({ 'content-type': 'application/json', host: 'localhost' });
  });

  it('ends with 75 where the exchange has not confirmed all of it in time', async () => {
    const markets = [
      progress('BTC_USDT', 'waiting', 'still has a timer'),
      progress('ETH_USDT', 'done', 'has no timer any more'),
    ];
    const reply = { status: 202, json: { done: false, markets } };
    const { code, out, err } = await order('disarm --yes --wait 3', reply);
    expect(code).toBe(75);
    expect(out).toEqual(['ETH_USDT has no timer any more.']);
    expect(err).toEqual([
      'BTC_USDT still has a timer.',
      'killswitchd disarm: 1 of 2 markets not confirmed within 3 s; the daemon goes on trying',
    ]);
  });

  it('ends with 69 where it is impossible as things stand, whatever else is still waiting', async () => {
    const markets = [
      progress('BTC_USDT', 'impossible', "is not armed: nothing is renewed before the bot's next beat"),
      progress('ETH_USDT', 'waiting', 'is not confirmed armed yet'),
    ];
    const { code, err } = await order('arm', { status: 409, json: { done: false, markets } });
    expect(code).toBe(69);
    expect(err).toContain("BTC_USDT is not armed: nothing is renewed before the bot's next beat.");
    expect(err).toContain('killswitchd arm: 1 of 2 markets not done: see why above');
  });

  it('says that there was nothing to do where the daemon guards no market, as a shard that waits does', async () => {
    const { code, out } = await order('arm', { json: { done: true, markets: [] } });
    expect(code).toBe(0);
    expect(out).toEqual(['No market is guarded by this daemon: there was nothing to do.']);
  });

  it('--json prints the reply as it came and has the same exit code', async () => {
    const json = { done: false, markets: [progress('BTC_USDT', 'waiting', 'is not confirmed armed yet')] };
    const { code, out } = await order('arm --json', { status: 202, json });
    expect(code).toBe(75);
    expect(out).toEqual([JSON.stringify(json)]);
  });

  it.each([
    [400, 'invalid_value', 64],
    [404, 'unknown_market', 64],
    [404, 'unknown_path', 70],
    [413, 'too_large', 64],
    [401, 'unauthorised', 77],
    [403, 'foreign_origin', 77],
    [409, 'stopping', 69],
    [503, 'too_many_commands', 69],
    [500, 'internal_error', 70],
  ])(
    'a refusal with HTTP %i and %s ends it with %i and with what the daemon says',
    async (status, name, expected) => {
      const said = 'found BTC_USDC; did you mean BTC_USDT?\u001b[2J';
      const { code, out, err } = await order('arm BTC_USDC', refusalWith(status, name, said));
      expect(code).toBe(expected);
      expect(out).toEqual([]);
      expect(err).toHaveLength(1);
      expect(err[0]).toMatch(/^killswitchd arm: .*found BTC_USDC; did you mean BTC_USDT\? \[2J/);
    },
  );

  it('says for how long it has waited on a terminal, and leaves no trace of that', async () => {
    const slow: Reply = (response) => {
      setTimeout(() => response.end(JSON.stringify({ done: true, markets: [] })), 2300);
    };
    const { code, drawn } = await order('arm', slow, { terminal: { columns: 80, rows: 24 } });
    expect(code).toBe(0);
    expect(drawn[0]).toContain('Waiting for the exchange to confirm it: 1 s of at most 15 s');
    expect(drawn.at(-1)).toBe('\r\u001b[K');
  });

  it('says that it may have been done where the daemon goes away in between', async () => {
    const { code, err } = await order('arm', (response) => response.destroy());
    expect(code).toBe(69);
    expect(err[0]).toMatch(/broke the connection off .*may have been done: killswitchd status tells/);
  });
});

describe('a command that takes the guard away', () => {
  const twoDone: Reply = { json: { done: true, markets: [] } };

  it.each(['trip', 'disarm', 'pause'])('%s is refused without a terminal and without --yes', async (name) => {
    const { code, err, asked } = await order(`${name} BTC_USDT${name === 'pause' ? ' --for 10m' : ''}`);
    expect(code).toBe(64);
    expect(err).toEqual([
      `killswitchd ${name}: nobody can be asked here whether it is meant: add --yes; nothing was changed`,
    ]);
    expect(asked).toEqual([]);
  });

  it('says on a terminal what will happen to how many markets, and does it after a yes', async () => {
    const { code, err, questions, asked } = await order('trip', twoDone, { types: 'yes' });
    expect(code).toBe(0);
    expect(err[0]).toMatch(
      /cancel the orders that the timers of all 2 markets \(BTC_USDT, ETH_USDT\) cover, in about 6 s/,
    );
    expect(err[0]).toMatch(/The daemon is the one at unix:/);
    expect(questions).toEqual(['Go on? [y/N] ']);
    expect(asked.at(-1)).toMatchObject({ path: '/v1/trip', body: { waitSeconds: 15 } });
  });

  it('names the markets that were named', async () => {
    const { err } = await order('disarm BTC_USDT', twoDone, { types: 'y' });
    expect(err[0]).toMatch(/deletes the timers of BTC_USDT\. The orders stay/);
  });

  it.each(['n', '', 'yeah', null])('changes nothing after %j', async (types) => {
    const { code, err, asked } = await order('trip', twoDone, { types });
    expect(code).toBe(64);
    expect(err.at(-1)).toBe('killswitchd trip: not confirmed with yes; nothing was changed');
    expect(asked.map(({ path }) => path)).toEqual(['/v1/status']);
  });

  it('asks nobody for one that does not', async () => {
    const { code, questions } = await order('arm', twoDone, { types: 'n' });
    expect({ code, questions }).toEqual({ code: 0, questions: [] });
  });
});

describe('ack', () => {
  it.each([
    [[], {}, ['BTC_USDT', 'ETH_USDT'], 'Acknowledged: 2 markets (BTC_USDT, ETH_USDT).'],
    [['BTC_USDT'], { markets: ['BTC_USDT'] }, ['BTC_USDT'], 'Acknowledged: BTC_USDT.'],
    [[], {}, [], 'There was nothing to acknowledge.'],
  ])('%j takes the record of cancelled orders off the status', async (markets, body, acknowledged, said) => {
    const { code, out, asked } = await order(['ack', ...markets].join(' '), { json: { acknowledged } });
    expect({ code, out }).toEqual({ code: 0, out: [said] });
    expect(asked).toMatchObject([{ method: 'POST', path: '/v1/ack', body }]);
  });
});

describe('a flag that makes no sense', () => {
  const FOR = 'allowed: a number with s, m or h, from 1s to 24h';
  const WAIT = 'allowed: a whole number of seconds from 0 to 60';
  it.each([
    ['pause --yes --for=10', FOR, 'write 10s'],
    ['pause --yes --for=2d', FOR, 'write 24h'],
    ['pause --yes --for=0.5d', FOR, 'write 12h'],
    ['pause --yes --for=25h', FOR, 'write 24h'],
    ['pause --yes --for=1h30m', FOR, 'write 90m'],
    ['pause --yes --for=PT90S', FOR, 'write 90s'],
    ['pause --yes --for=soon', FOR, null],
    ['pause --yes --for=', FOR, null],
    ['pause --yes --for=-5m', FOR, null],
    ['arm --wait=61', WAIT, 'write 60'],
    ['arm --wait=10s', WAIT, 'write 10'],
    ['arm --wait=1m', WAIT, null],
    ['arm --wait=-1', WAIT, null],
    ['log-level debgu', 'allowed: debug, info, warn, error, fatal', 'did you mean debug?'],
    ['log-level --for 10m', '--for: found without a level; write one, such as debug --for 10m', null],
    ['log-level debug --for 10', FOR, 'write 10s'],
  ])('%s ends with 64 and what to write instead', async (line, allowed, hint) => {
    const { code, err, asked } = await order(line);
    expect(code).toBe(64);
    expect(err[0]).toContain(allowed);
    expect(err[0]?.split('; ')[2] ?? null).toBe(hint);
    expect(asked).toEqual([]);
  });

  it('names more markets than fit into a request', async () => {
    const markets = Array.from({ length: 8000 }, (_, at) => `M${at}_USDT`);
    const { code, err, asked } = await order(`arm ${markets.join(' ')}`);
    expect(code).toBe(64);
    expect(err[0]).toContain('found 8000 markets, more than fit into one request');
    expect(asked).toEqual([]);
  });
});

describe('log-level', () => {
  it.each([
    ['log-level', {}, 'info'],
    ['log-level warn', { level: 'warn' }, 'The log level is warn until it is changed or the daemon ends.'],
    [
      'log-level debug --for 10m',
      { level: 'debug', forSeconds: 600 },
      'The log level is debug for 10m, and then the configured one again.',
    ],
  ])('%s prints the level in force, or sets it', async (line, body, says) => {
    const level = 'level' in body ? body.level : 'info';
    const { code, out, asked } = await order(line, { json: { level } });
    expect({ code, out }).toEqual({ code: 0, out: [says] });
    expect(asked).toMatchObject([{ method: 'POST', path: '/v1/log-level', body }]);
  });
});
