import { describe, expect, it } from 'vitest';
import { printConfig } from '../../src/config/print.ts';
import { FILE, loadWell, SECRETS } from './fixture.ts';

describe('what is printed', () => {
  it('is itself a configuration that means the same', () => {
    const { config, sources } = loadWell(FILE, {
      KILLSWITCHD_WEB_LISTEN: '[::1]:17477,0.0.0.0:17477',
      KILLSWITCHD_CONTROL_LISTEN: 'unix:/run/killswitchd/control.sock',
    });
    const again = loadWell(printConfig(config, sources).join('\n'));
    expect({ ...again.config, file: null, secrets: null }).toEqual({ ...config, file: null, secrets: null });
  });

  it('names the source of every value and shows no secret', () => {
    const { config, sources } = loadWell(FILE, { KILLSWITCHD_LOG_FORMAT: 'text' }, { logLevel: 'debug' });
    const lines = printConfig(config, sources);
    expect(lines).toContain('# apiKey: [redacted, 17 chars, from environment]');
    expect(lines).toContain('  level: debug # flag');
    expect(lines).toContain('  format: text # environment');
    expect(lines).toContain('  mode: none # file');
    expect(lines).toContain('onLapse: rearm # default');
    for (const line of lines.slice(2)) expect(line).toMatch(/:$|(# |\()(flag|environment|file|default)\)?$/);
    for (const secret of Object.values(SECRETS)) expect(lines.join('\n')).not.toContain(secret);
  });
});
