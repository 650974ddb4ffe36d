import type { MarketSnapshot, Snapshot } from '../core/snapshot.ts';

/** One line of `?verbose`. */
export interface Check {
  readonly name: string;
  /** Null where the check passed. */
  readonly failed: string | null;
  /** What is to be known of a check that passed. */
  readonly note?: string;
}

/** More markets than this are not listed one by one; those that fail come first. */
const LISTED_MARKETS = 100;

/** What liveness hangs on: that the keeper's loop makes progress, and nothing else. */
export function liveChecks(snapshot: Snapshot): readonly Check[] {
  return [{ name: 'loop', failed: snapshot.live ? null : 'the keeper makes no progress' }];
}

/** What readiness hangs on, market by market. The verdict itself is the core's: see `Snapshot.ready`. */
export function readyChecks(snapshot: Snapshot): readonly Check[] {
  const markets = snapshot.markets.filter(({ wanted }) => wanted).map(marketCheck);
  const failing = markets.filter(({ failed }) => failed !== null);
  const passing = markets.filter(({ failed }) => failed === null);
  const listed = [...failing, ...passing].slice(0, LISTED_MARKETS);
  const checks: Check[] = [
    ...liveChecks(snapshot),
    { name: 'running', failed: snapshot.phase === 'running' ? null : `the daemon is ${snapshot.phase}` },
    { name: 'authorised', failed: snapshot.authorised ? null : 'the exchange refuses the API key' },
    ...listed,
    ...guardedCheck(snapshot),
  ];
  if (snapshot.ready || checks.some(({ failed }) => failed !== null)) return checks;
  return [...checks, ...snapshot.notReady.map((failed) => ({ name: 'armed', failed }))];
}

/** Only where nothing is guarded: that is said, and fails nothing. */
function guardedCheck({ nothingGuarded }: Snapshot): Check[] {
  return nothingGuarded === null ? [] : [{ name: 'guarded', failed: null, note: nothingGuarded }];
}

function marketCheck({ market, state, guaranteedMs, lastProblem }: MarketSnapshot): Check {
  const armed = guaranteedMs !== null && guaranteedMs > 0;
  return {
    name: `timer/${market}`,
    failed: armed ? null : [state, lastProblem].filter((part) => part !== null).join(': '),
  };
}

/** `ok`, and what else is to be known. */
export function describeOk(checks: readonly Check[]): string {
  return `${['ok', ...checks.flatMap(({ note }) => note ?? [])].join(', but ')}\n`;
}

/** The checks as kube-apiserver writes them, one line each and a verdict. */
export function describeChecks(name: string, ok: boolean, checks: readonly Check[]): string {
  const lines = checks.map((check) =>
    check.failed === null
      ? `[+]${check.name} ok${check.note === undefined ? '' : `: ${check.note}`}`
      : `[-]${check.name} failed: ${oneLine(check.failed)}`,
  );
  return `${[...lines, `${name} check ${ok ? 'passed' : 'failed'}`].join('\n')}\n`;
}

/** Details come from outside: none of them may look like a line of its own. */
function oneLine(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ');
}
