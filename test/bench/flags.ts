import { closeSync, lstatSync, openSync, rmSync } from 'node:fs';

/** Flags of bench and soak. What is wrong with one is an error that says it in a sentence. */
export function positive(name: string, text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new Error(`--${name} is ${text}; allowed: finite numbers greater than 0`);
}

/** Whoever measures for an hour learns before and not after it that the result has no place to go. */
export function writable(name: string, file: string): string {
  try {
    const isNew = lstatSync(file, { throwIfNoEntry: false }) === undefined;
    closeSync(openSync(file, 'a'));
    if (isNew) rmSync(file);
    return file;
  } catch (error) {
    throw new Error(`--${name} cannot be written: ${(error as Error).message}`, { cause: error });
  }
}
