import {
  COMPARED_RULES,
  COMPARED_TIMEOUTS_SECONDS,
  type CompareOptions,
  type Comparison,
  compareAt,
  OUTAGE_KINDS,
  type Survival,
} from './compare.ts';

export const PHASES = 12;
const LIVES = 8;
const NAME_WIDTH = 23;

/** The renewal rules of other clients and that of this daemon through the same simulated outages, as a table. */
export function compareCommand(
  given: Pick<CompareOptions, 'samples' | 'seed' | 'roundTripMs'>,
  out: (line: string) => void,
): void {
  const options = { ...given, phases: PHASES, lives: LIVES };
  for (const line of legend(options)) out(line);
  for (const timeoutSeconds of COMPARED_TIMEOUTS_SECONDS)
    for (const line of table(compareAt(timeoutSeconds, options))) out(line);
}

function legend({ samples, roundTripMs, seed }: CompareOptions): string[] {
  return [
    'One timer of T seconds, one outage. A share of T is how long the outage may last without the timer',
    'firing: worst, at the worst moment for it to begin; average, over random ones. Lapses: how many of',
    'the outages of log-normal length (median T/2, sigma 1) let it fire. Refused: turned down at once.',
    "Black hole: no answer until the client's own HTTP timeout. The exchange counts whole seconds and",
    'rounds down: at the worst moment nothing survives more than T - 1 s - period.',
    `Round trip ${roundTripMs} ms, ${samples} samples, seed ${seed}.`,
    '',
    ...COMPARED_RULES.map(({ name, renews }) => `${name.padEnd(NAME_WIDTH)} ${renews}`),
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
    ...(ahead.some(({ atSameRate }) => atSameRate)
      ? []
      : [`No other rule is ahead of ${COMPARED_RULES[0]?.name} at the same or a lower rate of requests.`]),
    ...ahead.map(
      ({ atSameRate, sentence }) => `${atSameRate ? 'AHEAD' : 'Ahead with more requests'}: ${sentence}.`,
    ),
  ];
}

function figures({ worst, average, lapse }: Survival): string {
  const percent = (share: number, width: number) => `${(share * 100).toFixed(1)} %`.padStart(width);
  return percent(worst, 7) + percent(average, 9) + percent(lapse, 9);
}
