import { posix } from 'node:path';

const BELOW = ['core', 'util', 'ports.ts'] as const;
const FOLDERS = ['config', 'exchange', 'liveness', 'operator', 'telemetry', 'simulator'] as const;
const MOST = [...BELOW, ...FOLDERS, 'clock.ts', 'keeper.ts', 'other.ts', 'library', 'daemon'] as const;

/** What each file of `src` may import, as the design has it; a folder stands for itself by the file `a.ts`. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  'src/core/a.ts': ['core'],
  'src/util/a.ts': ['util'],
  'src/ports.ts': ['core'],
  'src/clock.ts': BELOW,
  'src/keeper.ts': ['core', 'ports.ts'],
  'src/beside.ts': BELOW,
  ...Object.fromEntries(FOLDERS.map((folder) => [`src/${folder}/a.ts`, [...BELOW, folder]])),
  'src/simulator/a.ts': [...BELOW, 'simulator', 'exchange/sign.ts'],
  // What programs of other people get to see.
  'src/library/a.ts': [...BELOW, 'library', 'exchange', 'simulator', 'clock.ts'],
  'src/daemon/a.ts': MOST,
  'src/cli/a.ts': [...MOST, 'cli'],
  'src/main.ts': [...MOST, 'cli'],
};
export const IMPORTERS: readonly string[] = Object.keys(KNOWN);

/** Another file of each of them, and one that the simulator may know. */
const TARGETS: readonly string[] = [
  ...IMPORTERS.map((path) => path.replace('/a.ts', '/b.ts').replace('beside', 'other')),
  'src/exchange/sign.ts',
];

const mayImport = (importer: string, target: string): boolean =>
  KNOWN[importer]?.some((known) => `${target}/`.startsWith(`src/${known}/`)) ?? false;

/** Ways to write an import that a pattern could miss; each leads out of what a folder, or a file beside, may know. */
const DETOURS_OF_FOLDER: readonly string[] = [
  './../daemon/b.ts',
  './deeper/../../daemon/b.ts',
  '../core/../daemon/b.ts',
  '../../src/daemon/b.ts',
  '../../package.json',
];
const DETOURS_OF_FILE: readonly string[] = ['./core/../daemon/b.ts', '../src/daemon/b.ts', '../package.json'];

const MODULES_OF_TIME_AND_PROCESS = ['timers', 'timers/promises', 'perf_hooks', 'os', 'process'].flatMap(
  (name) => [`node:${name}`, name],
);

const EXEMPT_MODULES: Readonly<Record<string, readonly string[]>> = {
  'src/clock.ts': ['node:os', 'os'],
  'src/main.ts': ['node:os', 'node:process', 'os', 'process'],
};

/** Rings that know neither packages nor modules of Node. */
const BARE = new Set(['src/core/a.ts', 'src/ports.ts', 'src/keeper.ts']);
const HARMLESS_MODULES = ['node:crypto', 'node:net', 'fastify', '@fastify/error'] as const;

/** A line of a file, with the rule by which it must be reported; null where it is allowed. */
interface Line {
  readonly line: string;
  readonly refusedBy: string | null;
}

const refusedUnless = (allowed: boolean, rule: string) => (allowed ? null : `eslint(no-restricted-${rule})`);

/** Everything that a file could write to see what it must not: imports, and what is ambient. */
export const linesOf = (path: string): Line[] => [...importsOf(path), ...ambientOf(path)];

