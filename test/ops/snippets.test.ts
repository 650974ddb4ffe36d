import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { DOCUMENTS, isThere, read } from '../docs/documents.ts';
import { codeBlocksOf } from '../docs/markdown.ts';
import { beginGuard } from '../process/harness.ts';
import { MAIN, ROOT } from '../process/program.ts';

const run = promisify(execFile);

/** Blocks that something else runs, by a line of them. The first is what `.ci/run` does. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'npm ci && npm start    # the daemon and a simulated exchange on this machine: no account, no key, no money':
    'test/process/first-steps.test.ts',
  'npm install -g ./killswitchd-*.tgz': 'test/ops/npm-package.test.ts',
  'apt install ./build/killswitchd_*_amd64.deb': 'test/ops/debian-package.test.ts',
  'docker compose --profile simulated up --build': 'test/ops/image.test.ts',
  'npm run check    # format, types, lint, dead code': '.ci/run',
  'npm run killswitchd -- exec --embedded-exchange --markets BTC_USDT \\':
    'test/process/command-line.test.ts',
  "import ccxt from 'ccxt';": 'test/ops/ccxt.test.ts',
  'const { BOT_API_KEY, BOT_API_SECRET } = process.env;': 'test/ops/recipes.test.ts',
  "import { createClient, ERROR_CODES, isClientError } from 'killswitchd';": 'test/library/package.test.ts',
  "import { DEMO_KEY, startExchange } from 'killswitchd/simulator';": 'test/library/package.test.ts',
  "import { KillSwitch } from 'killswitchd/bot';": 'test/library/package.test.ts',
  'with KillSwitch("unix:/run/killswitchd/control.sock") as kill_switch:':
    'test/liveness/bot-clients.test.ts',
  'with KillSwitch() as kill_switch:': 'test/process/recipes.test.ts',
  '    kill_switch = KillSwitch()': 'test/process/recipes.test.ts',
  '    kill_switch = KillSwitch(timeout_seconds=0.5)': 'test/process/recipes.test.ts',
  'module.exports = {': 'test/ops/recipes.test.ts',
  'last_turn = time.monotonic()  # set again at the end of each turn': 'test/process/liveness.test.ts',
};
const PROGRAMS = ['sh', 'js', 'ts', 'python'];

/** What is cut short here: commands that run until they are ended, and long searches. */
const SHORTER: readonly (readonly [RegExp, string])[] = [
  // No bot beats beside `run` here, and a stop deletes only for a bot that lives.
  [/^(killswitchd run .*)$/gm, 'ended_by_term env KILLSWITCHD_LIVENESS_MODE=none $1'],
  [/^(killswitchd (?:exchange|exec) .*)$/gm, 'ended_by_term $1'],
  // It takes minutes.
  [/^npm run mutate -- .*$/gm, 'npm run mutate -- --help'],
  [/--seeds 500 /g, '--seeds 4 '],
  [/--plan FILE/g, '--plan test/simulation/plans/beats-between-short-stalls.json'],
  [/^npm run compare.*$/gm, 'npm run compare -- --samples 1'],
  // The whole takes a quarter of an hour, and some of them write into the documents.
  [/^npm run bench  .*$/gm, 'npm run bench -- --quick --only starts --out result.json'],
  [/^npm run bench -- (?:--quick  |--minutes|--doc).*\n/gm, ''],
];

/** Everything of these documents that a reader may paste into a shell. The guide of `deploy` has tests of its own. */
const BLOCKS = DOCUMENTS.filter((path) => !path.startsWith('deploy/')).flatMap((path) =>
  PROGRAMS.flatMap((language) =>
    codeBlocksOf(read(path), language).map((text) => ({ path, language, text })),
  ),
);
const coveredBy = (text: string) => ELSEWHERE[text.split('\n').find((line) => line in ELSEWHERE) ?? ''];

