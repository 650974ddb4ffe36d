import {
  COMPARED_RULES,
  COMPARED_TIMEOUTS_SECONDS,
  type CompareOptions,
  type Comparison,
  compareAt,
  OUTAGE_KINDS,
  PRODUCTION_RULE,
  type Survival,
} from './compare.ts';
import type { Rule } from './rules.ts';

const PHASES = 12;
const LIVES = 8;
const NAME_WIDTH = 23;
const LINE_WIDTH = 98;

type Given = Pick<CompareOptions, 'samples' | 'seed' | 'roundTripMs'> & { readonly alone: boolean };

/** Our own rule draws nothing at random: alone, one life shows all of it. */
const optionsOf = ({ alone, ...given }: Given) => ({ ...given, phases: PHASES, lives: alone ? 1 : LIVES });
const rulesOf = ({ alone }: Given) => (alone ? [PRODUCTION_RULE] : COMPARED_RULES);

/** The renewal rules of other clients and that of this daemon through the same simulated outages, as a table or JSON. */
export function compareCommand(
  { json, ...given }: Given & { readonly json: boolean },
  out: (line: string) => void,
): void {
  if (json) {
    out(JSON.stringify(compared(given), null, 2));
    return;
  }
  const [options, rules] = [optionsOf(given), rulesOf(given)];
  for (const line of legend(options, rules)) out(line);
  for (const timeoutSeconds of COMPARED_TIMEOUTS_SECONDS)
    for (const line of table(compareAt(timeoutSeconds, options, rules))) out(line);
}

/** The same as data. */
export function compared(given: Given) {
  const options = optionsOf(given);
  const timeouts = COMPARED_TIMEOUTS_SECONDS.map((seconds) => {
    const { timeoutSeconds, rows, ahead } = compareAt(seconds, options, rulesOf(given));
    const rules = rows.map(({ rule, ...figures }) => ({ rule: rule.name, ...figures }));
    return { timeoutSeconds, rules, ahead };
  });
  return { ...options, timeouts };
}

function legend({ samples, roundTripMs, seed }: CompareOptions, rules: readonly Rule[]): string[] {
  return [
    'One timer of T seconds, one outage. A share of T is how long the outage may last without the timer',
    'firing: worst, at the worst moment for it to begin; average, over random ones. Lapses: how many of',
    'the outages of log-normal length (median T/2, sigma 1) let it fire. Refused: turned down at once.',
    "Black hole: no answer until the client's own HTTP timeout. The exchange counts whole seconds and",
    'rounds down: at the worst moment nothing survives more than T - 1 s - period.',
    `Round trip ${roundTripMs} ms, ${samples} samples, seed ${seed}.`,
    '',
    ...rules.map(({ name, renews }) => `${name.padEnd(NAME_WIDTH)} ${renews}`),
  ];
}

function table({ timeoutSeconds, rows, ahead }: Comparison): string[] {
  const title = `T = ${timeoutSeconds} s`.padEnd(NAME_WIDTH + 12);
  const columns = '  worst  average   lapses';
  const head = `${''.padEnd(NAME_WIDTH)}  renewals/s${columns}  ${columns}`;
  return [
    '',
    `${title}${OUTAGE_KINDS.map((kind) => `  ${kind}`.padEnd(columns.length)).join('  ')}`.trimEnd(),
    head,
    '-'.repeat(head.length),
    ...rows.map(({ rule, requestsPerSecond, survival }) =>
      [
        rule.name.padEnd(NAME_WIDTH),
        requestsPerSecond.toFixed(4).padStart(12),
        OUTAGE_KINDS.map((kind) => figures(survival[kind])).join('  '),
      ].join(''),
    ),
    ...(rows.length === 1 || ahead.some(({ atSameRate }) => atSameRate)
      ? []
      : [`No other rule is ahead of ${COMPARED_RULES[0]?.name} at the same or a lower rate of requests.`]),
    ...ahead.flatMap(({ atSameRate, sentence }) =>
      wrap(`${atSameRate ? 'AHEAD' : 'Ahead with more requests'}: ${sentence}.`),
    ),
  ];
}

function figures({ worst, average, lapse }: Survival): string {
  const percent = (share: number, width: number) => `${(share * 100).toFixed(1)} %`.padStart(width);
  return percent(worst, 7) + percent(average, 9) + percent(lapse, 9);
}

function wrap(sentence: string): string[] {
  const [first = '', ...words] = sentence.split(' ');
  const lines: string[] = [];
  let line = first;
  for (const word of words) {
    if (line.length + 1 + word.length > LINE_WIDTH) {
      lines.push(line);
      line = `  ${word}`;
    } else line = `${line} ${word}`;
  }
  return [...lines, line];
}
