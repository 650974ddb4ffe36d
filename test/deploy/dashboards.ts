import { readDeployed } from './rules.ts';

export const DASHBOARDS = [
  'grafana/dashboards/killswitchd-bot.json',
  'grafana/dashboards/killswitchd-fleet.json',
] as const;

/** What the tests read of a panel. */
export interface Panel {
  readonly title: string;
  readonly type: string;
  readonly description?: string;
  readonly targets?: readonly {
    readonly expr: string;
    readonly legendFormat: string;
    readonly refId: string;
  }[];
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
}

export interface Variable {
  readonly name: string;
  readonly type: string;
  readonly definition?: string;
  readonly allValue?: string;
}

export interface Dashboard {
  readonly uid: string;
  readonly links: readonly { readonly url: string }[];
  readonly annotations: {
    readonly list: readonly { readonly name: string; readonly expr: string; readonly titleFormat: string }[];
  };
  readonly templating: { readonly list: readonly Variable[] };
  readonly panels: readonly Panel[];
}

export const readDashboard = (path: string): Dashboard => JSON.parse(readDeployed(path)) as Dashboard;

/** Every expression of panels and annotations, and where it stands. */
export function expressionsOf({ panels, annotations }: Dashboard): { where: string; expr: string }[] {
  return [
    ...panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr, refId }) => ({ where: `${title} ${refId}`, expr })),
    ),
    ...annotations.list.map(({ name, expr }) => ({ where: `annotation ${name}`, expr })),
  ];
}

/** The expression of a panel's first query. */
export function expressionOf(path: string, title: string): string {
  const panel = readDashboard(path).panels.find((one) => one.title === title);
  const expr = panel?.targets?.[0]?.expr;
  if (expr === undefined) throw new Error(`${path} has no panel "${title}"`);
  return expr;
}

/** `label_values(SELECTOR, LABEL)` of a variable. */
export function labelQueryOf({ definition = '' }: Variable): { selector: string; label: string } {
  const [, selector = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(definition) ?? [];
  return { selector, label };
}

/** What Grafana puts in before it asks Prometheus. */
export function filledIn(text: string, values: ReadonlyMap<string, string>, interval = '10s'): string {
  return text
    .replaceAll('$__rate_interval', interval)
    .replaceAll('$__range', '120s')
    .replaceAll(/\$(\w+)/g, (name, variable: string) => values.get(variable) ?? name);
}