/** Every import that `importer` could write: of each other file, by a detour, of packages and of Node. */
function importsOf(importer: string): Line[] {
  const specifier = (target: string) => {
    const path = posix.relative(posix.dirname(importer), target);
    return path.startsWith('.') ? path : `./${path}`;
  };
  const detours = posix.dirname(importer) === 'src' ? DETOURS_OF_FILE : DETOURS_OF_FOLDER;
  const exempt = EXEMPT_MODULES[importer] ?? [];
  const isBare = BARE.has(importer);
  const imported = (from: string, allowed: boolean) => [`import '${from}';`, allowed] as const;
  const lines = [
    ...TARGETS.filter((target) => target !== importer).map((target) =>
      imported(specifier(target), mayImport(importer, target)),
    ),
    // Whoever may know the daemon may write it in any way.
    ...(mayImport(importer, 'src/daemon/b.ts') ? [] : detours).map((from) => imported(from, false)),
    ...MODULES_OF_TIME_AND_PROCESS.map((from) => imported(from, exempt.includes(from))),
    ...HARMLESS_MODULES.map((from) => imported(from, !isBare)),
    ["export { fetch } from 'undici';", false] as const,
    ["export { request } from 'undici';", !isBare] as const,
  ];
  return lines.map(([line, allowed]) => ({ line, refusedBy: refusedUnless(allowed, 'imports') }));
}

/** How a file could read what is ambient: time, timers, the process, the network, randomness. */
const AMBIENT = [
  'Date.now()',
  'new Date()',
  'performance.now()',
  'setTimeout(() => {}, 1)',
  'setInterval(() => {}, 1)',
  'setImmediate(() => {})',
  'process.env',
  'process.hrtime.bigint()',
  "() => fetch('https://exchange.example')",
  'crypto.randomUUID()',
  'globalThis.Date.now()',
  "globalThis['process']",
  'global.performance',
  "require('node:timers')",
];

const EXEMPT_GLOBALS: Readonly<Record<string, RegExp>> = {
  'src/clock.ts': /^(new )?(Date|performance|setTimeout)\b/,
  'src/main.ts': /^process\b/,
};

const ambientOf = (path: string): Line[] =>
  AMBIENT.map((expression, index) => ({
    line: `export const a${index} = ${expression};`,
    refusedBy: refusedUnless(EXEMPT_GLOBALS[path]?.test(expression) ?? false, 'globals'),
  }));

/** One violation each of the rules that hold for more than one ring: rule, file, text. */
export const SINGLE_CASES = String.raw`
eslint(no-restricted-properties) src/core/b.ts export const a = Math.random();
eslint(no-restricted-properties) src/simulator/b.ts export const { random } = Math;
eslint(no-restricted-properties) src/exchange/b.ts export const a = AbortSignal.timeout(1);
eslint(no-restricted-properties) src/exchange/c.ts export const a = AbortSignal.any([]);
oxc(no-async-await) src/core/c.ts export async function a() {}
eslint(no-restricted-globals) src/core/d.ts export const a = Promise.resolve();
eslint(no-restricted-globals) src/core/i.ts queueMicrotask(() => {});
eslint(no-restricted-imports) src/core/e.ts import type {} from '../ports.ts';
eslint(no-restricted-imports) src/core/f.ts export * from '../ports.ts';
eslint(no-restricted-imports) src/core/g.ts export const a = import('../ports.ts');
typescript(consistent-type-imports) src/core/h.ts export type A = import('../ports.ts').Clock;
eslint(no-console) src/cli/e.ts console.log('armed');
typescript(ban-ts-comment) test/c.test.ts // @ts-ignore${'\n'}export {};
typescript(no-floating-promises) src/exchange/e.ts import Bottleneck from 'bottleneck'; new Bottleneck().schedule(async () => 1);
typescript(no-misused-promises) src/exchange/f.ts [1].forEach(async () => {});
typescript(switch-exhaustiveness-check) src/telemetry/b.ts export const a = (kind: 'applied' | 'refused') => { switch (kind) { case 'applied': return 1; } return 2; };
vitest(no-disabled-tests) test/a.test.ts it.skip('a', () => {});
vitest(no-focused-tests) test/b.test.ts it.only('a', () => {});`
  .split('\n')
  .flatMap((line) => {
    const [, rule = '', path = '', text = ''] = /^(\S+\)) (\S+) (.*)$/.exec(line) ?? [];
    return rule === '' ? [] : [{ rule, path, text }];
  });
