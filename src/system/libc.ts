import { dlopen, type FFIFunction, type Library } from 'bun:ffi'

/** The C library's names: glibc, then musl; on macOS all system libraries are one. */
const LIBRARIES =
  process.platform === 'darwin'
    ? ['/usr/lib/libSystem.B.dylib']
    : ['libc.so.6', `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`]

/** Returns the C library's functions by name. Throws if there is no library. */
export function openLibc<Functions extends Record<string, FFIFunction>>(
  functions: Functions,
): Library<Functions>['symbols'] {
  const errors: unknown[] = []
  for (const library of LIBRARIES) {
    try {
      return dlopen(library, functions).symbols
    } catch (error) {
      errors.push(error)
    }
  }
  throw new AggregateError(errors, `None of ${LIBRARIES.join(', ')} could be loaded.`)
}
