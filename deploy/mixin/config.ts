/** What differs from one monitoring to the next. Every key can be set by a JSON file, see `main.ts`. */
export interface MixinConfig {
  /** Matchers that select the targets of killswitchd, and nothing else. */
  readonly selector: string;
  /** Target labels that change when a daemon is replaced: what became of a market is looked at without them. */
  readonly volatileLabels: readonly string[];
  /** Value of the label `severity`. `critical`: orders are cancelled, will be, or nothing guards them. */
  readonly severities: { readonly critical: string; readonly warning: string; readonly info: string };
  /** Further labels of every alert. */
  readonly alertLabels: Readonly<Record<string, string>>;
  /** Labels of the PrometheusRule; kube-prometheus-stack selects those with its own release. */
  readonly ruleObjectLabels: Readonly<Record<string, string>>;
  /** Where docs/runbooks.md can be read. */
  readonly runbookUrl: string;
  /** Where Grafana is, without a slash at the end. */
  readonly grafanaUrl: string;
}

export const DEFAULTS: MixinConfig = {
  selector: 'job=~".*killswitchd.*"',
  volatileLabels: ['instance', 'pod', 'node'],
  severities: { critical: 'critical', warning: 'warning', info: 'info' },
  alertLabels: {},
  ruleObjectLabels: { release: 'kube-prometheus-stack' },
  runbookUrl: 'https://killswitchd.example/docs/runbooks.md',
  grafanaUrl: 'https://grafana.example',
};

/**
 * The defaults with what `given` sets. Throws an error with every key that does not exist or has another type than its
 * default.
 */
export function configOf(given: Readonly<Record<string, unknown>>): MixinConfig {
  const mistakes = Object.entries(given).flatMap(([key, value]) => {
    if (!(key in DEFAULTS)) return [`${key}: allowed are ${Object.keys(DEFAULTS).join(', ')}`];
    const usual = DEFAULTS[key as keyof MixinConfig];
    const same = typeof value === typeof usual && Array.isArray(value) === Array.isArray(usual);
    return same ? [] : [`${key}: found ${JSON.stringify(value)}; the default is ${JSON.stringify(usual)}`];
  });
  if (mistakes.length > 0) throw new Error(mistakes.join('\n'));
  const severities = { ...DEFAULTS.severities, ...(given['severities'] as object | undefined) };
  return { ...DEFAULTS, ...given, severities };
}
