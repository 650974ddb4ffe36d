import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { EXIT } from '../src/cli/edge.ts';
import { FAILURE_REASONS } from '../src/core/events.ts';
import { ControlRefusal, REFUSALS } from '../src/operator/control-sources.ts';
import { describeStatus } from '../src/operator/status.ts';
import { FAULT_KINDS } from '../src/simulator/faults.ts';
import { startSimulatedServer } from '../src/simulator/server.ts';
import { DOCUMENTS, isThere, read, resolveLink, write } from './docs/documents.ts';
import { generatedContents } from './docs/generated.ts';
import {
  anchorsOf,
  codeBlocksOf,
  generatedBlocks,
  inlineCodeOf,
  linksOf,
  withGenerated,
  withoutCode,
} from './docs/markdown.ts';
import { ask, commandNames, helpOf } from './docs/program.ts';
import { checkConfig } from './docs/promise-table.ts';
import { CONFIG_KEYS, KEY_RISKS } from './docs/schema-tables.ts';
import { telemetryTables } from './docs/telemetry-tables.ts';
import { asker, createSpy, start as startControl } from './operator/control-fixture.ts';
import { sampleSnapshot } from './operator/sample-snapshot.ts';
import { ask as askWeb, clock, start as startWeb } from './operator/web-fixture.ts';
import { INVARIANTS } from './simulation/court.ts';

/** What `find` sees in every document and `isKnown` does not know, as `path: text`. */
const unknown = (find: (markdown: string) => string[], isKnown: (text: string, path: string) => boolean) =>
  DOCUMENTS.flatMap((path) => {
    const texts = find(read(path)).filter((text) => !isKnown(text, path));
    return texts.map((text) => `${path}: ${text}`);
  });

const matches = (pattern: RegExp) => (markdown: string) =>
  [...markdown.matchAll(pattern)].map(([text]) => text);

describe('what the documents show of the program', () => {
  let contents: ReadonlyMap<string, string>;
  beforeAll(async () => {
    contents = await generatedContents();
    if (process.env['UPDATE_DOCS'] !== '1') return;
    for (const path of DOCUMENTS) {
      const before = read(path);
      const after = withGenerated(before, (name) => contents.get(name));
      if (after !== before) write(path, after);
    }
  });

  it.each(DOCUMENTS)(
    '%s is what the program says now; else: UPDATE_DOCS=1 npx vitest run test/docs.test.ts',
    (path) => {
      const blocks = generatedBlocks(read(path));
      expect([...blocks.keys()].filter((name) => !contents.has(name))).toEqual([]);
      for (const [name, shown] of blocks) expect(shown, name).toBe(contents.get(name));
    },
  );

  it('is all of it: every section, metric and command has its place', () => {
    const shown = new Set(DOCUMENTS.flatMap((path) => [...generatedBlocks(read(path)).keys()]));
    expect([...contents.keys()].filter((name) => !shown.has(name))).toEqual([]);
  });
});

