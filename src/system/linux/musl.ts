import { textOrEmpty } from '../../runtime/if-present.ts'

/** Reports whether the C library of this process is musl. */
export const isMusl = (): boolean => textOrEmpty('/proc/self/maps').includes('/ld-musl-')
