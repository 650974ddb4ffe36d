import { accessSync, closeSync, constants, lstatSync, mkdirSync, openSync, rmSync } from 'node:fs';

/** Flags of bench, soak and profile. What is wrong with one is an error that says it in a sentence. */
export function positive(name: string, text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new Error(`--${name} is ${text}; allowed: finite numbers greater than 0`);
}

export function wholeNumber(name: string, text: string, most = Number.POSITIVE_INFINITY): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1 && value <= most) return value;
  const allowed = Number.isFinite(most) ? `from 1 to ${most}` : 'of at least 1';
  throw new Error(`--${name} is ${text}; allowed: whole numbers ${allowed}`);
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

/** The same for a directory, which is made only when there is something to put there. */
export function writableFolder(name: string, path: string): string {
  try {
    const made = mkdirSync(path, { recursive: true });
    accessSync(path, constants.W_OK);
    if (made !== undefined) rmSync(made, { recursive: true });
    return path;
  } catch (error) {
    throw new Error(`--${name} cannot be written: ${(error as Error).message}`, { cause: error });
  }
}
