import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';

/**
 * Counts which functions of a process run. It is loaded before everything else (`--import`). At SIGUSR2, and at the
 * end of the process, it writes what ran since the last time into the file that the variable WALK names.
 */
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

let window = 0;

function write(): void {
  session.post('Profiler.takePreciseCoverage', (error, taken) => {
    if (error !== null) throw error;
    const scripts = taken.result.filter(({ url }) => url.includes('/src/'));
    writeFileSync(`${process.env['WALK']}.${window}`, JSON.stringify(scripts));
    window += 1;
  });
}

process.on('SIGUSR2', write);
process.on('exit', write);
// The process ends with its listeners called, also where the program would replace it.
Object.defineProperty(process, 'execve', { value: undefined });
