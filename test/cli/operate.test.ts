import { describe, expect, it } from 'vitest';
import { statusOf } from './sample-status.ts';
import { daemon, failing, type Reply, refusalWith, run, type Setting } from './stage.ts';

const progress = (market: string, state: 'done' | 'waiting' | 'impossible', says: string, more = {}) => {
  return { market, state, says: `${market} ${says}.`, ...more };
};
const ARMED = progress('BTC_USDT', 'done', 'is armed and renewed: 59 s left now');
const DONE: Reply = { json: { done: true, markets: [ARMED] } };

/** Runs a command against a daemon that gives this reply, and tells what the daemon was asked. */
async function order(line: string, reply: Reply = DONE, setting: Setting = {}) {
  const status = statusOf([{ market: 'BTC_USDT' }, { market: 'ETH_USDT' }]);
  const fake = await daemon(({ path }) => (path === '/v1/status' ? { json: status } : reply));
  const result = await run([...line.split(' '), '--control', fake.address], setting);
  return { ...result, asked: fake.asked };
}
const nameOf = (line: string) => line.split(' ')[0];

const NOT_YET = 'Not acknowledged: BTC_USDT: its timer may still stand. Run ack again once it has fired.';

describe('a command to the running daemon', () => {
  const none = { markets: [] };
  const untilEnd = 'The log level is warn until it is changed or the daemon ends.';
  const forSome = 'The log level is debug for 10m, and then the configured one again.';
  it.each<[string, object, string?, object?]>([
    ['arm', { waitSeconds: 15 }],
    ['arm BTC_USDT ETH_USDT BTC_USDT', { markets: ['BTC_USDT', 'ETH_USDT'], waitSeconds: 15 }],
    ['arm', { waitSeconds: 15 }, 'No market is guarded by this daemon: there was nothing to do.', none],
    ['resume --wait 0 --reason done', { waitSeconds: 0, reason: 'done' }],
    ['disarm BTC_USDT --yes --wait 60', { markets: ['BTC_USDT'], waitSeconds: 60 }],
    ['trip --yes', { waitSeconds: 15 }],
    ['pause BTC_USDT --yes --for 1.5h', { markets: ['BTC_USDT'], forSeconds: 5400, waitSeconds: 15 }],
    ['pause --yes --for 1s', { forSeconds: 1, waitSeconds: 15 }],
    ['pause --yes --for 24h', { forSeconds: 86_400, waitSeconds: 15 }],
    ['ack', {}, 'Acknowledged: 2 markets (BTC_USDT, ETH_USDT).', { acknowledged: ['BTC_USDT', 'ETH_USDT'] }],
    ['ack BTC_USDT', { markets: ['BTC_USDT'] }, 'Acknowledged: BTC_USDT.', { acknowledged: ['BTC_USDT'] }],
    ['ack', {}, NOT_YET, { acknowledged: [], notYet: ['BTC_USDT'] }],
    ['ack', {}, 'There was nothing to acknowledge.', { acknowledged: [] }],
    ['log-level', {}, 'info', { level: 'info' }],
    ['log-level warn', { level: 'warn' }, untilEnd, { level: 'warn' }],
    ['log-level trace', { level: 'debug' }, untilEnd, { level: 'warn' }],
    ['log-level debug --for 10m', { level: 'debug', forSeconds: 600 }, forSome, { level: 'debug' }],
  ])('%s asks with %j and says what has happened', async (line, body, says = ARMED.says, json = {}) => {
    const { code, out, err, asked } = await order(line, { json: { done: true, markets: [ARMED], ...json } });
    expect({ code, out, err }).toEqual({ code: 0, out: [says], err: [] });
    expect(asked).toMatchObject([{ method: 'POST', path: `/v1/${nameOf(line)}`, body }]);
    expect(asked[0]?.headers).toMatchObject({ 'content-type': 'application/json', host: 'localhost' });
  });

  const waiting = progress('BTC_USDT', 'waiting', 'still has a timer');
  const impossible = progress('BTC_USDT', 'impossible', 'is not armed: its bot is silent');
  const late = 'not confirmed within 3 s; the daemon goes on trying';
  const undone = 'killswitchd arm: 1 of 3 markets not done as things stand: see above';
  it.each([
    ['disarm --yes --wait 3', [waiting], 75, [`killswitchd disarm: 1 of 2 markets ${late}`]],
    ['arm --wait 3', [waiting, impossible], 69, [`killswitchd arm: 1 of 3 markets ${late}`, undone]],
  ])('%s that is not done everywhere: %j ends with %i', async (line, markets, code, last) => {
    const reply = { status: 202, json: { done: false, markets: [...markets, ARMED] } };
    const err = [...markets.map(({ says }) => says), ...last];
    expect(await order(line, reply)).toMatchObject({ code, out: [ARMED.says], err });
    expect(await order(`${line} --json`, reply)).toMatchObject({ code, out: [JSON.stringify(reply.json)] });
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
  ])('a refusal with HTTP %i and %s ends it with %i and what the daemon says', async (status, name, code) => {
    const refusal = refusalWith(status, name, 'found BTC_USDC; did you mean BTC_USDT?\u001b[2J');
    const says = /^killswitchd arm: .*found BTC_USDC; did you mean BTC_USDT\? \[2J/;
    expect(await order('arm BTC_USDC', refusal)).toMatchObject(failing(code, says));
    const out = 'json' in refusal ? [JSON.stringify(refusal.json)] : [];
    expect(await order('arm BTC_USDC --json', refusal)).toMatchObject({ code, out });
  });

  it.each(['arm --json', 'reload --json'])('%s prints nothing for programs that is no JSON', async (line) => {
    const reply = { status: 405, text: 'this listener is read-only\n' };
    expect(await order(line, reply)).toMatchObject({ code: 69, out: [] });
  });

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
    const says = /broke the connection off .*may have been done: killswitchd status tells/;
    expect(await order('arm', (response) => response.destroy())).toMatchObject(failing(69, says));
  });
});

