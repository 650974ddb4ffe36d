import { ControlRefusal } from './control-refusal.ts';

/**
 * The value of a request's body, or undefined where there is none. Throws `ControlRefusal` with the place of the first
 * mistake; of the body itself the message shows nothing.
 */
export function parseJsonBody(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ControlRefusal('malformed_json', 'the body is not JSON: its bytes are not UTF-8');
  }
  try {
    return JSON.parse(text);
  } catch {
    const before = text.slice(0, findMistake(text)).split('\n');
    const place = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
    throw new ControlRefusal('malformed_json', `the body is not JSON: ${place} cannot be read`);
  }
}

const SPACE: ReadonlySet<string | undefined> = new Set([' ', '\t', '\n', '\r']);
const SCALAR =
  /"(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)(?!\w)/uy;

/** Where a text stops being JSON. `JSON.parse` tells it of some mistakes only, and shows what stands there. */
function findMistake(text: string): number {
  const open: ('{' | '[')[] = [];
  let expects: 'value' | 'first' | 'key' | 'colon' | 'next' = 'value';
  let at = 0;
  const take = (pattern: RegExp): string | null => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0] ?? null;
  };
  for (;;) {
    while (SPACE.has(text[at])) at += 1;
    const here = text[at] ?? '';
    const inside = open.at(-1);
    const closes =
      (expects === 'first' || expects === 'next') && here !== '' && here === CLOSING[inside ?? ''];
    if (closes) {
      open.pop();
      expects = 'next';
    } else if (expects === 'next') {
      if (here !== ',' || inside === undefined) return at;
      expects = inside === '{' ? 'key' : 'value';
    } else if (expects === 'colon') {
      if (here !== ':') return at;
      expects = 'value';
    } else {
      const wantsKey: boolean = expects === 'key' || (expects === 'first' && inside === '{');
      if (!wantsKey && (here === '{' || here === '[')) {
        open.push(here);
        expects = 'first';
      } else {
        const scalar = take(SCALAR);
        if (scalar === null || (wantsKey && here !== '"')) return at;
        at += scalar.length - 1;
        expects = wantsKey ? 'colon' : 'next';
      }
    }
    at += 1;
  }
}

const CLOSING: Readonly<Record<string, string>> = { '{': '}', '[': ']' };
