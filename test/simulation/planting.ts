import { readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PLANTED, plant, ROOT, RULES } from './planted.ts';

const ALL = [...PLANTED, ...RULES];
/** Its number in the list marks the modules that are loaded anew, with the bug in them. */
const MARK = /\?bug=(\d+)$/;
/** The texts that each bug changes, by their path in the repository. */
const changed = new Map<number, Map<string, string>>();
/** Sources without their types, by their path: those that no bug changes are the same for all. */
const stripped = new Map<string, string>();

function strippedSource(path: string): string {
  const known = stripped.get(path) ?? stripTypeScriptTypes(readFileSync(path, 'utf8'));
  stripped.set(path, known);
  return known;
}

// The function that takes types out says that it is new.
process.removeAllListeners('warning');

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    const [mark = ''] = MARK.exec(context.parentURL ?? '') ?? [];
    return resolved.url.endsWith('.ts') ? { ...resolved, url: resolved.url + mark } : resolved;
  },
  load(url, context, next) {
    const [, number] = MARK.exec(url) ?? [];
    if (number === undefined) return next(url, context);
    const path = fileURLToPath(url);
    const text = changed.get(Number(number))?.get(relative(ROOT, path));
    const source = text === undefined ? strippedSource(path) : stripTypeScriptTypes(text);
    return { format: 'module', source, shortCircuit: true };
  },
});

/** A module of this folder with the bug, or without the rule, of this name in it and in all that it imports. */
export function importPlanted<Module>(file: string, name: string): Promise<Module> {
  const number = ALL.findIndex((one) => one.name === name);
  const planting = ALL[number];
  if (planting === undefined) throw new Error(`there is no bug and no rule "${name}"`);
  if (!changed.has(number)) changed.set(number, plant(planting));
  return import(new URL(`${file}?bug=${number}`, import.meta.url).href);
}
