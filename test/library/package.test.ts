import { execFile, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { startSimulatedServer } from '../../src/simulator/server.ts';
import { codeBlocksOf } from '../docs/markdown.ts';
import { serveBeats } from '../liveness/beat-server.ts';
import { ROOT } from '../process/program.ts';

const MODULES = join(ROOT, 'node_modules');
const runFile = promisify(execFile);

/** The examples of the document in its order, by the name of the file that they become. */
const DOCUMENT = readFileSync(join(ROOT, 'docs', 'library.md'), 'utf8');
const [client = '', bot = '', simulator = '', ...others] = codeBlocksOf(DOCUMENT, 'ts');
const [ofVitest = '', ...otherTests] = codeBlocksOf(DOCUMENT, 'js');
const EXAMPLES = { 'client.ts': client, 'bot.ts': bot, 'simulator.ts': simulator } as const;

const folder = mkdtempSync(join(tmpdir(), 'killswitchd-package-'));
const user = join(folder, 'user');
const target = join(user, 'node_modules', 'killswitchd');
let packed: readonly string[];

/** Runs a program with the Node of this test first in the PATH. Rejects with what it wrote where it fails. */
async function run(file: string, args: readonly string[], cwd: string, env: object = {}): Promise<string> {
  const path = [dirname(process.execPath), join(MODULES, '.bin'), process.env['PATH']].join(delimiter);
  const given = { NODE_COMPILE_CACHE: join(folder, 'compiled'), ...env, PATH: path };
  const options = { cwd, timeout: 220_000, env: { ...process.env, ...given } };
  try {
    // A compiler lets what waits for an answer beside it go first.
    return (await runFile('nice', ['-n', '5', file, ...args], options)).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${file} ${args.join(' ')}:\n${stdout}\n${stderr}`, { cause: error });
  }
}

beforeAll(async () => {
  const copy = join(folder, 'copy');
  const notCopied = new Set(['.git', 'node_modules', 'dist', 'build', 'test']);
  for (const name of readdirSync(ROOT).filter((entry) => !notCopied.has(entry))) {
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  }
  symlinkSync(MODULES, join(copy, 'node_modules'));
  // It builds `dist` as the script `prepare` does for everybody.
  await run('npm', ['pack', '--silent', '--offline', '--pack-destination', folder], copy);
  const { version, dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  // What `npm install` of the tarball makes of an empty folder, without a network.
  mkdirSync(target, { recursive: true });
  const unpack = ['-xzvf', `killswitchd-${version}.tgz`, '--strip-components=1', '-C', target];
  packed = (await run('tar', unpack, folder)).split('\n');
  for (const name of [...Object.keys(dependencies), '@types', 'vitest'])
    symlinkSync(join(MODULES, name), join(user, 'node_modules', name));
  writeFileSync(join(user, 'package.json'), '{ "name": "user", "type": "module" }');
  for (const [name, text] of Object.entries(EXAMPLES)) writeFileSync(join(user, name), text);
}, 240_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the packed library', () => {
  it('has an example for each of its exports, and no sources or tests in it', () => {
    expect([...others, ...otherTests]).toEqual([]);
    expect(packed.filter((path) => /^package\/(src|test)\//.test(path))).toEqual([]);
    expect(packed).toContain('package/dist/library/client.d.ts');
    expect(packed).toContain('package/dist/sbom.cdx.json');
  });

  it('has what its documents link to, and says where it comes from', () => {
    const documents = packed
      .map((path) => path.slice('package/'.length))
      .filter((path) => path.endsWith('.md'));
    expect(documents).toEqual(expect.arrayContaining(['README.md', 'docs/bots.md', 'deploy/README.md']));
    for (const document of documents) {
      const text = readFileSync(join(target, document), 'utf8');
      const links = [...text.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, link = '']) => link);
      const broken = links.filter((link) => !existsSync(join(target, dirname(document), link)));
      expect(broken, document).toEqual([]);
    }
    const { homepage, repository } = JSON.parse(readFileSync(join(target, 'package.json'), 'utf8'));
    expect([homepage, repository.url]).toEqual([expect.any(String), expect.stringMatching(/^git\+https:/)]);
    const { metadata } = JSON.parse(readFileSync(join(target, 'dist/sbom.cdx.json'), 'utf8'));
    expect(metadata.component.name).toBe('killswitchd');
  });

  it('is not packed without the program, in a clone that never ran npm ci', async () => {
    const bare = mkdtempSync(join(folder, 'bare-'));
    for (const name of ['package.json', 'package-lock.json', 'deploy', 'src', 'tsconfig.build.json'])
      cpSync(join(ROOT, name), join(bare, name), { recursive: true });
    const packing = run('npm', ['pack', '--offline', '--foreground-scripts'], bare);
    await expect(packing).rejects.toThrow('nothing here can build it; run npm ci first');
    expect(readdirSync(bare).filter((name) => name.endsWith('.tgz'))).toEqual([]);
  }, 60_000);

  it.each([
    ['https://killswitchd.example', 1],
    ['https://example.org/killswitchd', 0],
  ])('says whether %s is a placeholder, and is not published with one', (homepage, code) => {
    const cwd = mkdtempSync(join(folder, 'addresses-'));
    const repository = { url: `git+${homepage}/killswitchd.git` };
    writeFileSync(join(cwd, 'package.json'), JSON.stringify({ homepage, repository }));
    for (const [flags, status] of [
      [[], 0],
      [['--refuse'], code],
    ] as const) {
      const script = [join(ROOT, 'deploy/package/placeholders.ts'), ...flags];
      const said = spawnSync(process.execPath, script, { cwd, encoding: 'utf8' });
      expect([said.status, said.stderr.split('\n').length - 1]).toEqual([status, code * 2]);
    }
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(scripts.prepublishOnly).toBe('npm run placeholders -- --refuse');
  });

  it.each(['nodenext', 'bundler'])(
    'has types that a strict program with moduleResolution %s takes',
    async (how) => {
      const compilerOptions = {
        module: how === 'nodenext' ? 'nodenext' : 'esnext',
        moduleResolution: how,
        target: 'es2024',
        lib: ['es2024', 'esnext.disposable'],
        types: ['node'],
        strict: true,
        exactOptionalPropertyTypes: true,
        // One of the two looks at the types of what they are built on as well.
        skipLibCheck: how === 'bundler',
        noEmit: true,
      };
      const name = `tsconfig.${how}.json`;
      const files = [...Object.keys(EXAMPLES), 'mistake.ts'];
      copyFileSync(join(ROOT, 'test/library/strict-user.txt'), join(user, 'mistake.ts'));
      writeFileSync(join(user, name), JSON.stringify({ compilerOptions, files }));
      expect(await run(join(MODULES, '.bin', 'tsc'), ['-p', name], user)).toBe('');
    },
    60_000,
  );

  it('runs the example of the client against an exchange', async () => {
    const listen = { host: '127.0.0.1', port: 0 };
    const server = await startSimulatedServer({ clock: createSystemClock(), listen });
    try {
      const said = await run(process.execPath, ['client.ts'], user, { EXCHANGE: server.url });
      expect(said).toMatch(/^orders of BTC_USDT are cancelled at \d+\nbought 0\.001 for 60\n$/);
      expect(server.exchange.timers()).toEqual([]);
    } finally {
      await server.close();
    }
  }, 60_000);

  it('runs the example of a bot, which beats and says goodbye', async (context) => {
    const server = await serveBeats(context, null);
    server.answer(true);
    const said = await run(process.execPath, ['bot.ts'], user, { KILLSWITCHD_CONTROL: server.control });
    expect(said.split('\n').slice(0, 3)).toEqual([1, 2, 3].map((turn) => `turn ${turn}: orders may go out`));
    expect(server.received.map(({ word }) => word)).toEqual([...Array(4).fill('/v1/beat'), '/v1/goodbye']);
  }, 60_000);

  it('runs the example of the simulated exchange', async () => {
    const said = await run(process.execPath, ['simulator.ts'], user);
    expect(said.split('\n')).toEqual([
      "balances { USDT: '899.9', BTC: '0.002' }",
      'UnknownOutcomeError',
      'orders 2',
      '',
    ]);
  }, 60_000);

  it('runs the example of a test in vitest', async () => {
    writeFileSync(join(user, 'bot.test.js'), ofVitest);
    const env = { NO_COLOR: '1', VITEST: '', VITEST_WORKER_ID: '', VITEST_POOL_ID: '' };
    const said = await run(join(MODULES, '.bin', 'vitest'), ['run', '--root', user], user, env);
    expect(said).toMatch(/Tests +1 passed \(1\)/);
  }, 60_000);

  it('lets nobody import what it does not export', async () => {
    const inside = "await import('killswitchd/dist/exchange/wire.js')";
    await expect(run(process.execPath, ['-e', inside], user)).rejects.toThrow(
      'ERR_PACKAGE_PATH_NOT_EXPORTED',
    );
  });
});
