/** What a file of each ring may import, and after the bar what it must not: what stands above or beside it. */
const RINGS: ReadonlyMap<string, readonly string[]> = new Map(
  `
src/core/a.ts ./b.ts | ../util/b.ts ../ports.ts ../keeper.ts ./../util/b.ts node:net fastify undici
src/util/a.ts ./b.ts node:net fastify | ../core/b.ts ../ports.ts ../daemon/b.ts ./../core/b.ts
src/ports.ts ./core/b.ts | ./util/b.ts ./keeper.ts ./core/../util/b.ts node:net fastify undici
src/clock.ts ./core/b.ts ./util/b.ts ./ports.ts node:os os | ./keeper.ts ./exchange/b.ts ./core/../daemon/b.ts
src/keeper.ts ./core/b.ts ./ports.ts | ./util/b.ts ./clock.ts ./exchange/b.ts ./core/../daemon/b.ts node:net fastify
src/beside.ts ./core/b.ts ./util/b.ts ./ports.ts fastify | ./clock.ts ./config/b.ts ../src/daemon/b.ts ../package.json
src/config/a.ts ./b.ts ../core/b.ts ../util/b.ts ../ports.ts node:net | ../exchange/b.ts ../clock.ts ../daemon/b.ts
src/exchange/a.ts ./b.ts ../core/b.ts undici | ./../daemon/b.ts ./c/../../daemon/b.ts ../core/../daemon/b.ts
src/liveness/a.ts ./b.ts ../core/b.ts node:net | ../exchange/b.ts ../keeper.ts ../../src/daemon/b.ts ../../package.json
src/operator/a.ts ./b.ts ../core/b.ts fastify | ../telemetry/b.ts ../keeper.ts ../library/b.ts ../daemon/b.ts ../main.ts
src/telemetry/a.ts ./b.ts ../core/b.ts @fastify/error | ../operator/b.ts ../simulator/b.ts ../other.ts ../cli/b.ts
src/simulator/a.ts ./b.ts ../core/b.ts ../exchange/sign.ts fastify | ../exchange/b.ts ../keeper.ts ./../exchange/b.ts
src/library/a.ts ../clock.ts ../exchange/b.ts ../simulator/b.ts undici | ../config/b.ts ../keeper.ts ../daemon/b.ts
src/daemon/a.ts ./b.ts ../keeper.ts ../clock.ts ../exchange/b.ts ../library/b.ts fastify | ../cli/b.ts ../main.ts
src/cli/a.ts ./b.ts ../daemon/b.ts ../keeper.ts ../simulator/b.ts undici | ../main.ts
src/main.ts ./cli/b.ts ./daemon/b.ts ./keeper.ts node:os node:process os process |`
    .split('\n')
    .slice(1)
    .map((row) => row.split(' '))
    .map(([path = '', ...words]) => [path, words]),
);
export const IMPORTERS: readonly string[] = [...RINGS.keys()];

const MODULES_OF_TIME_AND_PROCESS = ['timers', 'timers/promises', 'perf_hooks', 'os', 'process'].flatMap(
  (name) => [`node:${name}`, name],
);

/** A line of a file, with the rule by which it must be reported; null where it is allowed. */
interface Line {
  readonly line: string;
  readonly refusedBy: string | null;
}

const refusedUnless = (allowed: boolean, rule: string) => (allowed ? null : `eslint(no-restricted-${rule})`);

/** What a file of this ring could write to see what it must not, and what it may write. */
export const linesOf = (path: string): Line[] => [...importsOf(path), ...ambientOf(path)];

function importsOf(path: string): Line[] {
  const words = RINGS.get(path) ?? [];
  const may = words.slice(0, words.indexOf('|'));
  const all = new Set([...may, ...words.slice(may.length + 1), ...MODULES_OF_TIME_AND_PROCESS]);
  const lines = Array.from(all, (from) => ({
    line: from === 'undici' ? "export { request } from 'undici';" : `import '${from}';`,
    allowed: may.includes(from),
  }));
  return [...lines, { line: "export { fetch } from 'undici';", allowed: false }].map(({ line, allowed }) => ({
    line,
    refusedBy: refusedUnless(allowed, 'imports'),
  }));
}

/** How a file could read what is ambient: time, timers, the process, the network, randomness. */
const AMBIENT = `
Date.now(); new Date(); performance.now(); setTimeout(() => {}, 1); setInterval(() => {}, 1); setImmediate(() => {});
process.env; process.hrtime.bigint(); () => fetch('https://exchange.example'); crypto.randomUUID();
globalThis.Date.now(); globalThis['process']; global.performance; require('node:timers')`.split(';');

const EXEMPT_GLOBALS: Readonly<Record<string, RegExp>> = {
  'src/clock.ts': /^(new )?(Date|performance|setTimeout)\b/,
  'src/main.ts': /^process\b/,
};

const ambientOf = (path: string): Line[] =>
  AMBIENT.map((expression, index) => ({
    line: `export const a${index} = ${expression.trim()};`,
    refusedBy: refusedUnless(EXEMPT_GLOBALS[path]?.test(expression.trim()) ?? false, 'globals'),
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
