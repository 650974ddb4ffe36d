import type { Node } from 'oxc-parser';

/** What one place of the source is changed into. `text` replaces the whole node. */
export interface Change {
  readonly from: string;
  readonly to: string;
  readonly text: string;
}

const COMPARISONS: Readonly<Record<string, readonly string[]>> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '&&': ['||'],
  '||': ['&&'],
};
const ASSIGNMENTS: Readonly<Record<string, string>> = {
  '+=': '-=',
  '-=': '+=',
  '*=': '/=',
  '||=': '=',
  '&&=': '=',
  '??=': '=',
};
/** A method that is exchanged for another one, or (empty) left out, so that its object stays as it was. */
const METHODS: Readonly<Record<string, string>> = {
  min: 'max',
  max: 'min',
  floor: 'ceil',
  ceil: 'floor',
  some: 'every',
  every: 'some',
  filter: '',
  toSorted: '',
  slice: '',
};

/** Every change of one expression that the tests have to notice. Texts of sentences are left alone. */
export function changesOf(node: Node, source: string): readonly Change[] {
  const textOf = (part: { readonly start: number; readonly end: number }) =>
    source.slice(part.start, part.end);
  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression': {
      const { left, right, operator } = node;
      if (operator === '??') return [change(operator, 'right side', textOf(right))];
      if (operator === '+' && [left, right].some(isText)) return [];
      const others = COMPARISONS[operator] ?? [];
      return others.map((to) => change(operator, to, `(${textOf(left)} ${to} ${textOf(right)})`));
    }
    case 'AssignmentExpression': {
      const to = ASSIGNMENTS[node.operator];
      if (to === undefined) return [];
      return [change(node.operator, to, `(${textOf(node.left)} ${to} ${textOf(node.right)})`)];
    }
    case 'UnaryExpression':
      return node.operator === '!' || node.operator === '-'
        ? [change(node.operator, 'nothing', `(${textOf(node.argument)})`)]
        : [];
    case 'Literal':
      return changesOfLiteral(node.value);
    case 'CallExpression':
      return changesOfCall(node, textOf);
    default:
      return [];
  }
}

/** A condition that always, or never, holds. */
export function changesOfTest(): readonly Change[] {
  return [change('condition', 'true', 'true'), change('condition', 'false', 'false')];
}

function changesOfLiteral(value: unknown): readonly Change[] {
  if (typeof value === 'boolean') return [change(String(value), String(!value), String(!value))];
  if (typeof value !== 'number') return [];
  const to = Number.isInteger(value) && Math.abs(value) < 10 ? value + 1 : value * 1.1;
  return [change(String(value), String(to), String(to))];
}

function changesOfCall(
  node: Extract<Node, { type: 'CallExpression' }>,
  textOf: (part: { readonly start: number; readonly end: number }) => string,
): readonly Change[] {
  const { callee } = node;
  if (callee.type !== 'MemberExpression' || callee.computed) return [];
  const name = textOf(callee.property);
  const object = textOf(callee.object);
  if (object === 'Math' && name === 'abs')
    return [change('Math.abs', 'nothing', `(${node.arguments.map(textOf)[0]})`)];
  const to = METHODS[name];
  if (to === undefined) return [];
  if (to === '') return [change(`.${name}`, 'nothing', `(${object})`)];
  return [change(`.${name}`, `.${to}`, `${object}.${to}(${node.arguments.map(textOf).join(', ')})`)];
}

function change(from: string, to: string, text: string): Change {
  return { from, to, text };
}

function isText(node: Node): boolean {
  return node.type === 'TemplateLiteral' || (node.type === 'Literal' && typeof node.value === 'string');
}
