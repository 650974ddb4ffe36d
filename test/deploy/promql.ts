import { CLOSED_LABELS, telemetryTables } from '../docs/telemetry-tables.ts';
import { RULES, rulesOf } from './rules.ts';

/** Labels that come from the scrape, and those of alerts. */
export const TARGET_LABELS = ['job', 'instance', 'account', 'pod', 'node', 'namespace', 'cluster'];
const ALERT_LABELS = ['alertname', 'alertstate', 'severity', 'market', 'bot', 'account'];
const KEYWORDS = new Set(['and', 'or', 'unless', 'bool', 'offset']);

interface Matcher {
  readonly label: string;
  readonly value: string;
}

interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

interface Named {
  readonly selectors: readonly Selector[];
  /** Labels after `by`, `on` and their like. */
  readonly grouping: readonly string[];
}

/** The metrics and labels that an expression names. No parser of the language: Prometheus itself judges that. */
export function namedIn(expr: string): Named {
  const texts: string[] = [];
  const grouping: string[] = [];
  const bare = expr
    .replaceAll(/"((?:[^"\\]|\\.)*)"/g, (_, text: string) => `"${texts.push(text) - 1}"`)
    .replaceAll(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g, (_, labels: string) => {
      grouping.push(...labels.split(',').map((label) => label.trim()));
      return ' ';
    })
    .replaceAll(/\[[^\]]*\]/g, '');
  const selectors = [...bare.matchAll(/(?<![\w."$])([a-zA-Z_:][\w:]*)\s*(?:\{([^}]*)\}|(\())?/g)]
    .filter(([, name = '', , call]) => call === undefined && !KEYWORDS.has(name))
    .map(([, metric = '', inner = '']) => ({
      metric,
      matchers: [...inner.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"(\d+)"/g)].map(([, label = '', text]) => ({
        label,
        value: texts[Number(text)] ?? '',
      })),
    }));
  return { selectors, grouping: grouping.filter((label) => label !== '') };
}

/** Whether `$__rate_interval` or a plain duration, `[5m]`, stands behind every counter, and nothing else. */
export function countersWithoutRate(expr: string): string[] {
  const counters = [...expr.matchAll(/(\w+)\(\s*(killswitch_\w+_total|process_cpu_seconds_total)\b/g)];
  const rated = counters.filter(([, call = '']) => ['rate', 'increase', 'irate', 'changes'].includes(call));
  const all = [...expr.matchAll(/\b(?:killswitch_\w+_total|process_cpu_seconds_total)\b/g)];
  return all.length === rated.length ? [] : all.map(([name]) => name);
}

/** A check of the names in an expression: one sentence for each that does not exist. */
export async function nameChecker(): Promise<(expr: string) => string[]> {
  const { labelsOf } = await telemetryTables();
  const recorded = new Set(rulesOf(RULES).flatMap((rule) => ('record' in rule ? [rule.record] : [])));
  const ownLabels = new Set([...labelsOf.values()].flat());

  const labelsFor = (metric: string): ReadonlySet<string> | null => {
    const own = labelsOf.get(metric);
    if (own !== undefined) return new Set([...own, ...TARGET_LABELS]);
    if (metric === 'up') return new Set(TARGET_LABELS);
    if (metric === 'ALERTS') return new Set([...ALERT_LABELS, ...TARGET_LABELS]);
    return recorded.has(metric) ? new Set([...ownLabels, ...TARGET_LABELS]) : null;
  };
  const problemsOf = ({ metric, matchers }: Selector): string[] => {
    const labels = labelsFor(metric);
    if (labels === null) return [`${metric} does not exist`];
    return matchers.flatMap(({ label, value }) => {
      if (!labels.has(label)) return [`${metric} has no label ${label}`];
      const closed = CLOSED_LABELS.find((set) => set.label === label && set.of.includes(metric));
      if (closed === undefined || value.startsWith('$')) return [];
      const wrong = value.split('|').filter((one) => !closed.values.includes(one));
      return wrong.map((one) => `${metric} has no ${label} "${one}"`);
    });
  };
  return (expr) => {
    const { selectors, grouping } = namedIn(expr);
    const known = new Set(selectors.flatMap(({ metric }) => [...(labelsFor(metric) ?? [])]));
    const strange = grouping
      .filter((label) => !known.has(label))
      .map((label) => `nothing has a label ${label}`);
    return [...selectors.flatMap(problemsOf), ...strange];
  };
}