describe('a command that takes the guard away', () => {
  it.each(['trip', 'disarm', 'pause --for 10m'])(
    '%s is refused without a terminal and --yes',
    async (line) => {
      const says = 'nobody can be asked here whether it is meant: add --yes; nothing was changed';
      const err = [`killswitchd ${nameOf(line)}: ${says}`];
      expect(await order(`${line} BTC_USDT`)).toMatchObject({ code: 64, err, asked: [] });
    },
  );

  it.each([
    ['trip', 'cancel the orders that the timers of all 2 markets (BTC_USDT, ETH_USDT) cover, in about 6 s'],
    ['disarm BTC_USDT', 'deletes the timers of BTC_USDT. The orders stay'],
  ])('%s says on a terminal what will happen, and does it after a yes', async (line, says) => {
    const { code, err, questions, asked } = await order(line, DONE, { types: 'yes' });
    expect({ code, questions }).toEqual({ code: 0, questions: ['Go on? [y/N] '] });
    expect(err[0]).toContain(says);
    expect(err[0]).toMatch(/The daemon is the one at unix:/);
    expect(asked.at(-1)?.path).toBe(`/v1/${nameOf(line)}`);
  });

  it.each(['n', '', 'yeah', null])('changes nothing after %j', async (types) => {
    const { code, err, asked } = await order('trip', DONE, { types });
    expect(code).toBe(64);
    expect(err.at(-1)).toBe('killswitchd trip: not confirmed with yes; nothing was changed');
    expect(asked.map(({ path }) => path)).toEqual(['/v1/status']);
  });

  it('asks nobody for one that does not', async () => {
    expect(await order('arm', DONE, { types: 'n' })).toMatchObject({ code: 0, questions: [] });
  });
});

