import { type Node, parseSync } from 'oxc-parser';
import { type Change, changesOf, changesOfTest } from './operators.ts';

/** One change of the product that the tests have to notice. */
export interface Mutant {
  readonly id: number;
  readonly file: string;
  readonly line: number;
  /** The line as it stands, without indentation: with `from` and `to` it names the mutant. */
  readonly code: string;
  readonly from: string;
  readonly to: string;
  /** Taken in when its module is loaded, and not when a function runs. */
  readonly fixed: boolean;
}

const EXPRESSIONS_OF_TYPES = new Set(['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression']);
const LOOPS = new Set([
  'ForStatement',
  'ForOfStatement',
  'ForInStatement',
  'WhileStatement',
  'DoWhileStatement',
]);
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

type Place = { readonly start: number; readonly end: number };

/** Puts every mutant into one source, each behind a switch, so that nothing is loaded again to try the next one. */
export function instrument(
  file: string,
  source: string,
  firstId: number,
): { readonly code: string; readonly mutants: readonly Mutant[] } {
  const { program } = parseSync(file, source);
  const lines = source.split('\n');
  const starts = lineStarts(lines);
  const mutants: Mutant[] = [];

  function add(at: Place, { from, to }: Pick<Change, 'from' | 'to'>, depth: number): number {
    const id = firstId + mutants.length;
    const line = starts.findLastIndex((start) => start <= at.start);
    mutants.push({
      id,
      file,
      line: line + 1,
      code: (lines[line] ?? '').trim(),
      from,
      to,
      fixed: depth === 0,
    });
    return id;
  }

  /** The source of a node with all mutants inside it. */
  function render(node: Node, depth: number, asTest = false): string {
    const inner = depth + (FUNCTIONS.has(node.type) ? 1 : 0);
    const text = withParts(node, source, (child, key) => {
      if (key === 'test' && node.type !== 'SwitchCase') return render(child, inner, true);
      return isLoopBody(node, key) ? `{ __loop(); ${render(child, inner)} }` : render(child, inner);
    });
    if (isRemovable(node)) {
      const id = add(node, { from: 'statement', to: 'nothing' }, inner);
      return `{ if (!__is(${id})) { ${text} } }`;
    }
    const changes = [...changesOf(node, source), ...(asTest ? changesOfTest() : [])];
    return changes.reduce((kept, one) => `(__is(${add(node, one, inner)}) ? ${one.text} : ${kept})`, text);
  }

  const code = render(program, 0);
  return { code: `${prelude(file, mutants)} ${code}`, mutants };
}

/** Only counts the turns of loops: for what runs with a mutated part and could go on for ever. */
export function countLoops(file: string, source: string): string {
  const { program } = parseSync(file, source);
  const render = (node: Node): string =>
    withParts(node, source, (child, key) =>
      isLoopBody(node, key) ? `{ __loop(); ${render(child)} }` : render(child),
    );
  return `const __loop = globalThis.mutation.loop; ${render(program)}`;
}

function prelude(file: string, mutants: readonly Mutant[]): string {
  const list = JSON.stringify(JSON.stringify(mutants));
  return `const { is: __is, loop: __loop } = globalThis.mutation; globalThis.mutation.register(${JSON.stringify(file)}, ${list});`;
}

/** Puts together the source of a node from that of its parts, and what stands between them. */
function withParts(node: Node, source: string, textOf: (child: Node, key: string) => string): string {
  let text = '';
  let at = node.start;
  for (const [key, child] of partsOf(node)) {
    text += source.slice(at, child.start) + textOf(child, key);
    at = child.end;
  }
  return text + source.slice(at, node.end);
}

/** The parts that are carried out, in the order of the source: no types, no names. */
function partsOf(node: Node): [string, Node][] {
  const parts: [string, Node][] = [];
  for (const [key, value] of Object.entries(node)) {
    if (key === 'id' || key === 'key' || key === 'params' || key === 'source' || key === 'specifiers')
      continue;
    // A shorthand property has one text and no room for a change.
    if (node.type === 'Property' && node.shorthand) continue;
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child) && !isType(child) && child.end > child.start) parts.push([key, child]);
    }
  }
  return parts.toSorted(([, one], [, other]) => one.start - other.start);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}

function isType({ type }: Node): boolean {
  return (type.startsWith('TS') && !EXPRESSIONS_OF_TYPES.has(type)) || type === 'ImportDeclaration';
}

function isLoopBody(node: Node, key: string): boolean {
  return key === 'body' && LOOPS.has(node.type);
}

function isRemovable(node: Node): boolean {
  switch (node.type) {
    case 'ExpressionStatement':
      return true;
    case 'ContinueStatement':
    case 'BreakStatement':
      return true;
    case 'ReturnStatement':
      return node.argument === null;
    default:
      return false;
  }
}

function lineStarts(lines: readonly string[]): number[] {
  let at = 0;
  return lines.map((line) => {
    const start = at;
    at += line.length + 1;
    return start;
  });
}
