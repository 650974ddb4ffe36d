import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { read } from './docs/documents.ts';
import { VARIABLE_NAMES } from './docs/schema-tables.ts';
import { ROOT } from './process/program.ts';
import { IMPORTERS, linesOf, SINGLE_CASES } from './tidy/lint-cases.ts';
import { type Finding, lint } from './tidy/lint-sandbox.ts';

/** What is or will be in the repository: tracked, or new and not ignored. */
const PATHS: readonly string[] = execFileSync(
  'git',
  ['-c', 'safe.directory=*', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
  { cwd: ROOT, encoding: 'utf8' },
)
  .split('\0')
  .filter((path) => path !== '' && existsSync(join(ROOT, path)));

const inFolder = (...folders: readonly string[]): string[] =>
  PATHS.filter((path) => folders.some((folder) => path.startsWith(`${folder}/`)));
const foldersOf = (path: string): string[] => path.split('/').slice(0, -1);

/** `path:line` of every line that `pattern` matches, in files that people wrote. */
function linesMatching(paths: readonly string[], pattern: RegExp): string[] {
  return paths
    .filter((path) => path !== 'package-lock.json' && path !== 'LICENSE')
    .flatMap((path) =>
      read(path)
        .split('\n')
        .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}`] : [])),
    );
}

const longFile = (lines: number): string => 'export {};\n'.repeat(lines);
const longFunction = (lines: number): string =>
  `export function a(): void {\n${'  // line\n'.repeat(lines - 2)}}\n`;

describe('the linter', () => {
  const sources: Readonly<Record<string, string>> = {
    ...Object.fromEntries(
      IMPORTERS.map((path) => [
        path,
        linesOf(path)
          .flatMap(({ line }) => [line, '\n'])
          .join(''),
      ]),
    ),
    ...Object.fromEntries(SINGLE_CASES.map(({ path, text }) => [path, text])),
    'src/config/c.ts': "import { b } from './d.ts'; export const a = () => b;",
    'src/config/d.ts': "import { a } from './c.ts'; export const b = () => a;",
    'src/config/long.ts': longFile(501),
    'src/config/longest.ts': longFile(500),
    'src/config/long-function.ts': longFunction(71),
    'src/config/longest-function.ts': longFunction(70),
    'test/long-function.test.ts': longFunction(71),
  };
  let findings: readonly Finding[];
  beforeAll(() => {
    findings = lint(sources);
  });
  const foundAt = (path: string) => findings.filter((found) => found.path === path);
  const rulesAt = (path: string) => foundAt(path).map(({ rule }) => rule);

  it.each(IMPORTERS)(
    'lets %s import what stands below it, name what it is there for of time, process and network, and nothing else',
    (path) => {
      const lines = sources[path]?.split('\n') ?? [];
      const reported = foundAt(path)
        .filter(({ rule }) => rule.startsWith('eslint(no-restricted-'))
        .map(({ rule, line }) => `${rule}: ${lines[line - 1]}`);
      const refused = linesOf(path).filter(({ refusedBy }) => refusedBy !== null);
      expect(new Set(reported)).toEqual(
        new Set(refused.map(({ refusedBy, line }) => `${refusedBy}: ${line}`)),
      );
    },
  );

  it.each(SINGLE_CASES)('refuses $text in $path', ({ path, rule }) => expect(rulesAt(path)).toContain(rule));

  it.each([
    ['refuses files that import each other', 'src/config/c.ts', ['import(no-cycle)']],
    ['refuses a file of more than 500 lines', 'src/config/long.ts', ['eslint(max-lines)']],
    ['takes a file of 500 lines', 'src/config/longest.ts', []],
    ['refuses a function of 71 lines', 'src/config/long-function.ts', ['eslint(max-lines-per-function)']],
    ['takes a function of 70 lines', 'src/config/longest-function.ts', []],
    ['takes a longer one in tests', 'test/long-function.test.ts', []],
  ])('%s', (_, path, rules) => expect(rulesAt(path)).toEqual(rules));
});

/** Folders of tests that mirror none of the sources. */
const OF_THEIR_OWN = 'bench config contract deploy docs model ops process simulation tidy'.split(' ');

describe('the sources', () => {
  it('never tell the linter or the compiler to look away', () => {
    const directive = new RegExp(['oxlint-dis', 'eslint-dis', '@ts-ig', '@ts-noch', '@ts-exp'].join('|'));
    expect(linesMatching(inFolder('src'), directive)).toEqual([]);
  });

  it('stand in folders named after a thing, one level deep', () => {
    expect(inFolder('src').filter((path) => foldersOf(path).length > 2)).toEqual([]);
    const catchAll = /^(utils|helpers?|types?)$/;
    expect(
      inFolder('src', 'test').filter((path) => foldersOf(path).some((name) => catchAll.test(name))),
    ).toEqual([]);
  });

  it('are named in kebab-case', () => {
    const kebab = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*$/;
    // Python imports a module by the name of its file, in which no dash may stand.
    const named = inFolder('src', 'test', 'config', 'docs').filter((path) => !path.endsWith('.py'));
    expect(named.filter((path) => path.split('/').some((part) => !kebab.test(part)))).toEqual([]);
  });

  it('are mirrored by the folders of the tests', () => {
    const known = new Set([...inFolder('src').map((path) => foldersOf(path)[1]), ...OF_THEIR_OWN]);
    const folders = new Set(inFolder('test').flatMap((path) => foldersOf(path).slice(1, 2)));
    expect([...folders].filter((folder) => !known.has(folder))).toEqual([]);
  });
});

describe('the repository', () => {
  it('holds no leftovers', () => {
    const leftover = new RegExp(`\\b(${'TO'}DO|${'FIX'}ME|${'TB'}D|${'WI'}P)\\b|${'coming'} soon`, 'i');
    expect(linesMatching(PATHS, leftover)).toEqual([]);
  });

  it('knows no directory of the machine it was written on', () => {
    const home = new RegExp(`(^|[^\\w.])/(${['home', 'Users', 'root', 'work'].join('|')})/`);
    expect(linesMatching(PATHS, home)).toEqual([]);
  });

  it('pins every dependency to one version', () => {
    const { dependencies, devDependencies } = JSON.parse(read('package.json'));
    const versions: string[] = Object.values({ ...dependencies, ...devDependencies });
    expect(versions.filter((version) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
  });

  it('has a lock file that names no registry, and that `npm ci` accepts on every platform', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { resolved?: string; optionalDependencies?: Record<string, string> }>;
    };
    const locked = Object.values(packages);
    expect(locked.filter(({ resolved }) => resolved !== undefined)).toEqual([]);
    // Each optional package has its entry.
    const optional = locked.flatMap((entry) => Object.keys(entry.optionalDependencies ?? {}));
    expect(optional.filter((name) => packages[`node_modules/${name}`] === undefined)).toEqual([]);
  });

  it('names only variables that the configuration knows', () => {
    const variablesIn = (path: string) => read(path).match(/\bKILLSWITCHD_[A-Z][A-Z0-9_]*[A-Z0-9]/g) ?? [];
    const known = new Set(VARIABLE_NAMES);
    const readers = PATHS.filter((path) => /^((deploy|config|docs)\/|Dockerfile$|[^/]+\.md$)/.test(path));
    for (const path of readers)
      expect(
        variablesIn(path).filter((name) => !known.has(name)),
        path,
      ).toEqual([]);
  });

  it('tells in its changelog what a user of each version meets', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    const lines = read('CHANGELOG.md').split('\n');
    expect(lines.some((line) => line === '## Unreleased' || line.startsWith(`## ${version} `))).toBe(true);
    const tags = /^- \[(CHANGE|FEATURE|ENHANCEMENT|BUGFIX|SECURITY)\] /;
    expect(lines.filter((line) => line.startsWith('- ') && !tags.test(line))).toEqual([]);
  });
});