test('every command of the documents is run, here or by a test that is named here', () => {
  const open = BLOCKS.filter(({ language, text }) => language !== 'sh' && coveredBy(text) === undefined);
  expect(open).toEqual([]);
  const known = new Set(BLOCKS.flatMap(({ text }) => text.split('\n')));
  expect(Object.keys(ELSEWHERE).filter((line) => !known.has(line))).toEqual([]);
  expect(Object.values(ELSEWHERE).filter((path) => !isThere(path))).toEqual([]);
});

const HERE = BLOCKS.filter(({ language, text }) => language === 'sh' && coveredBy(text) === undefined);

test.for(HERE.map(({ path, text }) => [`${path}: ${text.split('\n')[0]}`, text] as const))(
  '%s',
  { timeout: 120_000 },
  async ([, text], context) => {
    const { stage, exchange, daemon } = await beginGuard(context, {
      markets: [{ market: 'BTC_USDT', bot: 'maker' }],
      timeoutSeconds: 60,
      control: true,
      config: { liveness: { mode: 'beat' } },
    });
    const web = await daemon.web();
    const folder = folderOf(stage.directory, exchange.url);
    const adapted = SHORTER.reduce((left, [pattern, by]) => left.replace(pattern, by), text)
      .replaceAll('/run/killswitchd/control.sock', daemon.socket.replace('unix:', ''))
      .replaceAll('/run/secrets/', `${folder}/`)
      .replaceAll('--listen 127.0.0.1:17480', '--listen 127.0.0.1:0')
      .replaceAll('http://127.0.0.1:17480', exchange.url)
      .replaceAll('http://127.0.0.1:17477', web);
    const { stdout } = await run('bash', ['--norc', '-euo', 'pipefail', '-c', `${PRELUDE}\n${adapted}`], {
      cwd: folder,
      env: {
        PATH: `${folder}/bin:${join(ROOT, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}`,
        HOME: folder,
        NO_COLOR: '1',
        // As the README has the reader set them.
        KILLSWITCHD_API_KEY_FILE: join(folder, 'api-key'),
        KILLSWITCHD_API_SECRET_FILE: join(folder, 'api-secret'),
      },
      timeout: 100_000,
      maxBuffer: 256 * 1024 * 1024,
    });
    expect(stdout).not.toContain('"error"');
  },
);

/** SIGTERM two seconds after its first line, and the program's own exit code. */
const PRELUDE = `ended_by_term() {
  local said; said=$(mktemp -p "$HOME")
  "$@" > "$said" &
  until test -s "$said"; do kill -0 $!; sleep 0.1; done
  sleep 2; kill -TERM $!; wait $!; cat "$said"
}`;

/** A folder as the reader has it: a clone with the files that the documents speak of. */
function folderOf(directory: string, url: string): string {
  const folder = join(directory, 'clone');
  mkdirSync(join(folder, 'bin'), { recursive: true });
  for (const name of ['package.json', 'src', 'test', 'config', 'node_modules', 'tsconfig.json']) {
    symlinkSync(join(ROOT, name), join(folder, name));
  }
  const program = `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`;
  writeFileSync(join(folder, 'bin/killswitchd'), program, { mode: 0o755 });
  const file = (name: string, content: string, mode = 0o600) =>
    writeFileSync(join(folder, name), content, { mode });
  file('api-key', 'demo-key\n');
  file('api-secret', 'demo-secret\n');
  file('arguments.json', '{"limit":10}');
  const config = {
    exchange: { baseUrls: [url] },
    markets: ['LTC_USDT'],
    liveness: { mode: 'beat' },
    web: { listen: ['127.0.0.1:0'] },
    control: { listen: [`unix:${folder}/other.sock`] },
  };
  file('killswitchd.yaml', JSON.stringify(config));
  for (const path of ['config/clients/bot.py', 'clients/python/killswitchd.py'])
    copyFileSync(join(ROOT, path), join(folder, basename(path)));
  return folder;
}
