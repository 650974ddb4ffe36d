// Two files of undici by their own names. The package as a whole brings fetch, caches, mocks and proxies along, three
// quarters of its modules, and the daemon would read and compile them all before it arms its first timer.

declare module 'undici/lib/dispatcher/client.js' {
  export { Client as default } from 'undici';
}

declare module 'undici/lib/core/errors.js' {
  export { errors as default } from 'undici';
}
