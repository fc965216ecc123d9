import { createLogger } from '../../src/runtime/logger.ts'

/** A logger that drops everything. */
export const quietLogger = createLogger('silent', () => {}, Date.now)
