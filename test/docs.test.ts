import { beforeAll, describe, expect, it } from 'vitest';
import { EXIT } from '../src/cli/edge.ts';
import { FAILURE_REASONS } from '../src/core/events.ts';
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
function unknown(
  find: (markdown: string) => readonly string[],
  isKnown: (text: string, path: string) => boolean,
) {
  return DOCUMENTS.flatMap((path) =>
    find(read(path))
      .filter((text) => !isKnown(text, path))
      .map((text) => `${path}: ${text}`),
  );
}

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
    expect(
      unknown(
        (markdown) => markdown.match(/npx killswitchd/g) ?? [],
        () => false,
      ),
    ).toEqual([]);
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
    // A manifest of Kubernetes is none, nor a file of Compose.
    const files = DOCUMENTS.flatMap((path) => codeBlocksOf(read(path), 'yaml')).filter(
      (block) => !/^(metadata|services):/.test(block),
    );
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) expect(await checkConfig(file)).toMatchObject({ exitCode: 0, err: '' });
  });

  it('of faults are taken by the simulated exchange, and every kind is described', async () => {
    const text = read('docs/http.md');
    const examples = [...text.matchAll(/[`'](\{"kind":.*?\})[`']/g)].map(([, json = '']) => json);
    const faults = examples.map((json): unknown => JSON.parse(json));
    const setup = [{ path: '/simulator/faults', body: faults }];
    await (await startSimulatedServer({ clock, listen: { host: '127.0.0.1', port: 0 }, setup })).close();
    const described = new Set(examples.map((json) => (JSON.parse(json) as { kind: string }).kind));
    expect(FAULT_KINDS.filter((kind) => !described.has(kind))).toEqual([]);
  });
});

describe('docs/http.md', () => {
  const text = read('docs/http.md');
  const pathsAfter = (method: string) =>
    [...text.matchAll(new RegExp(`\`${method} (/[\\w/.-]*)`, 'g'))].map(([, path = '']) => path);

  it('names only paths that the servers know', async () => {
    const web = await startWeb();
    const control = asker((await startControl(createSpy())).addresses[0]);
    const simulated = await startSimulatedServer({ clock, listen: { host: '127.0.0.1', port: 0 } });
    try {
      const missing: string[] = [];
      for (const path of pathsAfter('GET')) {
        const atWeb = await askWeb(web, path);
        const atSimulator = await fetch(simulated.url + path);
        const atControl = await control(path, { method: 'GET' });
        const all = [atWeb, atSimulator, atControl];
        if (all.every(({ status }) => status === 404)) missing.push(path);
      }
      expect(missing).toEqual([]);
    } finally {
      await simulated.close();
    }
  });

  it('names every field of the status document', () => {
    const now = clock.now();
    const input = {
      snapshot: sampleSnapshot(),
      events: [],
      cancellations: [],
      version: '1.2.3',
      startedAtWallMs: 0,
      now,
    };
    const { markets, ...status } = describeStatus(input, { limit: 10 });
    const fields = [...Object.keys(status), ...markets.flatMap((market) => Object.keys(market))];
    const named = new Set(inlineCodeOf(text));
    expect(fields.filter((field) => !named.has(field))).toEqual([]);
  });
});

describe('docs/configuration.md', () => {
  it('says of every key what goes wrong', () => {
    expect(Object.keys(KEY_RISKS).toSorted()).toEqual(CONFIG_KEYS.toSorted());
  });
});

describe('docs/metrics.md', () => {
  it('explains every reason of a failed request', () => {
    const named = new Set(inlineCodeOf(read('docs/metrics.md')));
    expect(FAILURE_REASONS.filter((reason) => !named.has(reason))).toEqual([]);
  });
});

describe('docs/dependencies.md', () => {
  it('has a reason for every package that was chosen', () => {
    expect(read('docs/dependencies.md')).not.toContain('NO REASON GIVEN');
  });
});

describe('docs/simulation.md', () => {
  it('explains every invariant that is judged', () => {
    const explained = [...read('docs/simulation.md').matchAll(/^\| (\d+ [a-z ]+?) +\|/gm)].map(
      ([, name]) => name,
    );
    expect(explained).toEqual(INVARIANTS);
  });
});

describe('docs/commands.md', () => {
  it('lists every exit code once', () => {
    const listed = [...read('docs/commands.md').matchAll(/^\| (\d+) +\|/gm)].map(([, value]) =>
      Number(value),
    );
    expect(listed).toEqual(Object.values(EXIT));
  });
});

describe('the prose', () => {
  it('has lines of at most 120 characters outside of tables, code and links', () => {
    const long = (markdown: string) =>
      withoutCode(markdown)
        .split('\n')
        .filter((line) => line.length > 120 && !line.startsWith('|') && !line.includes(']('));
    expect(unknown(long, () => false)).toEqual([]);
  });

  it('promises nothing for later in so many words', () => {
    const words = new RegExp(
      `\\b(${[`${'TO'}DO`, `${'FIX'}ME`, 'TBD', 'WIP', 'coming soon'].join('|')})\\b`,
      'gi',
    );
    expect(unknown(matches(words), () => false)).toEqual([]);
  });
});
