import { describe, expect, test } from 'vitest';
import type { MarketSnapshot } from '../../src/core/view.ts';
import { say } from './control-fixture.ts';
import { sampleBot, sampleMarket, sampleSnapshot } from './sample-snapshot.ts';
import { ask, start } from './web-fixture.ts';

describe('web listener', () => {
  test.each(['/readyz?bot=main', '/livez'])(
    'who sends too many GET %s ahead of their answers loses the connection, and others are answered',
    async (path) => {
      const web = await start();
      const heard = say(web.addresses[0], `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(5000));
      expect((await heard).match(/HTTP\/1.1 200/g)?.length ?? 0).toBeLessThanOrEqual(16);
      expect(await ask(web, '/livez')).toMatchObject({ status: 200 });
    },
  );

  test('metrics are text, or OpenMetrics for whoever asks for that, as Prometheus does', async () => {
    const text = 'metric_a 1\nmetric_b 2\n';
    const web = await start();
    const plain = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' };
    for (const asked of [{}, { accept: '*/*' }])
      expect(await ask(web, '/metrics', 'GET', asked)).toMatchObject({
        status: 200,
        body: text,
        headers: plain,
      });
    const accept = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';
    const type = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
    const open = { body: `${text}# EOF\n`, headers: { 'content-type': type, vary: 'accept' } };
    expect(await ask(web, '/metrics', 'GET', { accept })).toMatchObject(open);
  });

  test('livez says whether the keeper makes progress, readyz whether the daemon is ready, also under the other names', async () => {
    const arming = sampleSnapshot({ markets: [sampleMarket({ state: 'arming', guaranteedMs: null })] });
    const down = await start(() => arming);
    const stuck = await start(() => sampleSnapshot({ live: false }));
    const well = await start();
    for (const path of ['/livez', '/-/healthy']) {
      expect(await ask(down, path)).toMatchObject({ status: 200, body: 'ok\n' });
      expect(await ask(stuck, path)).toMatchObject({ status: 503 });
    }
    const body = '[-]loop failed: the keeper makes no progress\nreadyz check failed\n';
    for (const path of ['/readyz', '/-/ready']) {
      const notYet = expect.stringContaining('BTC_USDT failed: arming');
      expect(await ask(down, path)).toMatchObject({ status: 503, body: notYet });
      expect(await ask(stuck, path)).toMatchObject({ status: 503, body });
      expect(await ask(well, path)).toMatchObject({ status: 200 });
    }
    const notReady = ['the keeper makes no progress'];
    expect(JSON.parse((await ask(stuck, '/api/v1/status')).body)).toMatchObject({ ready: false, notReady });
  });

  test('readyz is 503 while a bot is dead; for whoever starts the bot, only while a wanted timer is missing', async () => {
    const markets = [sampleMarket({ state: 'suspended', wanted: false })];
    const bots = [sampleBot({ state: 'stale', evidenceAgeMs: 20_000 })];
    const web = await start(() => sampleSnapshot({ markets, bots }));
    const silent = '[-]bot/main failed: it is silent\nreadyz check failed\n';
    expect(await ask(web, '/readyz')).toMatchObject({ status: 503, body: silent });
    const passed = '[+]loop ok\n[+]running ok\n[+]authorised ok\n[+]exchange ok\nreadyz check passed\n';
    expect(await ask(web, '/readyz?exclude=bots&verbose')).toMatchObject({ status: 200, body: passed });
    const down = { url: 'http://127.0.0.1:1', up: false, pingMs: null, lastProblem: 'x', outage: false };
    const bases = [true, false].map((used) => ({ ...down, up: !used, used }));
    const arming = [sampleMarket({ state: 'arming', guaranteedMs: null })];
    for (const missing of [{ markets, bots, bases }, { markets: arming }]) {
      const other = await start(() => sampleSnapshot(missing));
      expect(await ask(other, '/readyz?exclude=bots')).toMatchObject({ status: 503 });
    }
  });

  test('readyz?verbose lists every check, the failing ones first', async () => {
    const ill = { guaranteedMs: -10, lastProblem: 'timeout: no answer\n[+]forged ok' };
    const expired = sampleMarket({ market: 'ETH_USDT', state: 'expired', ...ill });
    const idle = sampleMarket({ market: 'SOL_USDT', state: 'suspended', wanted: false, guaranteedMs: null });
    const markets = [sampleMarket(), expired, idle];
    const web = await start(() => sampleSnapshot({ ready: false, notReady: ['ETH_USDT'], markets }));
    expect(await ask(web, '/readyz?verbose')).toMatchObject({
      status: 503,
      body: [
        '[+]loop ok',
        '[+]running ok',
        '[+]authorised ok',
        '[+]bot/main ok',
        '[-]timer/ETH_USDT failed: expired: timeout: no answer [+]forged ok',
        '[-]timer/SOL_USDT failed: suspended',
        '[+]timer/BTC_USDT ok',
        'readyz check failed\n',
      ].join('\n'),
    });
  });

  const READY = 'allowed: verbose, exclude, bot';
  test.each([
    ['/readyz?exclude=bot', 'exclude: found "bot"; allowed: bots; did you mean bots?'],
    ['/readyz?exclude=', 'exclude: found an empty text; allowed: bots'],
    ['/readyz?exclude=bots&exclude=bots', 'exclude: found a list; allowed: bots'],
    ['/-/ready?verbos', `found the unknown key "verbos"; ${READY}; did you mean verbose?`],
    ['/readyz?verbose=0', 'verbose: found "0"; allowed: no value, 1 or true'],
    ['/readyz?bot=main&bot=maker', "bot: found a list; allowed: a bot's name"],
    ['/api/v1/status?veiw=page', 'found the unknown key "veiw"; allowed: view, find; did you mean view?'],
    ['/api/v1/status?view=pages', 'view: found "pages"; allowed: page; did you mean page?'],
  ])('%s is answered with 400: %s', async (path, says) => {
    const web = await start();
    const type = 'text/plain; charset=utf-8';
    const told = { status: 400, body: `the query: ${says}\n`, headers: { 'content-type': type } };
    expect(await ask(web, path)).toMatchObject(told);
    expect(await ask(web, path, 'HEAD')).toMatchObject({ status: 400, body: '' });
  });

  test('markets are looked through once, however many ask whether their bot is ready', async () => {
    let reads = 0;
    const get = (target: object, key: string | symbol): unknown => {
      if (key === '0') reads += 1;
      return Reflect.get(target, key);
    };
    const snapshot = sampleSnapshot({ markets: new Proxy<MarketSnapshot[]>([sampleMarket()], { get }) });
    const web = await start(() => snapshot);
    const paths = ['/readyz?bot=main', '/readyz?bot=main&exclude=bots', '/readyz'];
    const asked = Array.from({ length: 60 }, (_, index) => ask(web, paths[index % 3] ?? ''));
    for (const answer of await Promise.all(asked)) expect(answer).toMatchObject({ status: 200 });
    expect(reads).toBeLessThan(10);
  });

  test('what takes no parameter looks at none, and a bot that nobody names is told which there are', async () => {
    const web = await start();
    for (const path of [
      '/?x=1',
      '/metrics?x=1',
      '/livez?exclude=bots',
      '/readyz?verbose=1&bot=main',
      '/api/v1/status?view=page&find=',
    ])
      expect(await ask(web, path), path).toMatchObject({ status: 200 });
    const body = 'unknown bot: no market of this daemon names it; allowed: main; did you mean main?\n';
    expect(await ask(web, '/readyz?bot=mian')).toMatchObject({ status: 404, body });
  });

  test('the status document has seconds, its version, what a stop would do, and whose orders were cancelled', async () => {
    const cancelled = { market: 'BTC_USDT', certainty: 'certain', why: 'bot_stale', count: 2 } as const;
    const cancellations = [{ ...cancelled, byWallMs: 1_795_000_000_500 }];
    const web = await start(undefined, { cancellations });
    const reply = await ask(web, '/api/v1/status');
    expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
    const { startedAt, now, ...rest } = JSON.parse(reply.body);
    expect(now - startedAt).toBeLessThan(10);
    // `npx vitest run test/operator/web.test.ts -u` writes it anew.
    const keys = (_: string, value: unknown) =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
        : value;
    await expect(`${JSON.stringify(rest, keys, 2)}\n`).toMatchFileSnapshot('status.json.txt');
  });

  test('with many markets the page shows the worst ones, the document all', async () => {
    const markets = Array.from({ length: 1000 }, (_, index) => sampleMarket({ market: `M${index}_USDT` }));
    markets[900] = sampleMarket({ market: 'BAD_USDT', state: 'expired' });
    const web = await start(() => sampleSnapshot({ markets }));
    const read = async (query: string) => JSON.parse((await ask(web, `/api/v1/status${query}`)).body);
    expect((await read('')).markets).toHaveLength(1000);
    const brief = await read('?view=page');
    expect([brief.markets.length, brief.markets[0].market, brief.marketCount]).toEqual([
      200,
      'BAD_USDT',
      1000,
    ]);
    const { body } = await ask(web, '/');
    expect(body).toContain('The 800 markets in the best state are left out: search for one.');
    const found = await read('?view=page&find=m90');
    expect([found.markets.length, found.marketCount, found.matchingCount]).toEqual([10, 1000, 10]);
  });

  test('HEAD answers as GET does, without a body', async () => {
    const web = await start();
    const paths = '/ /metrics /livez /-/healthy /readyz /-/ready /api/v1/status /api/v1/events';
    for (const path of paths.split(' ')) {
      const [get, head] = [await ask(web, path), await ask(web, path, 'HEAD')];
      expect(head, path).toMatchObject({ status: get.status, body: '' });
      expect(head.headers['content-type'], path).toBe(get.headers['content-type']);
    }
  });

  test('every other method is refused everywhere, and no other path is known or repeated', async () => {
    const web = await start();
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'])
      for (const path of ['/', '/metrics', '/-/reload', '/v1/beat']) {
        const type = method === 'POST' ? { 'content-type': 'text/xml' } : {};
        const reply = await ask(web, path, method, type);
        expect(reply, `${method} ${path}`).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
      }
    expect(await ask(web, '/<script>nothing')).toMatchObject({ status: 404, body: 'not found\n' });
    expect(await ask(web, '/%zz')).toMatchObject({ status: 400, body: 'bad request\n' });
  });

  test('a snapshot that fails is an error without details, and the listener stays', async () => {
    let broken = true;
    const web = await start(() => {
      if (broken) throw new Error('the secret is hunter2');
      return sampleSnapshot();
    });
    for (const path of ['/', '/livez', '/api/v1/status', '/metrics']) {
      expect(await ask(web, path), path).toMatchObject({ status: 500, body: 'internal error\n' });
    }
    broken = false;
    expect((await ask(web, '/livez')).status).toBe(200);
  });

  test('a web page that points its own name at this host is not answered', async () => {
    const web = await start();
    expect((await ask(web, '/api/v1/status', 'GET', { host: 'evil.example:17477' })).status).toBe(421);
    for (const host of ['localhost:17477', '127.0.0.1', '[::1]:80', '10.0.0.7:9100']) {
      expect((await ask(web, '/livez', 'GET', { host })).status, host).toBe(200);
    }
    const everywhere = await start(undefined, { listen: '0.0.0.0:0' });
    expect((await ask(everywhere, '/livez', 'GET', { host: 'killswitchd.trading.svc' })).status).toBe(200);
  });

  test('answers are neither kept, sniffed, framed nor shared', async () => {
    const web = await start();
    for (const path of ['/', '/metrics', '/api/v1/events', '/nothing', '/%zz']) {
      const { headers } = await ask(web, path);
      expect(headers).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
      });
      expect(headers['content-security-policy']).toMatch(/^default-src 'none';.*frame-ancestors 'none'$/);
      expect(headers['access-control-allow-origin']).toBeUndefined();
      if (path.endsWith('events')) expect(headers['x-accel-buffering']).toBe('no');
    }
  });
});
