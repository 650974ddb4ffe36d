#!/usr/bin/env node
import { fileURLToPath } from 'node:url';
import './node-version.ts';

// The command of the package. A Node that is too old refuses to start with this option, without a word about its age:
// so the option comes second, and the process stays the same.
const program = fileURLToPath(new URL('main.js', import.meta.url));
// Young objects would fill 128 MiB where the host has much memory.
const options = ['--disable-sigusr1', '--max-semi-space-size=4', ...process.execArgv];
process.execve?.(process.execPath, [process.execPath, ...options, program, ...process.argv.slice(2)]);
