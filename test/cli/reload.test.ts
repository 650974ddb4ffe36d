import { describe, expect, it } from 'vitest';
import { daemon, type Reply, refusalWith, run } from './stage.ts';

async function reload(reply: Reply, args: readonly string[] = []) {
  const fake = await daemon(() => reply);
  const result = await run(['reload', ...args, '--control', fake.address]);
  return { ...result, asked: fake.asked };
}

const applied = (markets: readonly object[] = []) => ({
  result: 'applied',
  added: ['BTC_USDT', 'ETH_USDT'],
  removed: ['XRP_USDT'],
  changed: [],
  done: true,
  markets,
});
const market = (name: string, state: string, says: string, more: object = {}) => {
  return { market: name, state, says: `${name} ${says}.`, ...more };
};

describe('reload', () => {
  it('says which markets the new configuration adds, removes and changes', async () => {
    const progress = [market('BTC_USDT', 'done', 'is armed and renewed: 59 s left now')];
    const { code, out, err, asked } = await reload({ json: applied(progress) }, ['--wait', '20']);
    expect({ code, err }).toEqual({ code: 0, err: [] });
    expect(out).toEqual([
      'The new configuration is in force.',
      'Added: 2 markets (BTC_USDT, ETH_USDT).',
      'Removed: XRP_USDT.',
      'BTC_USDT is armed and renewed: 59 s left now.',
    ]);
    expect(asked).toMatchObject([{ method: 'POST', path: '/v1/reload', body: { waitSeconds: 20 } }]);
  });

  it('says so where no market is touched, where nothing has changed, and prints the reply for programs', async () => {
    const quiet = { result: 'applied', added: [], removed: [], changed: [], done: true, markets: [] };
    const untouched = await reload({ json: quiet });
    expect(untouched.out).toEqual(['The new configuration is in force.', 'Its markets are the same.']);
    const unchanged = await reload({ json: { result: 'unchanged' } });
    expect(unchanged.out).toEqual(['Nothing has changed: the configuration in force stays.']);
    const json = await reload({ json: applied() }, ['--json']);
    expect(json.out).toEqual([JSON.stringify(applied())]);
    expect([untouched.code, unchanged.code, json.code]).toEqual([0, 0, 0]);
  });

  it('ends with 78 and every problem where the configuration is wrong', async () => {
    const problems = [
      'k.yaml:2:13 defaults.timeoutSeconds: found "60s"; allowed: a whole number from 5 to 600; write 60',
      'web.listen: cannot change while the daemon runs',
    ];
    const error = { code: 'config_rejected', message: 'nothing was changed', problems };
    const { code, out, err } = await reload({ status: 422, json: { error } });
    expect({ code, out }).toEqual({ code: 78, out: [] });
    const lines = ['the configuration is wrong; nothing was changed', ...problems];
    expect(err).toEqual(lines.map((line) => `killswitchd reload: ${line}`));
  });

  it('ends with 69 where a market is refused, 75 where a timer is late, and 0 where a bot must beat first', async () => {
    const waiting = market('XRP_USDT', 'waiting', 'still has a timer');
    const silent = market('BTC_USDT', 'impossible', 'is not armed before its bot beats');
    const refused = market('BTC_USDT', 'impossible', 'is refused by the exchange', { refused: true });
    expect((await reload({ json: applied([waiting, refused]) })).code).toBe(69);
    const late = await reload({ json: applied([waiting]) });
    expect(late.code).toBe(75);
    expect(late.err).toContain('XRP_USDT still has a timer.');
    const { code, err } = await reload({ json: applied([silent]) });
    expect(code).toBe(0);
    expect(err).toEqual([
      'BTC_USDT is not armed before its bot beats.',
      'killswitchd reload: 1 of 1 market not guarded; the configuration is in force',
    ]);
  });

  it('ends with 69 where the exchange refuses a market that has not changed, and names it once', async () => {
    const refused = ['OLD_USDT'];
    const said =
      'killswitchd reload: the exchange refuses OLD_USDT: not guarded; killswitchd status says why';
    expect(await reload({ json: { result: 'unchanged', refused } })).toMatchObject({ code: 69, err: [said] });
    expect(await reload({ json: { ...applied(), refused } })).toMatchObject({ code: 69, err: [said] });
    const added = market('OLD_USDT', 'impossible', 'is refused by the exchange', { refused: true });
    const { code, err } = await reload({ json: { ...applied([added]), refused } });
    expect(code).toBe(69);
    expect(err).not.toContain(said);
  });

  it('ends with 69 while the daemon is busy with others', async () => {
    const { code, err } = await reload(refusalWith(503, 'too_many_commands', '64 are waited for; try again'));
    expect(code).toBe(69);
    expect(err[0]).toMatch(/cannot do it now: 64 are waited for; try again$/);
  });
});
