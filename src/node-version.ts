/**
 * Ends the process with 78 where Node is older than `engines` of package.json has it. The first import of `main.ts`:
 * nothing else has run before it.
 */
const { node } = process.versions;
const [major = 0, minor = 0] = node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 12)) {
  process.stderr.write(`killswitchd needs Node 24.12 or later, and this is Node ${node}.\n`);
  process.exit(78);
}
