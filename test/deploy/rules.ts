import { join } from 'node:path';
import { parse } from 'yaml';
import { read } from '../docs/documents.ts';
import { ROOT } from '../process/program.ts';

export const RULES = 'prometheus/killswitchd.rules.yaml';

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Recording {
  readonly record: string;
  readonly expr: string;
}

export interface RuleFile {
  readonly groups: readonly { readonly rules: readonly (Alert | Recording)[] }[];
}

/** The absolute path of a file of the operations kit. */
export const deployed = (path: string): string => join(ROOT, 'deploy', path);

export const readDeployed = (path: string): string => read(`deploy/${path}`);

export function rulesOf(path: string): readonly (Alert | Recording)[] {
  return (parse(readDeployed(path)) as RuleFile).groups.flatMap(({ rules }) => rules);
}

export function alertsOf(path: string): readonly Alert[] {
  return rulesOf(path).filter((rule) => 'alert' in rule);
}
