import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { botDashboard } from './bot-dashboard.ts';
import { configOf, type MixinConfig } from './config.ts';
import { fleetDashboard } from './fleet-dashboard.ts';
import { rulesFile, rulesObject } from './rules.ts';

/** Every file of the mixin, by its path below `deploy`. */
export function mixinFiles(config: MixinConfig): ReadonlyMap<string, string> {
  const json = (value: unknown) => `${JSON.stringify(value, null, 1)}\n`;
  return new Map([
    ['prometheus/killswitchd.rules.yaml', rulesFile(config)],
    ['prometheus/killswitchd.prometheusrule.yaml', rulesObject(config)],
    ['grafana/dashboards/killswitchd-bot.json', json(botDashboard(config))],
    ['grafana/dashboards/killswitchd-fleet.json', json(fleetDashboard(config))],
  ]);
}

// `npm run mixin -- [--config FILE] [--out FOLDER]`: without a file the defaults, without a folder those of `deploy`.
if (import.meta.main) {
  const { values } = parseArgs({ options: { config: { type: 'string' }, out: { type: 'string' } } });
  const given = values.config === undefined ? '{}' : readFileSync(values.config, 'utf8');
  const folder = values.out ?? join(import.meta.dirname, '..');
  for (const [path, text] of mixinFiles(configOf(JSON.parse(given) as Record<string, unknown>))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}
