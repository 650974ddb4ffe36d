/** The oldest Node that runs the program, as `engines` of package.json has it. */
const WANTED = { major: 24, minor: 12 };

/** Ends the process with 78 where Node is too old. The first import of `main.ts`: nothing else has run before it. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < WANTED.major || (major === WANTED.major && minor < WANTED.minor)) {
  process.stderr.write(
    `killswitchd needs Node ${WANTED.major}.${WANTED.minor} or later, and this is Node ${process.versions.node}.\n`,
  );
  process.exit(78);
}
