import { takeCoverage } from 'node:v8';

/**
 * Loaded before everything else (`--import`) where NODE_V8_COVERAGE names a folder: at SIGUSR2, as at the end of the
 * process, Node writes into it which functions ran since the last time.
 */
process.on('SIGUSR2', () => takeCoverage());
// The process ends with its listeners called, also where the program would replace it.
Object.defineProperty(process, 'execve', { value: undefined });
