import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ROOT } from '../process/program.ts';

/** One place that the linter reported: `rule` as the linter writes it (`eslint(no-console)`), `line` counted from 1. */
export interface Finding {
  readonly path: string;
  readonly rule: string;
  readonly line: number;
}

interface Report {
  readonly diagnostics: readonly {
    readonly code?: string;
    readonly message: string;
    readonly filename: string;
    readonly labels: readonly { readonly span: { readonly line: number } }[];
  }[];
}

/**
 * Lints `sources` (path in the repository to text) by the repository's own configuration, in a directory of their own,
 * as every pattern of that configuration is relative to where it stands.
 */
export function lint(sources: Readonly<Record<string, string>>): readonly Finding[] {
  const directory = mkdtempSync(join(tmpdir(), 'killswitchd-lint-'));
  try {
    for (const name of ['.oxlintrc.json', 'tsconfig.json'])
      copyFileSync(join(ROOT, name), join(directory, name));
    symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
    for (const [path, text] of Object.entries(sources)) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), text);
    }
    return reportOf(directory, Object.keys(sources)).map(({ code, message, filename, labels }) => ({
      path: filename,
      rule: code ?? message,
      line: labels[0]?.span.line ?? 0,
    }));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Everything that the linter reports when it is started in `directory`. */
export function reportOf(directory: string, args: readonly string[]): Report['diagnostics'] {
  const oxlint = join(ROOT, 'node_modules/oxlint/bin/oxlint');
  const options = { cwd: directory, encoding: 'utf8', maxBuffer: 1 << 26 } as const;
  const run = spawnSync(process.execPath, [oxlint, '--format=json', ...args], options);
  if (!run.stdout.startsWith('{')) throw new Error(`oxlint did not report: ${run.stdout}${run.stderr}`);
  return (JSON.parse(run.stdout) as Report).diagnostics;
}
