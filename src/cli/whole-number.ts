import { InvalidArgumentError } from 'commander';

/** Reads the value of a flag that is a whole number from `low` to `high`, both included. */
export function wholeNumber(low: number, high: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= low && value <= high) return value;
    throw new InvalidArgumentError(`Allowed: a whole number from ${low} to ${high}.`);
  };
}