describe('no document leads nowhere', () => {
  it('by a link', () => {
    const dead = unknown(linksOf, (target, from) => {
      if (/^[a-z]+:/.test(target)) return true;
      const [file = '', anchor] = target.split('#');
      const path = file === '' ? from : resolveLink(from, file);
      return isThere(path) && (anchor === undefined || anchorsOf(read(path)).includes(anchor));
    });
    expect(dead).toEqual([]);
  });

  it('by a path in backticks', () => {
    const paths = (markdown: string) =>
      inlineCodeOf(markdown).filter((text) => /^(src|config|docs|test|deploy)\/[\w./*-]+$/.test(text));
    expect(unknown(paths, isThere)).toEqual([]);
  });

  it('by the name of an npm script', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = (markdown: string) =>
      [...markdown.matchAll(/\bnpm (?:run ([\w:-]+)|(start|test)\b)/g)].map(
        ([, script, short]) => script ?? short ?? '',
      );
    expect(unknown(named, (script) => Object.hasOwn(scripts, script))).toEqual([]);
  });
});

it('no bot that sends its beats with curl waits for a daemon that hangs', () => {
  const files = [...DOCUMENTS, 'config/killswitchd.example.yaml', 'config/clients/beat.sh'];
  const beats = files.flatMap((path) => matches(/curl .*\/v1\/beat/g)(read(path)));
  expect(beats.length).toBeGreaterThan(2);
  expect(beats.filter((command) => !command.includes(' -m 2 '))).toEqual([]);
});

describe('no document names what does not exist', () => {
  it('as a metric', async () => {
    const { metricNames } = await telemetryTables();
    expect(unknown(matches(/\bkillswitch_[a-z0-9_]+/g), (name) => metricNames.has(name))).toEqual([]);
  });

  it('as a flag', async () => {
    const names = await commandNames();
    const helps = await Promise.all([...names.map(helpOf), ask(['--help']).then(({ out }) => out)]);
    const tools = ['bench/main', 'bench/soak', 'simulation/main', 'simulation/rule-cost'];
    helps.push(...tools.map((name) => read(`test/${name}.ts`)));
    const flags = new Set([...OTHER_FLAGS, ...helps.flatMap(matches(/--[a-z][a-z\d-]*/g))]);
    // Other programs have flags of their own; the tests of test/ops follow their commands.
    const others = /^(amtool|curl|docker|kubectl) (?:[^\n\\]|\\\n)*/gm;
    const named = (markdown: string) =>
      matches(/(?<![\w-])--[a-z][a-z\d-]*/g)(markdown.replaceAll(others, ''));
    expect(unknown(named, (flag) => flags.has(flag))).toEqual([]);
  });

  it('as a configuration key', () => {
    const sections = new Set(CONFIG_KEYS.map((key) => key.split('.')[0]));
    const keys = (markdown: string) =>
      inlineCodeOf(markdown).flatMap((text) => {
        const [key, section] = /^(\w+)\.(?!yaml$)\w+(?=$|: )/.exec(text) ?? [];
        return key !== undefined && sections.has(section) ? [key] : [];
      });
    expect(unknown(keys, (key) => CONFIG_KEYS.includes(key))).toEqual([]);
  });

  it('as a command', async () => {
    const names = await commandNames();
    const commands = (markdown: string) =>
      [...markdown.matchAll(/(?:`|^)killswitchd ([a-z-]+)/gm)].map(([, command = '']) => command);
    expect(unknown(commands, (command) => names.includes(command))).toEqual([]);
    // Outside of a clone it would run whoever owns the name.
    expect(unknown(matches(/npx killswitchd/g), () => false)).toEqual([]);
  });
});

/** Flags of other programs that the documents name. */
const OTHER_FLAGS =
  `
  --experimental-vm-modules --unix-socket --coverage --mutate --pack-destination --strip-components --prefix --omit
  --ignore-scripts --no-same-owner --cluster --now --allow-downgrades --no-pager --user --namespace --quick
  --cpu-prof --disable-sigusr1 --max-semi-space-size --max-old-space-size`.match(/\S+/g) ?? [];

describe('the examples', () => {
  it('of configuration files pass check-config', async () => {
    // A manifest of Kubernetes or a part of a kustomization is none, nor a file of Compose.
    const files = DOCUMENTS.flatMap((path) => codeBlocksOf(read(path), 'yaml')).filter(
      (block) => !/^(metadata|patches|services):/.test(block),
    );
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) expect(await checkConfig(file)).toMatchObject({ exitCode: 0, err: '' });
  });

  it('of faults are taken by the simulated exchange, and every kind is described', async () => {
    const text = read('docs/http.md');
    const examples = text.matchAll(/[`'](\{"kind":.*?\})[`']/g);
    const faults = Array.from(examples, ([, json = '']): { kind: string } => JSON.parse(json));
    const setup = [{ path: '/simulator/faults', body: faults }];
    await (await startSimulatedServer({ clock, listen: { host: '127.0.0.1', port: 0 }, setup })).close();
    const described = new Set<string>(faults.map(({ kind }) => kind));
    expect(FAULT_KINDS.filter((kind) => !described.has(kind))).toEqual([]);
  });
});

