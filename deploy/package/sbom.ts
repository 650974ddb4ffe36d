import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

// `npm run sbom`: the packages that run in production, in CycloneDX form.

const ROOT = join(import.meta.dirname, '../..');

interface Bom {
  readonly metadata: { readonly component: { readonly 'bom-ref': string; readonly name: string } };
  readonly components: readonly { readonly 'bom-ref': string }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/**
 * The bill of materials with these packages (`name@version`) and no others. Throws where the lock file lacks one. npm
 * itself lists all: its `--omit dev` leaves out what a development dependency wants as well.
 */
export function billOf(wanted: ReadonlySet<string>): Bom {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'];
  const all = JSON.parse(
    execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 26 }),
  ) as Bom;
  const own = all.metadata.component['bom-ref'];
  // npm writes the name of the folder.
  const component = { ...all.metadata.component, name: own.slice(0, own.lastIndexOf('@')) };
  const isIn = (ref: string) => wanted.has(ref) || ref === own;
  const components = all.components.filter((component) => isIn(component['bom-ref']));
  const listed = new Set(components.map((component) => component['bom-ref']));
  const missing = [...wanted].filter((ref) => !listed.has(ref));
  if (missing.length > 0) throw new Error(`package-lock.json does not list ${missing.join(', ')}`);
  const dependencies = all.dependencies
    .filter(({ ref }) => isIn(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isIn) }));
  return { ...all, metadata: { ...all.metadata, component }, components, dependencies };
}

function inProduction(): Set<string> {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; dev?: boolean; optional?: boolean }>;
  };
  const wanted = Object.entries(packages).filter(
    ([path, { dev, optional }]) => path !== '' && dev !== true && optional !== true,
  );
  return new Set(wanted.map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`));
}

if (import.meta.main) console.log(JSON.stringify(billOf(inProduction()), null, 2));
