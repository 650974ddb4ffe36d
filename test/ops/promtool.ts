import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deployed, RULES } from '../deploy/rules.ts';
import { inputSeries, STEP_SECONDS, type World } from './alert-world.ts';

/** What an expression must give so many seconds after the beginning of a world: series and their values. */
export interface Expectation {
  readonly at: number;
  readonly query: string;
  readonly samples: readonly { readonly labels: string; readonly value: number }[];
}

/** What Prometheus says of one world with our rules (`promtool test rules`); nothing where every expectation holds. */
export function judge(world: World, scrapes: number, expectations: readonly Expectation[]): string {
  const interval = `${STEP_SECONDS}s`;
  const group = {
    interval,
    input_series: inputSeries(world, scrapes),
    promql_expr_test: expectations.map(({ at, query, samples }) => ({
      expr: query,
      eval_time: `${at}s`,
      exp_samples: samples,
    })),
  };
  const directory = mkdtempSync(join(tmpdir(), 'killswitchd-rules-'));
  try {
    // JSON is YAML.
    const file = join(directory, 'play.json');
    writeFileSync(
      file,
      JSON.stringify({ rule_files: [deployed(RULES)], evaluation_interval: interval, tests: [group] }),
    );
    execFileSync('promtool', ['test', 'rules', file], { stdio: 'pipe', encoding: 'utf8' });
    return '';
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return `${stdout}${stderr}`;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