describe('docs/http.md', () => {
  const text = read('docs/http.md');
  const section = text.split(/^## /m).find((part) => part.startsWith('The control listener')) ?? '';
  const askControl = async () => asker((await startControl(createSpy())).addresses[0]);

  it('names only paths that the servers know', async () => {
    const web = await startWeb();
    const control = await askControl();
    const simulated = await startSimulatedServer({ clock, listen: { host: '127.0.0.1', port: 0 } });
    onTestFinished(() => simulated.close());
    const missing: string[] = [];
    for (const [, path = ''] of text.matchAll(/`GET (\/[\w/.-]*)/g)) {
      const replies = [await askWeb(web, path), await fetch(simulated.url + path)];
      const all = [...replies, await control(path, { method: 'GET' })];
      if (all.every(({ status }) => status === 404)) missing.push(path);
    }
    expect(missing).toEqual([]);
  });

  it('names every field of the status document', () => {
    const lists = { recentEvents: () => [], cancellations: () => [] };
    const told = { clock, snapshot: () => sampleSnapshot(), ...lists, version: '1.2.3', startedAtWallMs: 0 };
    const { markets, ...status } = describeStatus(told, 10);
    const fields = [...Object.keys(status), ...markets.flatMap((market) => Object.keys(market))];
    const named = new Set(inlineCodeOf(text));
    expect(fields.filter((field) => !named.has(field))).toEqual([]);
  });

  it('lists every endpoint of the control listener with its method, and no other', async () => {
    const ask = await askControl();
    const [, allowed = ''] = /allowed: ([^;]*)/.exec((await ask('/nothing-like-it')).message) ?? [];
    const rows = [...section.matchAll(/^\| `(GET|POST) (\/v1\/[a-z-]+)` +\|/gm)];
    expect(rows.map(([, , path = '']) => path).toSorted()).toEqual(allowed.split(', ').toSorted());
    for (const [, method = '', path = ''] of rows)
      expect((await ask(path, { method })).status, path).not.toBe(405);
  });

  it('shows a reply to a beat as it is made', async () => {
    const shown = /^```json\n([\s\S]*?)^```/m.exec(section)?.[1] ?? '';
    const { body } = await (await askControl())('/v1/beat?bot=main');
    const shape = (value: unknown) =>
      JSON.stringify(value, (_, one) => (Object(one) === one ? one : typeof one));
    expect(shape(JSON.parse(shown))).toEqual(shape(body));
  });
});

/** The first columns of the rows that a pattern finds in a document. */
const rowsOf = (path: string, pattern: RegExp) =>
  [...read(path).matchAll(pattern)].map(([, ...columns]) => columns.join(' '));
const namedIn = (path: string, names: readonly string[]) => {
  const named = new Set(inlineCodeOf(read(path)));
  return names.filter((name) => named.has(name));
};
const REFUSED = rowsOf('docs/http.md', /^\| (\d{3}) +\| `([a-z_]+)` +\|/gm);
const REFUSING = REFUSALS.map((code) => `${new ControlRefusal(code, '').status} ${code}`);
const CODES = Object.values(EXIT).map(String);

it.each<[string, readonly string[], readonly string[]]>([
  ['docs/http.md lists every refusal with its status, once', REFUSED.toSorted(), REFUSING.toSorted()],
  ['docs/configuration.md says what goes wrong', Object.keys(KEY_RISKS).toSorted(), CONFIG_KEYS.toSorted()],
  [
    'docs/metrics.md explains why requests fail',
    namedIn('docs/metrics.md', FAILURE_REASONS),
    FAILURE_REASONS,
  ],
  ['docs/dependencies.md has a reason for each', rowsOf('docs/dependencies.md', /(NO REASON GIVEN)/g), []],
  [
    'docs/simulation.md explains every invariant',
    rowsOf('docs/simulation.md', /^\| (\d+ [a-z ]+?) +\|/gm),
    INVARIANTS,
  ],
  ['docs/commands.md lists every exit code once', rowsOf('docs/commands.md', /^\| (\d+) +\|/gm), CODES],
])('%s', (_, shown, expected) => expect(shown).toEqual(expected));

it('the prose has lines of at most 120 characters outside of tables, code and links', () => {
  const long = (markdown: string) =>
    withoutCode(markdown)
      .split('\n')
      .filter((line) => line.length > 120 && !line.startsWith('|') && !line.includes(']('));
  expect(unknown(long, () => false)).toEqual([]);
});