const FOR = 'allowed: a number with s, m or h, from 1s to 24h';
const WAIT = 'allowed: a whole number from 0 to 60';
const ALL = Array.from({ length: 8000 }, (_, at) => `M${at}_USDT`).join(' ');
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
  ['arm --wait=61', WAIT, null],
  ['arm --wait=10s', WAIT, 'write 10'],
  ['arm --wait=1m', WAIT, 'write 60'],
  ['arm --wait=-1', WAIT, null],
  ['log-level debug --for 10', FOR, 'write 10s'],
  [`arm ${ALL}`, 'found 8000 markets, more than fit into one request', null],
])('%.40s ends with 64 and what to write instead', async (line, allowed, hint) => {
  const { code, err, asked } = await order(line);
  expect({ code, asked }).toEqual({ code: 64, asked: [] });
  expect(err[0]).toContain(allowed);
  expect(err[0]?.split('; ')[2] ?? null).toBe(hint);
});

describe('reload', () => {
  const inForce = 'The new configuration is in force.';
  const applied = (markets: readonly object[] = [], more: object = {}): Reply => {
    const names = { added: ['BTC_USDT', 'ETH_USDT'], removed: ['XRP_USDT'], changed: [] };
    return { json: { result: 'applied', ...names, done: true, markets, ...more } };
  };
  const none = { added: [], removed: [] };
  const changes = ['Added: 2 markets (BTC_USDT, ETH_USDT).', 'Removed: XRP_USDT.'];
  const same = 'Nothing has changed: the configuration in force stays.';
  const refusedOne = (market: string) =>
    progress(market, 'impossible', 'is refused by the exchange', { refused: true });

  const news = [inForce, ...changes, ARMED.says];
  it.each<[string, Reply, readonly string[]]>([
    ['which markets the new one adds, removes and changes', applied([ARMED]), news],
    ['that no market is touched', applied([], none), [inForce, 'Its markets are the same.']],
    ['that nothing has changed', { json: { result: 'unchanged' } }, [same]],
  ])('says %s, and prints the reply for programs', async (_, reply, out) => {
    const { asked, ...said } = await order('reload --wait 20', reply);
    expect(said).toMatchObject({ code: 0, out, err: [] });
    expect(asked).toMatchObject([{ method: 'POST', path: '/v1/reload', body: { waitSeconds: 20 } }]);
    const json = JSON.stringify('json' in reply ? reply.json : null);
    expect(await order('reload --json', reply)).toMatchObject({ code: 0, out: [json] });
  });

  it('ends with 78 and every problem where the configuration is wrong', async () => {
    const problems = ['k.yaml:2:13 defaults.timeoutSeconds: found "60s"', 'web.listen: cannot change'];
    const error = { code: 'config_rejected', message: 'nothing was changed', problems };
    const lines = ['the configuration was not taken over; nothing was changed', ...problems];
    const err = lines.map((line) => `killswitchd reload: ${line}`);
    expect(await order('reload', { status: 422, json: { error } })).toMatchObject({ code: 78, out: [], err });
  });

  const waiting = progress('XRP_USDT', 'waiting', 'still has a timer');
  const silent = progress('BTC_USDT', 'impossible', 'is not armed before its bot beats');
  const refused = ['OLD_USDT'];
  const unguarded = 'killswitchd reload: 1 of 1 market not guarded; the configuration is in force';
  const told = 'killswitchd reload: the exchange refuses OLD_USDT: not guarded; killswitchd status says why';
  it.each<[number, string, Reply, readonly string[]]>([
    [69, 'a market is refused', applied([waiting, refusedOne('BTC_USDT')]), [waiting.says]],
    [75, 'a timer is late', applied([waiting]), [waiting.says]],
    [0, 'a bot must beat first', applied([silent]), [silent.says, unguarded]],
    [69, 'one is refused that has not changed', { json: { result: 'unchanged', refused } }, [told]],
    [69, 'one is refused beside the new ones', applied([], { refused }), [told]],
  ])('ends with %i where %s', async (code, _, reply, says) => {
    const err = expect.arrayContaining([...says]);
    expect(await order('reload', reply)).toMatchObject({ code, err });
  });

  it('names a market that the exchange refuses once', async () => {
    const { code, err } = await order('reload', applied([refusedOne('OLD_USDT')], { refused }));
    expect([code, err.includes(told)]).toEqual([69, false]);
  });
});
