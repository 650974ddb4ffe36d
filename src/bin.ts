#!/usr/bin/env node
import { fileURLToPath } from 'node:url';
import './node-version.ts';

// The command of the package. A Node that is too old refuses to start with this option, without a word about its age:
// so the option comes second, and the process stays the same.
const program = fileURLToPath(new URL('main.js', import.meta.url));
// Where the host has much memory, young objects would fill 128 MiB, and the heap grow to four times what is in use.
const memory = ['--max-semi-space-size=4', '--max-old-space-size=2000'];
const options = ['--disable-sigusr1', ...memory, ...process.execArgv];
process.execve?.(process.execPath, [process.execPath, ...options, program, ...process.argv.slice(2)]);
