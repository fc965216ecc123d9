/** The log levels, most talkative first. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

/** How much is logged. */
export type LogLevel = (typeof LOG_LEVELS)[number]

/** Fields of a log message. Never a credential, a file's content or a command's text. */
type LogFields = Record<string, unknown>

/** Takes one message of one level. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

/**
 * Returns a logger that writes a line a message: `TIME LEVEL message key=value …`. Thirty lines of our own
 * instead of a library: a start-up of milliseconds cannot pay for one.
 *
 * @param level messages below it are dropped
 * @param write receives each line, newline included
 * @param now the time, milliseconds since 1970
 */
export function createLogger(level: LogLevel, write: (line: string) => void, now: () => number): Logger {
  const least = LOG_LEVELS.indexOf(level)
  const at = (name: LogLevel) => {
    if (LOG_LEVELS.indexOf(name) < least) return () => {}
    const label = name.toUpperCase().padEnd(5)
    return (message: string, fields: LogFields = {}) => {
      const facts = Object.entries(fields).map(([key, value]) => ` ${key}=${format(value)}`)
      write(`${new Date(now()).toISOString()} ${label} ${message.replaceAll('\n', '\\n')}${facts.join('')}\n`)
    }
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** Formats a value as one word, or quoted. Errors keep their stack. */
function format(value: unknown): string {
  if (value instanceof Error) return JSON.stringify(value.stack ?? value.message)
  if (typeof value === 'string') return /^[\w./:@-]+$/.test(value) ? value : JSON.stringify(value)
  return JSON.stringify(value) ?? 'undefined'
}
