import type { Snapshot } from '../core/view.ts';
import { DEAD, describeNothingGuarded, describeNotReady, livingOf } from '../core/view.ts';
import { didYouMean } from '../util/nearest.ts';
import { listed, plain } from '../util/text.ts';
import { ControlRefusal } from './control-sources.ts';

/** One line of `?verbose`; `failed` is null where the check passed. */
type Check = Readonly<ReturnType<typeof check>>;
export type Verdict = ReturnType<typeof verdictOf>;

/** More markets than this are not listed one by one; those that fail come first. */
const LISTED_MARKETS = 100;

const check = (name: string, isPassed: boolean, problem: string) => {
  return { name, failed: isPassed ? null : problem };
};
const loopCheck = (live: boolean) => check('loop', live, 'the keeper makes no progress');
const isPassed = ({ failed }: Check): boolean => failed === null;
const verdictOf = (name: string, checks: readonly Check[]) => ({ name, ok: checks.every(isPassed), checks });

export const judgeLive = ({ live }: Snapshot) => verdictOf('livez', [loopCheck(live)]);

/** Works out once per snapshot what is asked of it: thousands may ask while one snapshot is fresh. */
function perSnapshot<Question, Answer>(work: (snapshot: Snapshot, question: Question) => Answer) {
  const known = new WeakMap<Snapshot, Map<Question, Answer>>();
  return (snapshot: Snapshot, question: Question): Answer => {
    const answers = known.get(snapshot) ?? new Map<Question, Answer>();
    const answer = answers.get(question) ?? work(snapshot, question);
    known.set(snapshot, answers.set(question, answer));
    return answer;
  };
}

/** With bots as the core says. Without, for whoever starts them: every wanted market is armed, or the exchange answers. */
export const judgeReady = perSnapshot((snapshot, withBots: boolean): Verdict => {
  const { bots, bases, nothingGuarded, phase, authorised, live } = snapshot;
  const living = livingOf(bots);
  const timers = snapshot.markets
    .filter(({ wanted, leaving, bot }) => wanted || (withBots && !leaving && living.has(bot)))
    .map(({ market, wanted, state, guaranteedMs, lastProblem }) => {
      const problem = lastProblem === null ? state : `${state}: ${lastProblem}`;
      return check(`timer/${market}`, wanted && (guaranteedMs ?? 0) > 0, problem);
    });
  const worstFirst = timers.toSorted((one, other) => +isPassed(one) - +isPassed(other));
  const judged = bots.map(({ bot, state }) =>
    check(`bot/${bot}`, DEAD[state] === undefined, `it ${DEAD[state]}`),
  );
  const checks: Check[] = [
    loopCheck(live),
    check('running', phase === 'running', `the daemon is ${phase}`),
    check('authorised', authorised, 'the exchange refuses the API key'),
    ...(withBots ? judged : []),
    ...worstFirst.slice(0, LISTED_MARKETS),
  ];
  const isAway = bases.every(({ used, up }) => !used || up === false);
  if (!withBots && nothingGuarded !== null) checks.push(check('exchange', !isAway, 'it does not answer'));
  // Reasons of the core that are none of these checks.
  if (withBots && checks.every(isPassed))
    checks.push(...snapshot.notReady.map((failed) => ({ name: 'guarded', failed })));
  return verdictOf('readyz', checks);
});

/** Ready, and no outage and no refusal is under way that would end that once the timers run out. */
export function isWell({ ready, bases, markets }: Snapshot): boolean {
  const isThrough = bases.some(({ used, outage }) => used && !outage);
  return ready && isThrough && markets.every(({ state }) => state !== 'rejected');
}

/** A snapshot of one bot and its markets, the whole one without a name. Throws a `ControlRefusal` for an unknown bot. */
export const ofBot = perSnapshot((snapshot, name: string | undefined): Snapshot => {
  if (name === undefined) return snapshot;
  const bots = snapshot.bots.filter(({ bot }) => bot === name);
  const markets = snapshot.markets.filter(({ bot }) => bot === name);
  if (bots.length === 0) {
    const names = snapshot.bots.map(({ bot }) => bot);
    const allowed = `allowed: ${listed(names)}${didYouMean(name, names)}`;
    throw new ControlRefusal('unknown_bot', `unknown bot: no market of this daemon names it; ${allowed}`);
  }
  const seen = { phase: snapshot.phase, live: snapshot.live, markets, bots };
  const nothingGuarded = describeNothingGuarded(seen);
  const ofKey = snapshot.authorised ? [] : snapshot.notReady.slice(0, 1);
  const notReady = [...ofKey, ...describeNotReady({ ...seen, nothingGuarded })];
  return { ...snapshot, markets, bots, nothingGuarded, notReady, ready: notReady.length === 0 };
});

/** The checks as kube-apiserver writes them, one line each and a verdict; unless `verbose`, only what fails, or `ok`. */
export function describeVerdict(verdict: Verdict, verbose: boolean): string {
  const { ok, checks } = verdict;
  if (ok && !verbose) return 'ok\n';
  const lines = checks
    .filter((one) => verbose || !isPassed(one))
    .map(({ name, failed }) => (failed === null ? `[+]${name} ok` : `[-]${name} failed: ${plain(failed)}`));
  return `${[...lines, `${verdict.name} check ${ok ? 'passed' : 'failed'}`].join('\n')}\n`;
}
