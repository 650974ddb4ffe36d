import { readDeployed } from './rules.ts';

export const DASHBOARDS = [
  'grafana/dashboards/killswitchd-bot.json',
  'grafana/dashboards/killswitchd-fleet.json',
] as const;

export interface GridPos {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: GridPos;
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly {
    readonly expr: string;
    readonly legendFormat: string;
    readonly refId: string;
    readonly datasource: { readonly uid: string };
  }[];
  readonly fieldConfig?: {
    readonly defaults: { readonly unit?: string };
    readonly overrides: readonly { readonly matcher: { readonly id: string; readonly options: string } }[];
  };
  readonly transformations?: readonly { readonly id: string; readonly options: TableOptions }[];
}

/** What the transformations of our tables say of columns. */
interface TableOptions {
  readonly renameByName?: Readonly<Record<string, string>>;
  readonly indexByName?: Readonly<Record<string, number>>;
}

export interface Variable {
  readonly name: string;
  readonly label: string;
  readonly type: string;
  /** What is shown in the settings, and what is asked. */
  readonly definition?: string;
  readonly query?: string | { readonly query: string };
  readonly datasource?: { readonly uid: string };
  readonly refresh: number;
  readonly multi: boolean;
  readonly includeAll: boolean;
  readonly allValue?: string;
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly tags: readonly string[];
  readonly editable: boolean;
  readonly links: readonly { readonly title: string; readonly url: string }[];
  readonly annotations: {
    readonly list: readonly {
      readonly name: string;
      readonly expr: string;
      readonly datasource: { readonly uid: string };
      readonly titleFormat: string;
      readonly textFormat: string;
    }[];
  };
  readonly templating: { readonly list: readonly Variable[] };
  readonly panels: readonly Panel[];
}

export const readDashboard = (path: string): Dashboard => JSON.parse(readDeployed(path)) as Dashboard;

/** An expression of a dashboard, and where it stands. */
export interface Expression {
  readonly where: string;
  readonly expr: string;
}

/** Every expression of panels and annotations. */
export function expressionsOf({ panels, annotations }: Dashboard): Expression[] {
  return [
    ...panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr, refId }) => ({ where: `${title} ${refId}`, expr })),
    ),
    ...annotations.list.map(({ name, expr }) => ({ where: `annotation ${name}`, expr })),
  ];
}

/** `label_values(SELECTOR, LABEL)` of a variable. */
export function labelQueryOf({ definition = '' }: Variable): { selector: string; label: string } {
  const [, selector = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(definition) ?? [];
  return { selector, label };
}
