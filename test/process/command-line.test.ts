import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { ROOT, sleep } from './program.ts';
import { ofKind } from './simulated-exchange.ts';

describe.concurrent('a daemon that cannot start says why and arms nothing', { timeout: 60_000 }, () => {
  test('when the address of its status page is taken, as by the daemon that already runs', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const first = await stage.daemon({ exchange: exchange.url, markets: ['AAA_USDT'] });
    await first.ready();
    const { host } = new URL(await first.web());
    const second = await stage.daemon({
      exchange: exchange.url,
      markets: ['BBB_USDT'],
      config: { web: { listen: [host] } },
    });
    expect(await second.exit()).toMatchObject({ code: 78 });
    expect(second.stderr()).toMatch(new RegExp(`^killswitchd run: .*${host}.*in use.*\n$`));
    expect(second.stdout()).toBe('');
    await sleep(500);
    const events = await exchange.events();
    expect(ofKind(events, 'timer-armed').map(({ market }) => market)).toEqual(['AAA_USDT']);
    await first.ready();
  });

  test('when its configuration is wrong, with every mistake at once', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: ['AAA_USDT', { market: 'BBB_USDT', timeoutSeconds: 4 }, 'AAA_USDT'],
      config: { liveness: {}, lgo: { format: 'json' } },
      env: { KILLSWITCHD_TIMEOUT: '60' },
    });
    expect(await daemon.exit()).toMatchObject({ code: 78 });
    expect(daemon.stdout()).toBe('');
    // Under each mistake of the file stands its line, with a mark.
    const mistakes = daemon
      .stderr()
      .trim()
      .split('\n')
      .filter((line) => !line.startsWith('  '));
    expect(mistakes).toHaveLength(5);
    for (const told of [
      /^KILLSWITCHD_TIMEOUT: .*KILLSWITCHD_TIMEOUT_SECONDS/,
      /markets\[1\]\.timeoutSeconds: found 4; allowed: .*5 to 600/,
      /markets\[2\]: found "AAA_USDT" a second time/,
      /lgo: unknown key; .*did you mean log\?/,
      /liveness\.mode: missing/,
    ]) {
      expect(mistakes.filter((line) => told.test(line))).toHaveLength(1);
    }
    expect(await exchange.events()).toEqual([]);
  });
});

describe.concurrent('the command line', { timeout: 60_000 }, () => {
  test.for([
    [['run', '--no-such-flag'], 64, /unknown option '--no-such-flag'/],
    [['rnu'], 64, /unknown command 'rnu'[^]*run/],
    [['--help'], 0, /Usage: killswitchd/],
  ] as const)('%j ends with %i', async ([args, expected, text], context) => {
    const program = await stageFor(context).run(args);
    const { code } = await program.exit();
    expect(code).toBe(expected);
    expect(expected === 0 ? program.stdout() : program.stderr()).toMatch(text);
    expect(expected === 0 ? program.stderr() : program.stdout()).toBe('');
  });

  test('prints all it has to say, however slowly it is read', async (context) => {
    const { directory } = stageFor(context);
    const config = join(directory, 'killswitchd.json');
    const markets = Array.from({ length: 500 }, (_, index) => `M${index}_USDT`);
    const content = {
      exchange: { baseUrls: ['https://exchange.example'] },
      markets,
      liveness: { mode: 'none' },
    };
    writeFileSync(config, JSON.stringify(content));
    const command = '"$0" src/main.ts check-config --print --format json --config "$1" | { sleep 5; cat; }';
    const { stdout } = await promisify(execFile)('sh', ['-c', command, process.execPath, config], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], KILLSWITCHD_API_KEY: 'a-key', KILLSWITCHD_API_SECRET: 'a-secret' },
      maxBuffer: 16 * 1024 * 1024,
    });
    expect(stdout.length).toBeGreaterThan(200_000);
    expect((JSON.parse(stdout) as { markets: unknown[] }).markets).toHaveLength(markets.length);
  });
});
