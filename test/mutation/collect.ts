/**
 * Stands in for vitest while mutants are tried: keeps the tests instead of running them, so that one test can be run
 * thousands of times without loading anything again.
 */
export { expect } from 'vitest';

export interface Kept {
  readonly name: string;
  readonly run: () => unknown;
}

type Body = (...values: never[]) => unknown;
type Options = { readonly timeout?: number };

let kept: Kept[] = [];
const groups: string[] = [];

/** The tests that were found since the last call. */
export function takeKept(): Kept[] {
  const taken = kept;
  kept = [];
  return taken;
}

function group(name: string, body: () => void): void {
  groups.push(name);
  body();
  groups.pop();
}

function single(name: string, ...rest: readonly (Body | Options | number)[]): void {
  const body = rest.find((part) => typeof part === 'function');
  if (body !== undefined) kept.push({ name: [...groups, name].join(' > '), run: body as () => unknown });
}

/** `each` of vitest: an array is spread over the parameters, anything else is the first of them. */
function each<Rest extends readonly unknown[]>(
  define: (name: string, run: () => void, ...rest: Rest) => void,
): (cases: readonly unknown[]) => (name: string, ...rest: readonly (Body | Options | number)[]) => void {
  return (cases) =>
    (name, ...rest) => {
      const body = rest.find((part) => typeof part === 'function') as Body | undefined;
      cases.forEach((one, index) => {
        const values = (Array.isArray(one) ? one : [one]) as never[];
        define(`${name} [${index}]`, () => body?.(...values), ...([] as unknown as Rest));
      });
    };
}

export const describe = Object.assign(group, { each: each(group) });
const named = Object.assign(single, { each: each(single) });

export { named as it, named as test };
